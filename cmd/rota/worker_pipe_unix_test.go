//go:build unix

package main

import (
	"bufio"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// A Ctrl-C ends all processes of "rota worker | tee log", and tee before the worker has written its next line. The
// worker hands its queues over all the same.
func TestWorkerOutlivesTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	db, dir := openOrders(t, testdb.URL(t, testdb.SQLite), 20)
	cmd := rota(context.WithoutCancel(t.Context()), dir, "worker", "-c", "rota.yaml")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // fails if it has ended
	_ = write.Close()
	lines := bufio.NewScanner(read)
	for joined := false; !joined && lines.Scan(); {
		joined = strings.Contains(lines.Text(), "joined")
	}
	_ = read.Close()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the worker: %v", err)
	}
	if n := count(t, db, "schedule_server"); n > 0 {
		t.Errorf("%d workers have not left", n)
	}
}
