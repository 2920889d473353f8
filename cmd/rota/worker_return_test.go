package main

import (
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// A worker with a name gets its queues back after a restart, and the other one keeps its own.
func TestNamedWorkerGetsItsQueuesBack(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, dir := openOrders(t, url, 10)
		rows := func(of string) int { return count(t, db, of) }
		startWorker(t, dir, "ROTA_NAME=web-1", "ROTA_RETURN_WITHIN=1h")
		eventually(t, "one worker owns all queues", func() bool { return rows(owned) == 4 })
		p := startWorker(t, dir, "ROTA_NAME=web-0", "ROTA_RETURN_WITHIN=1h")
		eventually(t, "both own two queues", func() bool {
			return rows(owned+" WHERE s.name = 'web-0'") == 2 && rows("schedule_queue WHERE req_server IS NOT NULL") == 0
		})
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		s := &testRoster{T: t, url: url, dir: dir}
		if n := rows("schedule_assignment WHERE status = 'RESERVED' AND reserved_for = 'web-0'"); n != 2 {
			t.Errorf("%d queues are reserved for the worker, want 2", n)
		}
		s.wantOutput("queue list settle --status RESERVED", `RESERVED(.|\n)*RESERVED`)
		s.wantOutput("doctor", `queues that wait for the return of workers that have left: \d, \d`)
		requests := rows("schedule_event WHERE kind = 'REQUESTED'")
		startWorker(t, dir, "ROTA_NAME=web-0", "ROTA_RETURN_WITHIN=1h")
		eventually(t, "the worker has its queues back", func() bool { return rows(owned+" WHERE s.name = 'web-0'") == 2 })
		if n := rows("schedule_event WHERE kind = 'REQUESTED'"); n != requests {
			t.Errorf("%d queues were requested in the restart, want none", n-requests)
		}
		if n := rows(owned + " WHERE s.name = 'web-1'"); n != 2 {
			t.Errorf("the other worker owns %d queues, want 2", n)
		}
	})
}
