package centertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// drainAll gives up the queues that a server drains for a change.
func (r queueSteps) drainAll(name string) {
	r.Helper()
	var drained []roster.QueueEpoch
	v, err := r.c.Roster().Server(r.task, r.uuid(name)).View(r.Context())
	r.must(err)
	for _, q := range v.Queues {
		if q.Owner == r.uuid(name) && q.Changing {
			drained = append(drained, roster.QueueEpoch{ID: q.ID, Epoch: q.Epoch})
		}
	}
	_, err = r.c.Roster().Server(r.task, r.uuid(name)).GiveUp(r.Context(), drained...)
	r.must(err)
}

// repartition requests another number of queues.
func (r queueSteps) repartition(total int) {
	r.Helper()
	r.must(r.tryRepartition(total))
}

// tryRepartition requests another number of queues. It checks that who asks before gets the same answer.
func (r queueSteps) tryRepartition(total int) error {
	r.Helper()
	asked := r.c.Roster().Ask(r.Context(), r.task, func(ctx context.Context, l *roster.LockTx) error {
		return l.MayRepartition(ctx, total, 0)
	})
	err := r.c.Roster().Operator("test").Repartition(r.Context(), r.task, total, 0)
	if fmt.Sprint(asked) != strings.TrimPrefix(fmt.Sprint(err), "repartition ") {
		r.Errorf("%d queues: error %v, and %v before", total, err, asked)
	}
	return err
}

// changes returns the changes that wait, as the lock row has them.
func (r queueSteps) changes() string {
	r.Helper()
	return strings.Join(r.readColumn(`SELECT COALESCE(queue_changes, '') FROM schedule_task_running
		WHERE task_type = '%s' AND own_sign = '%s'`, r.task, r.c.OwnSign()), "")
}

// wantChanges checks the changes that wait.
func (r queueSteps) wantChanges(want string) {
	r.Helper()
	if got := r.changes(); got != want {
		r.Fatalf("the changes that wait are %q, want %q", got, want)
	}
}

func testRepartition(t *testing.T, c *center.Center) {
	// pair has queues 0 and 2 with A, and queue 1 with B.
	pair := func(t *testing.T) *fixture {
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		return r
	}
	t.Run("N1 a request that is written by hand is carried out", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.join("A")
		before := r.read("A")
		r.exec(`UPDATE schedule_task_running SET queue_changes = '{"all": 2}' WHERE task_type = '%s'`, r.task)
		_, err := c.Roster().Planner(r.task, r.uuid("A")).Audit(t.Context())
		r.must(err)
		if p, _ := r.heartbeat("A"); p.QueueVersion == before.Version {
			t.Error("the audit does not tell the owner")
		}
		r.drainAll("A")
		r.wantOwners("A", "A")
	})
	for name, total := range map[string]int{"more": 5, "fewer": 2} {
		t.Run("N1 H6 a repartition waits until all queues are given up, "+name+" queues", func(t *testing.T) {
			r := pair(t)
			r.exec("UPDATE schedule_queue SET epoch = 70 WHERE task_type = '%s' AND queue_id = '2'", r.task)
			r.repartition(total)
			request := fmt.Sprintf(`{"all":%d}`, total)
			r.wantChanges(request)
			r.drainAll("A")
			r.rebalance("B")
			r.wantOwners("-", "B", "-")
			if r.finishRemovalUnder("B", "1", r.epoch("1")-1) || r.finishRemoval("A", "1") {
				t.Fatal("a queue was given up under an old epoch, or by another server")
			}
			r.wantChanges(request)
			r.drainAll("B")
			r.wantChanges("")
			if got := len(r.owners()); got != total {
				t.Fatalf("the task type has %d queues, want %d", got, total)
			}
			epoch := r.epoch("1")
			event := fmt.Sprintf("SELECT 1 FROM schedule_event WHERE task_type = '%s' AND kind = '%s' AND epoch <= %d AND epoch > 71", r.task,
				roster.EventRepartitioned, epoch)
			if CountRows(t, c, event) != 1 || epoch <= 71 {
				t.Fatalf("queue 1 has epoch %d, want one above 71, the highest of the old number, with an event", epoch)
			}
			if p, _ := r.heartbeat("A"); p.QueueTotal != total {
				t.Fatalf("heartbeat reply %+v, want %d queues", p, total)
			}
			for _, owner := range r.owners() {
				if owner == "-" {
					t.Fatalf("owners of the queues %v, want one for each", r.owners())
				}
			}
		})
	}
	t.Run("N1 the queue of a dead server is free when it expires", func(t *testing.T) {
		r := pair(t)
		r.repartition(2)
		r.makeSilent("B")
		r.drainAll("A")
		r.wantOwners("-", "B", "-")
		r.rebalanceExpiring("A")
		r.rebalance("A")
		r.wantOwners("A", "A")
	})
	t.Run("N1 the queues of a server that leaves are free", func(t *testing.T) {
		r := pair(t)
		r.repartition(2)
		r.drainAll("A")
		r.must(c.Roster().Server(r.task, r.uuid("B")).Leave(t.Context(), nil, roster.Reservation{}))
		r.rebalance("A")
		r.wantOwners("A", "A")
	})
	t.Run("N1 queues that nobody has change at once", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.repartition(2)
		r.wantChanges("")
		r.wantOwners("-", "-")
	})
	t.Run("N1 L5 a change waits for a transaction, and no other server for the change", func(t *testing.T) {
		if !needsRowLocks(t, c) {
			return
		}
		r := pair(t)
		r.repartition(2)
		tx, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		r.must(center.Fence(r.batch("B", "1"), tx))
		r.drainAll("A")
		r.drainAll("B")
		r.wantOwners("-", "B", "-")
		r.must(tx.Commit())
		r.drainAll("B")
		r.wantChanges("")
	})
}

