package centertest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// testWitness checks what follows from the proof that a process has ended. Package internal/witness has the proof.
func testWitness(t *testing.T, c *center.Center) {
	locked := func(r *fixture, lock string, names ...string) {
		for _, name := range names {
			r.exec("UPDATE schedule_server SET witness = '%s' WHERE uuid = '%s'", lock, r.uuid(name))
		}
	}
	expireEnded := func(r *fixture, name string, locks ...string) int {
		done, err := c.Roster().Planner(r.task, r.uuid(name)).ExpireEnded(t.Context(), locks)
		r.must(err)
		return len(done.Silences)
	}
	t.Run("S15 the servers of an ended process are expired at once", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 4})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"), r.handover("3", "B"))
		locked(r, "boot.1@0:1/1", "A")
		locked(r, "boot.2@0:1/2", "B")
		if n := expireEnded(r, "A", "boot.9@0:1/9", "boot.2@0:1/22"); n != 0 {
			t.Errorf("%d servers expired, and the locks are of other processes", n)
		}
		r.wantOwners("A", "B", "A", "B")
		epoch := r.epoch("1")
		if n := expireEnded(r, "A", "boot.2@0:1/2"); n != 1 {
			t.Errorf("%d servers expired, want 1", n)
		}
		r.wantOwners("A", "A", "A", "A")
		if after := r.epoch("1"); after != epoch+1 {
			t.Errorf("the epoch went from %d to %d, want one more", epoch, after)
		}
		events, err := ops.New(c).Events().List(t.Context(), ops.EventFilter{TaskType: r.task, Kind: ops.EventExpired}, 10)
		r.must(err)
		if want := "its process has ended: nobody holds its lock boot.2@0:1/2"; len(events) != 1 || events[0].Reason != want || events[0].Actor != r.uuid("A") {
			t.Errorf("events %+v, want one: %s", events, want)
		}
		if n := expireEnded(r, "A", "boot.2@0:1/2"); n != 0 {
			t.Errorf("%d servers expired a second time", n)
		}
	})
	t.Run("S15 rows that the ended process still holds are taken over", func(t *testing.T) {
		if !needsRowLocks(t, c) {
			return
		}
		other, err := c.In("ended")
		if err != nil {
			t.Fatal(err)
		}
		r := newFixture(t, other, center.Settings{Queues: 2})
		r.join("A")
		tx := r.fence("A", "1")
		r.register("B")
		locked(r, "boot.7@0:1/7", "A")
		plans := 0
		other.Roster().OnLock = func(string, time.Duration) {
			if plans++; plans == 2 { // the database notices that the connection is gone
				r.must(tx.Rollback())
			}
		}
		done, err := other.Roster().Planner(r.task, r.uuid("B")).ExpireEnded(t.Context(), []string{"boot.7@0:1/7"})
		r.must(err)
		if r.wantOwners("B", "B"); len(done.Skipped) > 0 || plans < 2 {
			t.Errorf("after %d plans, %v are still to be taken over", plans, done.Skipped)
		}
	})
	t.Run("S15 a process waits neither for the lock row nor for rows between its attempts", func(t *testing.T) {
		testEndingAttempts(t, c)
	})
	t.Run("S15 L5 of the processes of a host, one expires the server and tries again", func(t *testing.T) { testOneExpires(t, c) })
	t.Run("S15 a process that joins expires its predecessor", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		locked(r, "boot.3@0:1/3", "A")
		if n := expireEnded(r, "B", "boot.3@0:1/3"); n != 1 {
			t.Errorf("%d servers expired by a server that has not joined yet, want 1", n)
		}
		r.wantOwners("-", "-")
		r.join("B")
		r.wantOwners("B", "B")
	})
	t.Run("S15 a server without a lock is never the server of an ended process", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		if n := expireEnded(r, "B", ""); n != 0 {
			t.Errorf("%d servers expired", n)
		}
		r.wantOwners("A")
	})
	t.Run("S15 rota witness expires the servers of all task types and environments", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		other := r.sibling("other")
		other.define(center.Settings{Queues: 1})
		r.join("A")
		other.join("A")
		lock := "boot." + r.task
		lock = lock[:min(len(lock), 150)]
		locked(r, lock, "A")
		locked(other, lock, "A")
		n, err := c.Roster().In("another").ExpireEnded(t.Context(), []string{lock}, "witness@host")
		r.must(err)
		if n != 2 {
			t.Errorf("%d servers expired, want 2", n)
		}
		r.wantOwners("-")
		other.wantOwners("-")
		if n, err := c.Roster().ExpireEnded(t.Context(), nil, "witness@host"); n != 0 || err != nil {
			t.Errorf("without a lock: %d servers expired (%v)", n, err)
		}
	})
	t.Run("S15 the doctor names workers whose end nobody can prove", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.exec("UPDATE schedule_server SET host_name = 'web1' WHERE task_type = '%s'", r.task)
		if list := r.findings("witness"); len(list) > 0 {
			t.Errorf("no worker of the host has a lock: %v", list)
		}
		locked(r, "boot.5@0:1/5", "A")
		if list := r.findings("witness"); len(list) != 1 {
			t.Errorf("%v, want B", list)
		}
	})
}

