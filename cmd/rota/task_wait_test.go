package main

import (
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
)

// "task wait" counts what is left to do for the queues of a task type, and ends when nothing is.
func TestTaskWait(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	left := func(task, want string) {
		t.Helper()
		s.wantError(1, "rota: wait for the queues of "+task+": not over after 1ms; left to do: "+want+"\n", "task wait "+task+" --timeout 1ms")
	}
	left("regions", "2 queues without an owner: there is no worker")
	left("settle", "2 queues to move")
	s.run("task set settle splittable=true")
	s.run("queue split settle 0")
	left("settle", "1 queue to split or merge, 2 queues to move")
	s.run("queue split settle 0 --total 4") // withdraws it

	wait := rota(t.Context(), s.dir, "task", "wait", "settle", "--database", s.url)
	var out strings.Builder
	wait.Stdout, wait.Stderr = &out, &out
	s.must(wait.Start())
	view, err := s.c.Roster().Server("settle", web1).View(t.Context())
	s.must(err)
	var requested []roster.Handover
	for _, q := range view.Queues {
		if q.Requester == web2 {
			requested = append(requested, roster.Handover{QueueID: q.ID, Epoch: q.Epoch, Requester: web2})
		}
	}
	_, err = s.c.Roster().Server("settle", web1).Release(t.Context(), requested)
	s.must(err)
	if err := wait.Wait(); err != nil || out.String() != "settle: nothing is left to do\n" {
		t.Errorf("%v, output %q", err, out.String())
	}
	if got := s.run("task wait settle -o csv"); got != "task_type,own_sign,queue_total,moves,resizes,removals,requested_total,reserved,unowned,waits_for\nsettle,BASE,4,0,0,0,,0,0,\n" {
		t.Errorf("CSV is %q", got)
	}
	restarts := roster.Reservation{Name: "settle-2", Within: time.Hour}
	s.must(s.c.Roster().Server("settle", web2).Drain(t.Context(), restarts))
	s.must(s.c.Roster().Server("settle", web2).Leave(t.Context(), nil, restarts))
	left("settle", "2 queues reserved for a restarting worker")
	s.run("task set settle queues=5")
	left("settle", "5 queues instead of 4 when all workers have drained")
}
