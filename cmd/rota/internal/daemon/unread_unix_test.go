//go:build unix

package daemon_test

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/cmd/rota/internal/daemon"
)

// SIGPIPE ends the context only if the other end of the output has gone: it comes for a closed connection, too.
func TestWhileRead(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	piped, stop := daemon.WhileRead(t.Context(), write)
	defer stop()
	filed, stop := daemon.WhileRead(t.Context(), file)
	defer stop()
	seen := make(chan os.Signal, 1)
	signal.Notify(seen, syscall.SIGPIPE)
	defer signal.Stop(seen)
	raise := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGPIPE); err != nil {
			t.Fatal(err)
		}
		<-seen
	}
	for range 3 {
		raise()
	}
	if piped.Err() != nil || filed.Err() != nil {
		t.Errorf("while somebody reads: %v, %v", piped.Err(), filed.Err())
	}
	_ = read.Close()
	raise()
	<-piped.Done()
	if filed.Err() != nil {
		t.Errorf("a file: %v", filed.Err())
	}
}
