package centertest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

func testRebalance(t *testing.T, c *center.Center) {
	t.Run("P8 servers join and the oldest hands over", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{QueueNames: []string{"1", "2", "3", "4", "5"}})
		r.join("A")
		r.wantOwners("A", "A", "A", "A", "A")
		r.join("B")
		r.wantOwners("A", "A>B", "A", "A>B", "A")
		r.join("C")
		r.wantOwners("A", "A>B", "A>C", "A", "A>B")
		r.join("D")
		r.wantOwners("A", "A>B", "A>C", "A>D", "A")
		r.release("A", r.handover("2", "B"), r.handover("3", "C"), r.handover("4", "D"))
		r.wantOwners("A", "B", "C", "D", "A")
		r.rebalance("A")
		r.wantOwners("A", "B", "C", "D", "A")
		want := []string{ops.EventGranted, ops.EventRequested, ops.EventReleased}
		if diff := cmp.Diff(want, r.eventKinds("2")); diff != "" {
			t.Fatalf("events of queue 2 (-want +got):\n%s", diff)
		}
	})
	t.Run("P7 a server owns at most max_queues_per_server queues", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3, MaxQueuesPerServer: 1})
		r.join("A")
		r.wantOwners("A", "-", "-")
		r.join("B")
		r.wantOwners("A", "B", "-")
	})
	t.Run("P8 a rebalance without a change writes nothing", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.join("A", "B")
		before := r.readInt("SELECT plan_version FROM schedule_task_running WHERE task_type = '%s'", r.task)
		r.rebalance("A")
		_, err := c.Roster().Planner(r.task, r.uuid("A")).Rebalance(t.Context(), roster.RebalanceOptions{Always: true, Watched: time.Hour, MaxHeartbeatAge: time.Minute})
		r.must(err)
		if after := r.readInt("SELECT plan_version FROM schedule_task_running WHERE task_type = '%s'", r.task); after != before {
			t.Fatalf("the rebalance raised the plan version from %d to %d, want no change", before, after)
		}
	})
}

func testHandEdits(t *testing.T, c *center.Center) {
	t.Run("S4 one server audits, and the audit repairs a hand edit", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		r.exec("UPDATE schedule_queue SET cur_server = 'typo' WHERE task_type = '%s' AND queue_id = '1'", r.task)
		turn, err := c.Roster().Planner(r.task, r.uuid("A")).Audit(t.Context())
		r.must(err)
		if !turn {
			t.Fatal("the audit is not due, want the first one to run")
		}
		r.wantOwners("A", "B")
		if turn, err := c.Roster().Planner(r.task, r.uuid("B")).Audit(t.Context()); err != nil || turn {
			t.Fatalf("an audit is due right after another: %t, want false: %v", turn, err)
		}
	})
	t.Run("S4 a task type with queues and without servers is found, unless it is paused", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		want := func(want bool, when string) {
			t.Helper()
			list, err := c.Roster().Unserved(t.Context())
			r.must(err)
			if slices.Contains(list, r.task) != want {
				t.Errorf("%s: task types without servers %v, and %s is one of them: want %t", when, list, r.task, want)
			}
		}
		r.exec("UPDATE schedule_queue SET gmt_modified = '2020-01-01 00:00:00.000000' WHERE task_type = '%s'", r.task)
		want(false, "it has a server")
		r.makeSilent("A")
		want(true, "its server is silent")
		r.exec("UPDATE schedule_server SET heartbeat_time = '2999-01-01 00:00:00.000000' WHERE task_type = '%s'", r.task)
		want(true, "its server died before the clock was set back") // S7
		r.must(c.Roster().Operator("test").Pause(t.Context(), r.task, true))
		want(false, "it is paused")
		r.must(c.Roster().Operator("test").Pause(t.Context(), r.task, false))
		r.exec("DELETE FROM schedule_server WHERE task_type = '%s'", r.task)
		want(true, "it has no server")
		r.exec("UPDATE schedule_queue SET gmt_modified = %s WHERE task_type = '%s' AND queue_id = '1'", c.Roster().DB.Now, r.task)
		want(false, "a queue has changed just now")
	})
	t.Run("the roster works on after its row in schedule_task_type is deleted", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.exec("DELETE FROM schedule_task_type WHERE task_type = '%s'", r.task)
		if p, ok := r.heartbeat("A"); !ok || p.SettingsVersion != -1 {
			t.Fatalf("heartbeat reply %+v, want one with settings version -1; registered: %t", p, ok)
		}
		r.join("B")
		r.wantOwners("A", "A>B")
	})
}

// testStalledTransaction checks that a fenced transaction delays changes of its own queues only.
func testStalledTransaction(t *testing.T, c *center.Center) {
	t.Run("L5 a release skips a queue that a transaction holds", func(t *testing.T) {
		if !needsRowLocks(t, c) {
			return
		}
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A", "B")
		ctx := r.batch("A", "1")
		tx, err := c.DB().BeginTx(ctx, nil)
		r.must(err)
		r.must(center.Fence(ctx, tx))
		if diff := cmp.Diff([]string{"3"}, r.release("A", r.handover("1", "B"), r.handover("3", "B"))); diff != "" {
			t.Fatalf("released queues (-want +got):\n%s", diff)
		}
		r.must(tx.Commit())
		r.release("A", r.handover("1", "B"))
		r.wantOwners("A", "B", "A", "B")
	})
	t.Run("L5 a transaction that fences by writing holds no place beside its row", func(t *testing.T) {
		testPlaceBesideFence(t, c)
	})
	t.Run("L5 an expiry leaves out the queue that a transaction holds", func(t *testing.T) {
		if !needsRowLocks(t, c) {
			return
		}
		r := newFixture(t, c, center.Settings{Queues: 3})
		r.join("A")
		ctx := r.batch("A", "1")
		tx, err := c.DB().BeginTx(ctx, nil)
		r.must(err)
		r.must(center.Fence(ctx, tx))
		r.makeSilent("A")
		r.register("B")
		r.rebalanceExpiring("B")
		r.wantOwners("B", "A", "B")
		r.must(tx.Commit()) // still under the fence: queue 1 kept its owner
		r.rebalanceSkipped("B")
		r.wantOwners("B", "B", "B")
	})
}

// testPlaceBesideFence hands a queue to B while the last of A's queues is fenced by writing. In an index of the owners,
// B's first entry comes after A's last one. A transaction at REPEATABLE READ that has found its row by that index holds
// the place between them. MariaDB prefers that index once it knows the size of the tables.
func testPlaceBesideFence(t *testing.T, c *center.Center) {
	if !needsRowLocks(t, c) {
		return
	}
	r := newFixture(t, c, center.Settings{Queues: 500})
	r.join("A", "B")
	if c.Dialect().Family() == schema.MySQL {
		r.exec("ANALYZE TABLE schedule_queue")
	}
	tx, err := c.DB().BeginTx(t.Context(), nil)
	r.must(err)
	defer tx.Rollback()
	r.must(center.Fence(c.Bind(t.Context(), center.Batch{
		Server: r.uuid("A"), TaskType: r.task, Queue: center.QueueEpoch{ID: "99", Epoch: r.epoch("99")}, Cursor: &center.CursorMove{To: "x"},
	}), tx))
	if diff := cmp.Diff([]string{"1"}, r.release("A", r.handover("1", "B"))); diff != "" {
		t.Errorf("released queues (-want +got):\n%s", diff)
	}
}
