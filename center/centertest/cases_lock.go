package centertest

import (
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/schema"
)

func testLock(t *testing.T, c *center.Center) {
	t.Run("L1 who plans waits for who has the lock row, and sees what it did", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 2})
		r.register("A")
		other, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer other.Rollback()
		for _, s := range []string{
			"UPDATE schedule_task_running SET version = version + 1, membership_version = membership_version + 1 WHERE task_type = '" + r.task + "'",
			"INSERT INTO schedule_server (uuid, task_type, state, register_time) VALUES ('" + r.uuid("B") + "', '" + r.task + "', 'SERVING', '2020-01-01 00:00:00.000000')",
		} {
			_, err := other.ExecContext(t.Context(), s)
			r.must(err)
		}
		var g errgroup.Group
		g.Go(func() error {
			_, err := c.Roster().Rebalance(t.Context(), r.task, roster.RebalanceOptions{Actor: r.uuid("A")})
			return err
		})
		time.Sleep(100 * time.Millisecond) // for the one that does not wait; the one that does may begin at any time
		r.must(other.Commit())
		r.must(g.Wait())
		r.wantOwners("B", "A") // B is the older
	})
	t.Run("L1 every change of ownership leaves a trace", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 2})
		version := func() int64 { return r.one("SELECT version FROM schedule_task_running WHERE task_type = '%s'", r.task) }
		last := version()
		for _, change := range []func(){
			func() { r.register("A") }, func() { r.assign("A") }, func() { r.join("B") },
			func() { r.release("A", r.handover("1", "B")) }, func() { r.must(c.Roster().Leave(t.Context(), r.task, r.uuid("B"), nil)) },
		} {
			change()
			now := version()
			if now <= last {
				t.Fatalf("the lock row's version is %d, and was %d", now, last)
			}
			last = now
		}
	})
	t.Run("S3 who finds that the plan is made does not wait for the lock row", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		version := func() int64 { return r.one("SELECT version FROM schedule_task_running WHERE task_type = '%s'", r.task) }
		before := version()
		r.assign("A")
		r.expire("B") // nobody is dead
		if now := version(); now != before {
			t.Fatalf("the lock row's version went from %d to %d, although there was nothing to do", before, now)
		}
		r.silence("B")
		r.expire("A")
		if now := version(); now == before {
			t.Fatal("there was a dead server, and the lock row was not taken")
		}
	})
	t.Run("S3 who need not wait for the lock row does not", func(t *testing.T) {
		if c.Dialect() == schema.SQLite {
			t.Skip("SQLite has one lock for all")
		}
		r := newRoster(t, c, center.Settings{Queues: 2})
		r.register("A") // a plan is due
		other, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer other.Rollback()
		_, err = other.ExecContext(t.Context(), "UPDATE schedule_task_running SET version = version + 1 WHERE task_type = '"+r.task+"'")
		r.must(err)
		now := func(busy bool) {
			t.Helper()
			done, err := c.Roster().Rebalance(t.Context(), r.task, roster.RebalanceOptions{Actor: r.uuid("A"), NoWait: true})
			r.must(err)
			if done.Busy != busy {
				t.Fatalf("busy is %t", done.Busy)
			}
		}
		now(true)
		r.wantOwners("-", "-")
		r.must(other.Commit())
		now(false)
		r.wantOwners("A", "A")
	})
	t.Run("S3 a plan that changes nothing is no membership", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 1})
		r.join("A", "B")
		membership := func() int64 {
			return r.one("SELECT membership_version FROM schedule_task_running WHERE task_type = '%s'", r.task)
		}
		before := membership()
		r.beat("A")
		r.beat("B") // STANDBY is derived, and bumps nothing
		r.assign("A")
		if membership() != before {
			t.Fatal("everybody would plan again")
		}
	})
	t.Run("S2 a view is of one moment", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 1})
		r.join("A")
		r.exec("UPDATE schedule_task_running SET plan_version = 0 WHERE task_type = '%s'", r.task)
		r.exec("UPDATE schedule_queue SET epoch = 0 WHERE task_type = '%s'", r.task)
		var g errgroup.Group
		done := make(chan struct{})
		g.Go(func() error {
			defer close(done)
			for range 100 { // the version and the epoch rise together
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
			v, err := c.Roster().View(t.Context(), r.task, r.uuid("A"))
			r.must(err)
			if v.PlanVersion != v.Queues[0].Epoch {
				t.Fatalf("version %d with the queues of version %d", v.PlanVersion, v.Queues[0].Epoch)
			}
		}
		r.must(g.Wait())
	})
}
