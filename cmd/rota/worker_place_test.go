package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
)

// Three workers of four task types with one queue each have two, one and one of them (P15). A queue that is pinned to a label
// goes to the worker that has it, and waits when that worker is gone (P14).
func TestWorkersShareTaskTypes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, dir := openOrders(t, url, 10)
		path := filepath.Join(dir, "rota.yaml")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before, task, _ := strings.Cut(strings.Replace(string(text), "queues: 4", "queues: 1", 1), "  settle:\n")
		tasks := before
		for _, name := range []string{"north", "east", "south", "west"} {
			tasks += "  " + name + ":\n" + task
		}
		writeFile(t, path, tasks)
		rows := func(of string) int { return count(t, db, of) }
		zones := []string{"a", "b", "c"}
		workers := map[string]*process{}
		for i, zone := range zones {
			workers[zone] = startWorker(t, dir, "ROTA_LABELS=zone="+zone)
			eventually(t, "the worker has joined", func() bool { return rows("schedule_server") == 4*(i+1) })
		}
		even := func() bool {
			for _, zone := range zones {
				if n := rows(owned + " WHERE s.labels = 'zone=" + zone + "'"); n < 1 || n > 2 {
					return false
				}
			}
			return rows("schedule_queue WHERE cur_server IS NOT NULL AND req_server IS NULL") == 4
		}
		var due time.Time
		eventually(t, "the totals are even", func() bool {
			if !even() && time.Since(due) > 2*time.Second {
				// An audit is due with the next heartbeat, and not only after half a minute.
				execute(t, db, "UPDATE schedule_task_running SET audited_at = NULL")
				due = time.Now()
			}
			return even()
		})
		s := &testRoster{T: t, url: url, dir: dir}
		s.wantOutput("queue pin north 0 zone=c", `queue 0 of north\$BASE: pinned to zone=c`)
		eventually(t, "the worker with the label owns the queue", func() bool {
			return rows(owned+" WHERE q.task_type = 'north' AND s.labels = 'zone=c' AND q.req_server IS NULL") == 1
		})
		if err := workers["c"].cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the queue waits", func() bool {
			return rows("schedule_assignment WHERE task_type = 'north' AND waits_for = 'pin: zone=c'") == 1
		})
		s.wantOutput("queue list north", `UNASSIGNED \(pin: zone=c\)`)
		s.wantOutput("queue unpin north 0", `queue 0 of north\$BASE: not pinned any more`)
		eventually(t, "another worker owns the queue", func() bool { return rows(owned+" WHERE q.task_type = 'north'") == 1 })
	})
}

// Two workers of four queues measure that one of them has the two queues with all the work, and one of these goes to the other
// worker (P16).
func TestWorkersEvenTheirLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("measures loads for twenty seconds")
	}
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, dir := openOrders(t, url, 40)
		path := filepath.Join(dir, "rota.yaml")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, strings.NewReplacer(
			"queues: 4\n", "queues: 4\n    balance: LOAD\n    sleep_time_interval: 5ms\n",
			"execute_number: 10", "execute_number: 1",
			// An order that is executed is another one of the same queue: the work does not end.
			"SET state = 'SETTLED'", "SET id = id + 4000, state = 'NEW'",
		).Replace(string(text)))
		execute(t, db, "UPDATE orders SET state = 'DONE'")
		startWorker(t, dir, "ROTA_LABELS=zone=a")
		eventually(t, "the first worker has joined", func() bool { return count(t, db, owned+" WHERE s.labels = 'zone=a'") == 4 })
		startWorker(t, dir, "ROTA_LABELS=zone=b")
		of := func(zone, and string) int {
			return count(t, db, owned+" WHERE s.labels = 'zone="+zone+"' AND q.req_server IS NULL"+and)
		}
		eventually(t, "each worker has half of the queues", func() bool { return of("a", "") == 2 && of("b", "") == 2 })
		busy, err := center.Column[string](t.Context(), db, "SELECT q.queue_id FROM "+owned+" WHERE s.labels = 'zone=b' ORDER BY q.queue_id")
		if err != nil {
			t.Fatal(err)
		}
		execute(t, db, "UPDATE orders SET state = 'NEW' WHERE mod(id, 4) IN ("+strings.Join(busy, ", ")+")")
		among := " AND q.queue_id IN ('" + strings.Join(busy, "', '") + "')"
		var due time.Time
		eventually(t, "each worker has one of the busy queues", func() bool {
			even := of("a", among) == 1 && of("b", among) == 1
			if !even && time.Since(due) > 2*time.Second { // an audit is due with the next heartbeat, and not only after half a minute
				execute(t, db, "UPDATE schedule_task_running SET audited_at = NULL")
				due = time.Now()
			}
			return even
		})
		if n := count(t, db, "schedule_event WHERE kind = 'REQUESTED' AND reason = 'its owner has more than its part of the load'"); n != 1 {
			t.Errorf("%d queues moved to even the load, want 1", n)
		}
		s := &testRoster{T: t, url: url, dir: dir}
		s.wantOutput("plan settle --by-load", `no queue would move\n`)
	})
}
