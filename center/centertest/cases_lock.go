package centertest

import (
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

func testLockRow(t *testing.T, c *center.Center) {
	t.Run("L1 a rebalance waits for the lock row, then reads what its holder wrote", func(t *testing.T) {
		if !locksReach(t, c) {
			return
		}
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.register("A")
		other, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer other.Rollback()
		for _, s := range []string{
			"UPDATE schedule_task_running SET version = version + 1, membership_version = membership_version + 1 WHERE task_type = '" + r.task + "'",
			"INSERT INTO schedule_server (uuid, task_type, state, register_time, heartbeat_time, last_error, labels) VALUES ('" + r.uuid("B") + "', '" + r.task + "', 'SERVING', '2020-01-01 00:00:00.000000', '2020-01-01 00:00:00.000000', '', '')",
		} {
			_, err := other.ExecContext(t.Context(), s)
			r.must(err)
		}
		var g errgroup.Group
		g.Go(func() error {
			_, err := c.Roster().Planner(r.task, r.uuid("A")).Rebalance(t.Context(), roster.RebalanceOptions{})
			return err
		})
		time.Sleep(100 * time.Millisecond) // a rebalance that does not wait ends in this time
		r.must(other.Commit())
		r.must(g.Wait())
		r.wantOwners("B", "A") // B registered first
	})
	t.Run("L1 each change of ownership raises the version of the lock row", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		version := func() int64 {
			return r.readInt("SELECT version FROM schedule_task_running WHERE task_type = '%s'", r.task)
		}
		last := version()
		for _, change := range []func(){
			func() { r.register("A") }, func() { r.rebalance("A") }, func() { r.join("B") },
			func() { r.release("A", r.handover("1", "B")) }, func() { r.must(c.Roster().Server(r.task, r.uuid("B")).Leave(t.Context(), nil, roster.Reservation{})) },
		} {
			change()
			now := version()
			if now <= last {
				t.Fatalf("the lock row has version %d after version %d", now, last)
			}
			last = now
		}
	})
}

// testLockReason checks that the lock row is taken only when something is to do.
func testLockReason(t *testing.T, c *center.Center) {
	t.Run("S3 a server that finds the plan up to date does not take the lock row", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		version := func() int64 {
			return r.readInt("SELECT version FROM schedule_task_running WHERE task_type = '%s'", r.task)
		}
		before := version()
		r.rebalance("A")
		r.rebalanceExpiring("B") // no server is expired
		if now := version(); now != before {
			t.Fatalf("the version of the lock row went from %d to %d without a change", before, now)
		}
		r.makeSilent("B")
		r.rebalanceExpiring("A")
		if now := version(); now == before {
			t.Fatal("a server had expired, but the rebalance did not take the lock row")
		}
	})
	t.Run("S3 with NoWait, a rebalance returns Busy while the lock row is busy", func(t *testing.T) {
		if !needsRowLocks(t, c) {
			return
		}
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.register("A") // a rebalance is due
		other, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer other.Rollback()
		_, err = other.ExecContext(t.Context(), "UPDATE schedule_task_running SET version = version + 1 WHERE task_type = '"+r.task+"'")
		r.must(err)
		tryRebalance := func(busy bool) {
			t.Helper()
			done, err := c.Roster().Planner(r.task, r.uuid("A")).Rebalance(t.Context(), roster.RebalanceOptions{NoWait: true})
			r.must(err)
			if done.Busy != busy {
				t.Fatalf("Busy is %t, want %t", done.Busy, busy)
			}
		}
		tryRebalance(true)
		r.wantOwners("-", "-")
		r.must(other.Commit())
		tryRebalance(false)
		r.wantOwners("A", "A")
	})
	t.Run("S3 a server on standby does not raise the membership version", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A", "B")
		membership := func() int64 {
			return r.readInt("SELECT membership_version FROM schedule_task_running WHERE task_type = '%s'", r.task)
		}
		before := membership()
		r.heartbeat("A")
		r.heartbeat("B") // its reported state is SERVING, and STANDBY follows from owning nothing
		r.rebalance("A")
		if membership() != before {
			t.Fatalf("the membership version went from %d to %d, want no change", before, membership())
		}
	})
}

func testSnapshot(t *testing.T, c *center.Center) {
	t.Run("S2 a view reads the plan version and the queues in one snapshot", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		r.exec("UPDATE schedule_task_running SET plan_version = 0 WHERE task_type = '%s'", r.task)
		r.exec("UPDATE schedule_queue SET epoch = 0 WHERE task_type = '%s'", r.task)
		var g errgroup.Group
		done := make(chan struct{})
		g.Go(func() error {
			defer close(done)
			for range 100 { // one transaction raises both the version and the epoch
				tx, err := c.DB().BeginTx(t.Context(), nil)
				if err != nil {
					return err
				}
				for _, s := range []string{"UPDATE schedule_task_running SET plan_version = plan_version + 1", "UPDATE schedule_queue SET epoch = epoch + 1"} {
					if _, err := tx.ExecContext(t.Context(), s+" WHERE task_type = '"+r.task+"'"); err != nil {
						return err
					}
				}
				if err := tx.Commit(); err != nil {
					return err
				}
			}
			return nil
		})
		for more := true; more; {
			select {
			case <-done:
				more = false
			default:
			}
			v, err := c.Roster().Server(r.task, r.uuid("A")).View(t.Context())
			r.must(err)
			if v.PlanVersion != v.Queues[0].Epoch {
				t.Fatalf("a view has plan version %d and queues of version %d", v.PlanVersion, v.Queues[0].Epoch)
			}
		}
		r.must(g.Wait())
	})
}