// testEndingAttempts ends a process while another transaction has the lock row, and while a row of a queue is held.
// A server that gets queues by the first plan can work them while B waits for the next attempt.
func testEndingAttempts(t *testing.T, c *center.Center) {
	if !needsRowLocks(t, c) {
		return
	}
	c, err := c.In("attempts")
	if err != nil {
		t.Fatal(err)
	}
	r := newFixture(t, c, center.Settings{Queues: 2})
	r.join("A")
	r.register("B")
	r.register("C")
	const lock = "boot.8@0:1/8"
	r.exec("UPDATE schedule_server SET witness = '"+lock+"' WHERE uuid = '%s'", r.uuid("A"))
	var e roster.Ending
	attempt := func() (roster.RebalanceResult, time.Duration) {
		t.Helper()
		done, again, err := e.Attempt(t.Context(), c.Roster().Planner(r.task, r.uuid("B")), []string{lock})
		r.must(err)
		return done, again
	}
	stray, err := c.DB().BeginTx(t.Context(), nil)
	r.must(err)
	defer stray.Rollback()
	_, err = stray.ExecContext(t.Context(), fmt.Sprintf(
		"UPDATE schedule_task_running SET version = version + 1 WHERE task_type = '%s'", r.task))
	r.must(err)
	for _, want := range []time.Duration{20 * time.Millisecond, 80 * time.Millisecond} {
		if done, again := attempt(); !done.Busy || again != want {
			t.Errorf("while the lock row is busy: %+v, again after %s; want a pause of %s", done, again, want)
		}
	}
	r.must(stray.Rollback())

	tx := r.fence("A", "1")
	for i, want := range []time.Duration{20 * time.Millisecond, 80 * time.Millisecond, 320 * time.Millisecond, 1280 * time.Millisecond, 0} {
		done, again := attempt()
		if first := i == 0; (len(done.Silences) == 1) != first || len(done.Skipped) != 1 || again != want {
			t.Errorf("attempt %d with a row that is held: %+v, again after %s; want a pause of %s", i, done, again, want)
		}
		owners := r.readColumn("SELECT cur_server FROM schedule_queue WHERE task_type = '%s' ORDER BY queue_index", r.task)
		if owners[0] == "A" || owners[1] != "A" {
			t.Errorf("attempt %d: the owners are %v, want that only the row that is held is still A's", i, owners)
		}
	}
	wantNoPlan(t, r, lock)
	r.must(tx.Rollback())
}

// wantNoPlan checks that C, which has not expired the server, does not take the lock row for a queue whose row is held.
// It looks again if so much time has passed that a plan is due.
func wantNoPlan(t *testing.T, r *fixture, lock string) {
	var locks int
	r.c.Roster().OnLock = func(string, time.Duration) { locks++ }
	for range 50 {
		_, err := r.c.Roster().DB.Exec(t.Context(), `UPDATE schedule_task_running SET last_assign_time = {now}
			WHERE task_type = ?`, r.task)
		r.must(err)
		before := locks
		var e roster.Ending
		_, again, err := e.Attempt(t.Context(), r.c.Roster().Planner(r.task, r.uuid("C")), []string{lock})
		if r.must(err); locks == before && again == 0 {
			return
		}
	}
	t.Error("a server that has not expired the ended one plans for the rows that are held")
}

// testOneExpires ends a process while the database still has one of its rows. All processes of the host notice at once.
func testOneExpires(t *testing.T, c *center.Center) {
	if !needsRowLocks(t, c) {
		return
	}
	other, err := c.In("storm")
	if err != nil {
		t.Fatal(err)
	}
	const processes = 20
	r := newFixture(t, other, center.Settings{Queues: 100})
	r.join("A")
	for i := range processes {
		r.register(fmt.Sprint("S", i))
	}
	r.rebalance("S0")
	r.exec("UPDATE schedule_server SET witness = 'boot.5@0:1/5' WHERE uuid = '%s'", r.uuid("A"))
	tx := r.fence("A", "1")
	defer tx.Rollback()
	var locks, expired atomic.Int64
	other.Roster().OnLock = func(string, time.Duration) { locks.Add(1) }
	began := time.Now()
	var g sync.WaitGroup
	for i := range processes {
		g.Go(func() {
			for {
				done, err := other.Roster().Planner(r.task, r.uuid(fmt.Sprint("S", i))).ExpireEnded(t.Context(), []string{"boot.5@0:1/5"})
				expired.Add(int64(len(done.Silences)))
				switch {
				case err == nil:
					return
				case !other.IsTransient(err): // else it has waited too long for a lock, as on a busy machine
					t.Error(err)
					return
				}
			}
		})
	}
	g.Wait()
	// Each process may have looked under the lock once. One has planned four times. A plan with skipped rows is due
	// after each second.
	if most := int64(processes + 4 + time.Since(began)/time.Second); locks.Load() > most || expired.Load() != 1 {
		t.Errorf("%d transactions under the lock row and %d expired servers, want at most %d and 1", locks.Load(), expired.Load(), most)
	}
	t.Logf("%d transactions under the lock row in %s", locks.Load(), time.Since(began).Round(time.Millisecond))
}
