package centertest

import (
	"database/sql"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// testSkippedRows checks what becomes of the changes that a plan skipped, because a fenced transaction holds their
// rows.
func testSkippedRows(t *testing.T, c *center.Center) {
	if !needsRowLocks(t, c) {
		return
	}
	t.Run("L5 the owner learns which rows were skipped", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		tx := r.stall("A", "1")
		r.join("B")
		r.wantOwners("A", "A", "A", "A>B")
		r.wantSkipped("A", "1")
		if diff := cmp.Diff([]string{"1"}, r.rebalanceSkipped("A")); diff != "" {
			t.Fatalf("skipped queues (-want +got):\n%s", diff)
		}
		if got, want := r.findings("plan"), "NOTE the last plan could not move queues, because transactions hold their rows: 1"; len(got) != 1 || got[0] != want {
			t.Errorf("findings %q, want %q", got, want)
		}
		r.must(tx.Commit())
		if skipped := r.rebalanceSkipped("A"); len(skipped) > 0 {
			t.Fatalf("skipped queues %q, want none", skipped)
		}
		r.wantOwners("A", "A>B", "A", "A>B")
		r.wantSkipped("A")
	})
	t.Run("L5 all servers together retry once per interval", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 6})
		tx := r.stall("A", "1")
		r.join("B", "C")
		locks, elapsed := r.beatAndPlan(20, "A", "B", "C")
		if most := 2 + int64(elapsed/time.Second); locks > most {
			t.Fatalf("the lock row was taken %d times in %s, want at most %d", locks, elapsed, most)
		}
		r.must(tx.Commit())
		r.backdatePlan("'2020-01-01 00:00:00.000000'")
		r.beatAndPlan(1, "C")
		r.wantOwners("A", "A>B", "A>C", "A", "A>B", "A>C")
		r.wantSkipped("C")
	})
	t.Run("L5 a member change plans at once", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 6})
		tx := r.stall("A", "1")
		r.join("B")
		r.register("C")
		if p, _ := r.heartbeat("B"); !p.PlanDue {
			t.Fatalf("reply %+v, want a plan to be due", p)
		}
		r.rebalance("B")
		if v := r.read("C"); len(v.Queues) == 0 {
			t.Fatalf("view %+v, want queues that are requested for C", v)
		}
		r.must(tx.Rollback())
	})
	t.Run("L5 a clock that was set back delays no retry", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		tx := r.stall("A", "1")
		r.join("B")
		r.must(tx.Rollback())
		r.backdatePlan("'2120-01-01 00:00:00.000000'")
		r.beatAndPlan(1, "B")
		r.wantOwners("A", "A>B", "A", "A>B")
	})
	t.Run("L5 a skipped withdrawal is retried, and makes no owner drain", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.wantOwners("A", "A>B")
		tx := r.fence("A", "1")
		r.must(c.Roster().Operator("test").PauseServer(t.Context(), r.uuid("B"), true))
		r.wantOwners("A", "A>B")
		r.wantSkipped("A")
		r.must(tx.Rollback())
		r.backdatePlan("'2020-01-01 00:00:00.000000'")
		r.beatAndPlan(1, "A")
		r.wantOwners("A", "A")
	})
}

// stall joins a server and opens a fenced transaction of the server on the row of a queue.
func (r *fixture) stall(name, queue string) *sql.Tx {
	r.Helper()
	r.join(name)
	return r.fence(name, queue)
}

// fence opens a fenced transaction of a server on the row of a queue.
func (r *fixture) fence(name, queue string) *sql.Tx {
	r.Helper()
	ctx := r.batch(name, queue)
	tx, err := r.c.DB().BeginTx(ctx, nil)
	r.must(err)
	r.must(center.Fence(ctx, tx))
	return tx
}

// beatAndPlan sends heartbeats, and rebalances after each as a worker does. It returns how often the lock row was
// taken, and how long that took by the database's clock.
func (r *fixture) beatAndPlan(times int, names ...string) (locks int64, elapsed time.Duration) {
	r.Helper()
	const version = "SELECT version FROM schedule_task_running WHERE task_type = '%s'"
	before := r.readInt(version, r.task)
	var first, last time.Time
	for range times {
		for _, name := range names {
			p, _ := r.heartbeat(name)
			if last = p.Now; first.IsZero() {
				first = p.Now
			}
			if p.PlanDue {
				_, err := r.c.Roster().Planner(r.task, r.uuid(name)).Rebalance(r.Context(), roster.RebalanceOptions{NoWait: true})
				r.must(err)
			}
		}
	}
	return r.readInt(version, r.task) - before, last.Sub(first)
}

// backdatePlan sets the time of the last plan.
func (r *fixture) backdatePlan(to string) {
	r.Helper()
	r.exec("UPDATE schedule_task_running SET last_assign_time = %s WHERE task_type = '%s'", to, r.task)
}

// wantSkipped checks which queues the reply of a heartbeat calls skipped.
func (r *fixture) wantSkipped(name string, want ...string) {
	r.Helper()
	p, _ := r.heartbeat(name)
	if diff := cmp.Diff(want, p.Skipped); diff != "" {
		r.Fatalf("skipped queues (-want +got):\n%s", diff)
	}
}