func testRepartitionRequests(t *testing.T, c *center.Center) {
	t.Run("N1 H6 a queue that comes back starts above its old epoch", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		for range 5 {
			r.exec("UPDATE schedule_queue SET epoch = epoch + 1 WHERE task_type = '%s' AND queue_id = '1'", r.task)
		}
		old := r.epoch("1")
		divisions := map[string]bool{}
		for _, total := range []int{1, 2} {
			r.repartition(total)
			r.drainAll("A")
			for _, d := range r.readColumn("SELECT division FROM schedule_queue WHERE task_type = '%s'", r.task) {
				divisions[d] = true
			}
		}
		if len(divisions) != 2 {
			t.Fatalf("the queues were of the divisions %v, want one for each number", divisions)
		}
		if now := r.epoch("1"); now <= old {
			t.Fatalf("queue 1 has epoch %d, want one above %d, its last", now, old)
		}
	})
	t.Run("N1 a queue that was given up for an earlier request is worked again", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		r.repartition(4)
		r.drainAll("A")
		r.repartition(2)
		if p, _ := r.heartbeat("B"); !p.PlanDue {
			t.Fatal("the withdrawal leaves no plan due")
		}
		r.rebalance("B")
		r.wantOwners("A", "B")
		r.repartition(4)
		r.drainAll("B")
		r.wantOwners("A", "-")
		r.wantChanges(`{"all":4}`)
	})
	t.Run("N1 a server that joins meanwhile gets no queue, and is not waited for", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.repartition(4)
		r.join("B")
		r.wantOwners("A", "A")
		r.drainAll("A")
		r.wantChanges("")
		if owners := r.owners(); len(owners) != 4 || strings.Count(strings.Join(owners, ""), "B") != 2 {
			t.Fatalf("owners %v, want 4 queues, 2 of them with B", owners)
		}
	})
}

