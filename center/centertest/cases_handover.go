package centertest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

func testRelease(t *testing.T, c *center.Center) {
	t.Run("H2 L6 the requester becomes the owner", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		r.wantOwners("A", "B")
	})
	t.Run("H2 S1 a release does not wait for a heartbeat of the requester", func(t *testing.T) {
		if !needsRowLocks(t, c) {
			return
		}
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		h := r.handover("1", "B")
		heartbeat, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer heartbeat.Rollback()
		_, err = heartbeat.ExecContext(t.Context(), "UPDATE schedule_server SET beat_count = beat_count + 1 WHERE uuid = '"+r.uuid("B")+"'")
		r.must(err)
		if released := r.release("A", h); len(released) != 1 {
			t.Fatalf("released queues %v, want queue 1", released)
		}
	})
	t.Run("H2 a release of several queues tells the requester", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A", "B")
		before, _ := r.heartbeat("B")
		epoch := r.epoch("1")
		got := r.release("A", r.handover("3", "B"), r.handover("1", "B"))
		if diff := cmp.Diff([]string{"1", "3"}, got); diff != "" {
			t.Fatalf("released queues (-want +got):\n%s", diff)
		}
		r.wantOwners("A", "B", "A", "B")
		after, _ := r.heartbeat("B")
		if after.History.PlanVersion <= before.History.PlanVersion || r.epoch("1") != epoch+1 {
			t.Fatalf("the plan version went from %d to %d, want a rise; the epoch from %d to %d, want one more", before.History.PlanVersion, after.History.PlanVersion, epoch, r.epoch("1"))
		}
	})
}

// testReleaseGuard checks that a release needs each of its conditions.
func testReleaseGuard(t *testing.T, c *center.Center) {
	change := map[string]func(r *fixture, h *roster.Handover){
		"another epoch":     func(_ *fixture, h *roster.Handover) { h.Epoch++ },
		"another requester": func(r *fixture, h *roster.Handover) { h.Requester = r.uuid("A") },
		"the requester is gone": func(r *fixture, _ *roster.Handover) {
			r.exec("DELETE FROM schedule_server WHERE uuid = '%s'", r.uuid("B"))
		},
		"the requester drains": func(r *fixture, _ *roster.Handover) {
			r.must(c.Roster().Server(r.task, r.uuid("B")).Drain(r.Context(), roster.Reservation{}))
		},
		"the requester is drained by hand, and no plan has seen it": func(r *fixture, _ *roster.Handover) {
			r.exec("UPDATE schedule_server SET state = 'DRAINING' WHERE uuid = '%s'", r.uuid("B"))
		},
		"a call of the queue hangs on the requester (P9)": func(r *fixture, _ *roster.Handover) {
			r.exec("UPDATE schedule_server SET hung_queues = '[\"1\"]' WHERE uuid = '%s'", r.uuid("B"))
		},
		"the request is withdrawn": func(r *fixture, _ *roster.Handover) {
			r.exec("UPDATE schedule_queue SET req_server = NULL WHERE task_type = '%s'", r.task)
		},
		"another owner": func(r *fixture, _ *roster.Handover) {
			r.exec("UPDATE schedule_queue SET cur_server = 'x' WHERE task_type = '%s'", r.task)
		},
	}
	for name, f := range change {
		t.Run("H2 no release: "+name, func(t *testing.T) {
			r := newFixture(t, c, center.Settings{Queues: 2})
			r.join("A", "B")
			h := r.handover("1", "B")
			epoch := h.Epoch
			f(r, &h)
			if released := r.release("A", h); len(released) > 0 {
				t.Fatalf("released queues %v, want none", released)
			}
			if got := r.epoch("1"); got != epoch {
				t.Fatalf("queue 1 has epoch %d, want %d", got, epoch)
			}
		})
	}
}

