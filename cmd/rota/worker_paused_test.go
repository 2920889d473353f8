package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// S11: a worker that starts while its task type is paused selects and executes nothing, however long it owns its
// queues. After the resume it settles all orders.
func TestWorkerThatStartsDuringAPauseWorksNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		const orders = 100
		db, dir := openOrders(t, url, orders)
		beatOften(t, dir)
		for _, args := range [][]string{{"task", "apply", "--yes"}, {"task", "pause", "settle"}} {
			if _, stderr, code := runRota(t, dir, args...); code != 0 {
				t.Fatalf("%v: %s", args, stderr)
			}
		}
		p := startWorker(t, dir)
		eventually(t, "the worker owns all queues and has sent heartbeats", func() bool {
			return count(t, db, "schedule_queue q JOIN schedule_server s ON s.uuid = q.cur_server WHERE s.beat_count >= 10") == 4
		})
		if n := count(t, db, "orders WHERE state <> 'NEW' OR times > 0"); n != 0 {
			t.Errorf("%d orders were settled during the pause, want none", n)
		}
		if n := count(t, db, "schedule_server WHERE fetch_count > 0"); n != 0 {
			t.Error("the worker selected during the pause")
		}
		if _, stderr, code := runRota(t, dir, "task", "resume", "settle"); code != 0 {
			t.Fatalf("task resume: %s", stderr)
		}
		eventually(t, "all orders are settled", func() bool { return count(t, db, "orders WHERE state = 'SETTLED' AND times = 1") == orders })
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != 0 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
	})
}

// beatOften shortens the heartbeat interval in a rota.yaml of openOrders.
func beatOften(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "rota.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, string(text)+"    heartbeat_interval: 200ms\n")
}