func testRepartitionCursors(t *testing.T, c *center.Center) {
	t.Run("N1 a request is withdrawn although a queue has a cursor now", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.repartition(4)
		r.exec("UPDATE schedule_queue SET cursor_value = '7' WHERE task_type = '%s' AND queue_id = '1'", r.task)
		r.repartition(2)
		r.wantChanges("")
	})
	t.Run("N1 the events tell a request from its withdrawal", func(t *testing.T) {
		r := newFixture(t, c, splittable)
		r.join("A")
		total := int(r.readInt("SELECT COUNT(*) FROM schedule_queue WHERE task_type = '%s'", r.task))
		ask := func(total int) { r.must(c.Roster().Operator("test").Repartition(t.Context(), r.task, total, 0)) }
		ask(total) // nothing is requested
		ask(7)
		ask(total)
		r.resize("1", 2*total)
		ask(total)
		r.resize("1", 2*total)
		ask(7)
		want := []string{
			fmt.Sprintf("7 queues were requested instead of %d", total), "the request for 7 queues was withdrawn",
			"the requests to split or merge queues were withdrawn",
			fmt.Sprintf("7 queues were requested instead of %d; the requests to split or merge queues were withdrawn", total),
		}
		reasons := r.readColumn("SELECT reason FROM schedule_event WHERE task_type = '%s' AND kind = '%s' ORDER BY event_id", r.task, roster.EventRepartition)
		if diff := cmp.Diff(want, reasons); diff != "" {
			t.Fatalf("reasons of the events (-want +got):\n%s", diff)
		}
	})
	t.Run("N1 a repartition is refused while queues have cursors", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		cursor := func(value string) {
			r.exec("UPDATE schedule_queue SET cursor_value = '%s' WHERE task_type = '%s' AND queue_id = '1'", value, r.task)
		}
		cursor("17")
		if err := r.tryRepartition(4); err == nil || !strings.Contains(err.Error(), "the queues have cursors") {
			t.Fatalf("request a repartition: error %v, want the cursors in it", err)
		}
		cursor("")
		r.repartition(4)
		cursor("18")
		r.drainAll("A")
		r.wantChanges("")
		r.wantTotals("0/2 A", "1/2 A")
		if reason := r.lastReason(roster.EventRepartition); !strings.Contains(reason, "the request was withdrawn: the queues have cursors") {
			t.Fatalf("the event says %q, want the cursors in it", reason)
		}
	})
	t.Run("N1 a window is done if all queues had done it", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		done := func() int64 {
			return r.readInt("SELECT COUNT(window_done_at) FROM schedule_queue WHERE task_type = '%s'", r.task)
		}
		if done() != 2 {
			t.Fatalf("%d new queues have no window to catch up on, want 2", done())
		}
		r.exec("UPDATE schedule_queue SET window_done_at = NULL WHERE task_type = '%s'", r.task)
		r.must(c.Roster().Server(r.task, r.uuid("A")).WindowDone(t.Context(), center.QueueEpoch{ID: "1", Epoch: r.epoch("1")}, since))
		if err := c.Roster().Server(r.task, r.uuid("A")).WindowDone(t.Context(), center.QueueEpoch{ID: "0", Epoch: r.epoch("0") - 1}, since); !center.IsFenced(err) {
			t.Fatalf("window done under an old epoch: error %v, want ErrFenced", err)
		}
		v, err := c.Roster().Server(r.task, r.uuid("A")).View(t.Context())
		r.must(err)
		if !v.Queues[1].WindowDone.Equal(since) || !v.Queues[0].WindowDone.IsZero() {
			t.Fatalf("queues %+v, want only the second to be done with the window", v.Queues)
		}
		for i, want := range []int64{0, 5} {
			r.repartition(4 + i)
			r.drainAll("A")
			if done() != want {
				t.Fatalf("%d queues are done with the window, want %d", done(), want)
			}
			r.exec("UPDATE schedule_queue SET window_done_at = '2026-01-02 03:04:05.000000' WHERE task_type = '%s'", r.task)
		}
	})
}

func testRepartitionErrors(t *testing.T, c *center.Center) {
	t.Run("an error of a change of their number names the cause", func(t *testing.T) {
		named := newFixture(t, c, center.Settings{QueueNames: []string{"n", "s"}})
		wantErrors(t, map[string]error{
			"the queues have names":            named.tryRepartition(4),
			"queues (0) must be between 1 and": named.tryRepartition(0),
			"unknown task type":                c.Roster().Operator("test").Repartition(t.Context(), "nobody", 3, 0),
		})
	})
}