func testRetake(t *testing.T, c *center.Center) {
	t.Run("H3 an owner retakes a queue under a new epoch", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		epoch := r.epoch("0")
		kept, err := c.Roster().Server(r.task, r.uuid("A")).Retake(t.Context(), "0", epoch)
		r.must(err)
		if !kept || r.epoch("0") != epoch+1 {
			t.Fatalf("retaken: %t, epoch %d, want true and %d", kept, r.epoch("0"), epoch+1)
		}
		if kept, err = c.Roster().Server(r.task, r.uuid("A")).Retake(t.Context(), "0", epoch); err != nil || kept {
			t.Fatalf("retaken under an old epoch: %t, want false: %v", kept, err)
		}
	})
}

func testLeave(t *testing.T, c *center.Center) {
	t.Run("H4 the others own the queues after a server has left", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"), r.handover("3", "B"))
		r.join("C")
		r.must(c.Roster().Server(r.task, r.uuid("A")).Leave(t.Context(), nil, roster.Reservation{}))
		owners := r.owners()
		if slices.Contains(owners, "A") || slices.Contains(owners, "-") {
			t.Fatalf("owners of the queues %v, want B or C for each", owners)
		}
		r.must(c.Roster().Server(r.task, r.uuid("C")).Leave(t.Context(), nil, roster.Reservation{}))
		r.must(c.Roster().Server(r.task, r.uuid("C")).Leave(t.Context(), nil, roster.Reservation{})) // a server may leave twice
		r.wantOwners("B", "B", "B", "B")
		if diff := cmp.Diff([]string{"LEFT", "LEFT"}, r.readColumn("SELECT reason FROM schedule_server_history WHERE task_type = '%s' ORDER BY left_time", r.task)); diff != "" {
			t.Fatalf("reasons in the history (-want +got):\n%s", diff)
		}
		if got := r.eventKinds("0"); got[len(got)-1] == ops.EventTakenOver {
			t.Fatalf("events of queue 0 are %v, want no TAKEN_OVER after an orderly hand-over", got)
		}
	})
	for _, queues := range []int{1, 2} { // a change of one queue has a statement of its own
		t.Run(fmt.Sprintf("H4 H6 the last server leaves its queues without an owner, queues=%d", queues), func(t *testing.T) {
			r := newFixture(t, c, center.Settings{Queues: queues})
			r.join("A")
			epoch := r.epoch("0")
			r.must(c.Roster().Server(r.task, r.uuid("A")).Leave(t.Context(), nil, roster.Reservation{}))
			r.wantOwners(slices.Repeat([]string{"-"}, queues)...)
			if got := r.epoch("0"); got != epoch+1 {
				t.Fatalf("queue 0 has epoch %d, want %d", got, epoch+1)
			}
		})
	}
	t.Run("H5 a leaving server hands over by force what is in flight", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.must(c.Roster().Server(r.task, r.uuid("A")).Leave(t.Context(), []string{"0"}, roster.Reservation{}))
		r.wantOwners("B", "B")
		if got := r.eventKinds("0"); got[len(got)-1] != ops.EventForced {
			t.Fatalf("events of queue 0 are %v, want FORCED as the last", got)
		}
	})
}

// testPendingHandovers checks what a server learns about the owners that it waits for.
func testPendingHandovers(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 4})
	r.join("A", "B")
	pending, err := c.Roster().Server(r.task, r.uuid("B")).PendingHandovers(t.Context())
	r.must(err)
	if len(pending) != 1 || pending[0].Owner != r.uuid("A") || pending[0].Queues != 2 || pending[0].JudgeDeadInterval != judgeDeadInterval {
		t.Fatalf("pending hand-overs %+v, want 2 queues of A", pending)
	}
	if got, want := pending[0].String(), "queue 1 and 1 more are held by "+r.uuid("A")+", which finishes what it has in flight; requested 0s ago"; got != want {
		t.Errorf("text of a live owner %q, want %q", got, want)
	}
	pending[0].SilentFor = judgeDeadInterval
	if got, want := pending[0].String(), "queue 1 and 1 more are held by "+r.uuid("A")+", last heartbeat 10m0s ago; judge_dead_interval 10m0s"; got != want {
		t.Errorf("text of a silent owner %q, want %q", got, want)
	}
	if pending, err := c.Roster().Server(r.task, r.uuid("A")).PendingHandovers(t.Context()); err != nil || len(pending) > 0 {
		t.Errorf("pending hand-overs %+v of A, want none: %v", pending, err)
	}
}
