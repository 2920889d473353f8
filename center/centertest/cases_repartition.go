package centertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// reportDrained sends a heartbeat in which the server reports that it has drained for the requested repartition.
func (r serverSteps) reportDrained(name string) roster.HeartbeatReply {
	r.Helper()
	p, ok := r.heartbeat(name)
	if !ok {
		r.Fatalf("server %s is not registered", name)
	}
	b := roster.Heartbeat{Token: r.tokens[name] + "+", Servers: []roster.ServerReport{
		{UUID: r.uuid(name), OldToken: r.tokens[name], State: ops.StateServing, DrainedPartition: p.PartitionVersion},
	}}
	replies, err := r.c.Roster().SendHeartbeat(r.Context(), b)
	r.must(err)
	r.tokens[name] = b.Token
	return replies[r.uuid(name)]
}

// finishRepartition finishes the repartition if all servers have drained. It reports whether this call did so.
func (r serverSteps) finishRepartition(name string) bool {
	r.Helper()
	done, err := r.c.Roster().Planner(r.task, r.uuid(name)).FinishRepartition(r.Context())
	r.must(err)
	return done
}

func testRepartition(t *testing.T, c *center.Center) {
	t.Run("N1 a request that is written by hand is carried out", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.join("A")
		r.exec("UPDATE schedule_task_running SET requested_total = 2 WHERE task_type = '%s'", r.task)
		if p := r.reportDrained("A"); p.Repartition.Total != 2 || !p.Repartition.AllDrained {
			t.Fatalf("heartbeat reply %+v, want 2 requested queues and AllDrained", p)
		}
		if !r.finishRepartition("A") {
			t.Fatal("the repartition did not finish")
		}
		r.wantOwners("A", "A")
	})
	for name, total := range map[string]int{"more": 5, "fewer": 2} {
		t.Run("N1 a repartition waits until all servers have drained, "+name+" queues", func(t *testing.T) {
			r := newFixture(t, c, center.Settings{Queues: 3})
			r.join("A", "B")
			r.release("A", r.handover("1", "B"))
			before := r.epoch("1")
			r.must(c.Roster().Operator("test").Repartition(t.Context(), r.task, total, 0))
			if r.finishRepartition("A") {
				t.Fatal("the repartition finished before any server had drained")
			}
			if p := r.reportDrained("A"); p.Repartition.Total != total || p.Repartition.AllDrained {
				t.Fatalf("heartbeat reply %+v, want %d requested queues and one server left to drain", p, total)
			}
			if r.finishRepartition("A") {
				t.Fatal("the repartition finished while B had work in flight")
			}
			if p := r.reportDrained("B"); !p.Repartition.AllDrained {
				t.Fatalf("heartbeat reply %+v, want AllDrained", p)
			}
			if !r.finishRepartition("B") || r.finishRepartition("A") {
				t.Fatal("the repartition did not finish exactly once")
			}
			if got := len(r.owners()); got != total {
				t.Fatalf("the task type has %d queues, want %d", got, total)
			}
			epoch := r.epoch("1")
			if epoch <= before {
				t.Fatalf("queue 1 has epoch %d, want one above %d, the highest of the old number", epoch, before)
			}
			event := fmt.Sprintf("SELECT 1 FROM schedule_event WHERE task_type = '%s' AND kind = '%s' AND epoch = %d", r.task,
				roster.EventRepartitioned, epoch)
			if CountRows(t, c, event) != 1 {
				t.Fatalf("no event says that all queues have epoch %d", epoch)
			}
			p, _ := r.heartbeat("A")
			if p.QueueTotal != total || p.Repartition.Total != 0 || !p.PlanDue {
				t.Fatalf("heartbeat reply %+v, want %d queues, no request and a plan due", p, total)
			}
			r.rebalance("A")
			for _, owner := range r.owners() {
				if owner == "-" {
					t.Fatalf("owners of the queues %v, want one for each", r.owners())
				}
			}
		})
	}
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
			r.must(c.Roster().Operator("test").Repartition(t.Context(), r.task, total, 0))
			r.reportDrained("A")
			if !r.finishRepartition("A") {
				t.Fatalf("the repartition to %d queues did not finish", total)
			}
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
	t.Run("N1 a drain for an earlier request does not count", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.must(c.Roster().Operator("test").Repartition(t.Context(), r.task, 4, 0))
		r.reportDrained("A")
		r.must(c.Roster().Operator("test").Repartition(t.Context(), r.task, 2, 0)) // withdraws the request: A continues
		r.must(c.Roster().Operator("test").Repartition(t.Context(), r.task, 4, 0))
		if r.finishRepartition("A") {
			t.Fatal("the repartition finished while A had work in flight")
		}
	})
	t.Run("N1 the repartition waits for a server that joins meanwhile", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.must(c.Roster().Operator("test").Repartition(t.Context(), r.task, 4, 0))
		r.reportDrained("A")
		r.join("B")
		if r.finishRepartition("A") {
			t.Fatal("the repartition finished before B had drained")
		}
	})
}

func testRepartitionCursors(t *testing.T, c *center.Center) {
	t.Run("N1 a request is withdrawn although a queue has a cursor now", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.must(c.Roster().Operator("test").Repartition(t.Context(), r.task, 4, 0))
		r.exec("UPDATE schedule_queue SET cursor_value = '7' WHERE task_type = '%s' AND queue_id = '1'", r.task)
		r.must(c.Roster().Operator("test").Repartition(t.Context(), r.task, 2, 0))
		if p, _ := r.heartbeat("A"); p.Repartition.Total != 0 {
			t.Fatalf("%d queues are still requested", p.Repartition.Total)
		}
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
		if err := c.Roster().Operator("test").Repartition(t.Context(), r.task, 4, 0); err == nil || !strings.Contains(err.Error(), "the queues have cursors") {
			t.Fatalf("request a repartition: error %v, want the cursors in it", err)
		}
		cursor("")
		r.must(c.Roster().Operator("test").Repartition(t.Context(), r.task, 4, 0))
		r.reportDrained("A")
		cursor("18")
		if r.finishRepartition("A") {
			t.Fatal("the repartition finished although a queue has a cursor")
		}
		if p, _ := r.heartbeat("A"); p.Repartition.Total != 0 {
			t.Fatalf("heartbeat reply %+v, want the refused request to be withdrawn", p)
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
			r.must(c.Roster().Operator("test").Repartition(t.Context(), r.task, 4+i, 0))
			r.reportDrained("A")
			r.finishRepartition("A")
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
			"the queues have names":            c.Roster().Operator("test").Repartition(t.Context(), named.task, 4, 0),
			"queues (0) must be between 1 and": c.Roster().Operator("test").Repartition(t.Context(), named.task, 0, 0),
			"unknown task type":                c.Roster().Operator("test").Repartition(t.Context(), "nobody", 3, 0),
		})
	})
}
