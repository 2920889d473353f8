package center_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// Each trap of the drivers that was met has its test here: it fails when the option or the order of
// statements that avoids the trap is taken away.

// Behind PgBouncer in transaction mode, a statement with parameters must be one round trip: else its
// two halves go to different servers, and another statement's rows come back. One round trip has
// one Sync message.
func TestPostgresParametersInOneRoundTrip(t *testing.T) {
	t.Parallel()
	url, p := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	c := centertest.Open(t, url+"&binary_parameters=no", center.Options{})
	for name, db := range map[string]interface {
		ExecContext(context.Context, string, ...any) (sqlResult, error)
	}{"dealers": c.DB(), "store": c.Store()} {
		if _, err := db.ExecContext(t.Context(), "SELECT 1"); err != nil { // connects
			t.Fatal(err)
		}
		sent := p.Listen(func() {
			if _, err := db.ExecContext(t.Context(), "UPDATE schedule_server SET pid = $1 WHERE uuid = $2", 1, "x"); err != nil {
				t.Fatal(err)
			}
		})
		if n := messages(sent)['S']; n != 1 {
			t.Errorf("%s: %d Sync messages for one statement, want 1", name, n)
		}
	}
}

// messages counts the messages of PostgreSQL's protocol by their type.
func messages(sent []byte) map[byte]int {
	counts := map[byte]int{}
	for len(sent) >= 5 {
		counts[sent[0]]++
		sent = sent[min(len(sent), 1+int(binary.BigEndian.Uint32(sent[1:]))):]
	}
	return counts
}

// lib/pq does not heed a context's deadline when the network swallows packets (its issue 620): it
// would hang for minutes.
func TestSwallowedPackets(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		t.Run(kind, func(t *testing.T) {
			url, p := testdb.Through(t, testdb.URL(t, kind))
			c := centertest.Open(t, url, center.Options{})
			beat := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := c.Roster().SendHeartbeat(ctx, roster.Heartbeat{Token: "x", Servers: []roster.ServerReport{{UUID: "u"}}})
				return err
			}
			if err := beat(); err != nil {
				t.Fatal(err)
			}
			p.EndsAndHeals(t, beat)
		})
	}
}

// SQLite: a transaction that reads first and writes later fails with SQLITE_BUSY_SNAPSHOT at once,
// however patient its busy_timeout, unless it takes the write lock at its start. On the other
// databases the row is locked by the SELECT, and the same holds.
func TestReadThenWrite(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		if _, err := c.Tasks().Define(t.Context(), "count", center.Settings{Queues: 1}); err != nil {
			t.Fatal(err)
		}
		lock := " FOR UPDATE"
		if c.Dialect() == "sqlite" {
			lock = ""
		}
		const times = 25
		var g errgroup.Group
		for range 4 {
			g.Go(func() error {
				for range times {
					tx, err := c.DB().BeginTx(t.Context(), nil)
					if err != nil {
						return err
					}
					var n int
					if err := tx.QueryRowContext(t.Context(), "SELECT queue_total FROM schedule_task_running WHERE task_type = 'count'"+lock).Scan(&n); err != nil {
						return errors.Join(err, tx.Rollback())
					}
					if _, err := tx.ExecContext(t.Context(), fmt.Sprintf("UPDATE schedule_task_running SET queue_total = %d WHERE task_type = 'count'", n+1)); err != nil {
						return errors.Join(err, tx.Rollback())
					}
					if err := tx.Commit(); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := c.DB().QueryRowContext(t.Context(), "SELECT queue_total FROM schedule_task_running").Scan(&n); err != nil || n != 1+4*times {
			t.Fatalf("%d, %v", n, err)
		}
	})
}

// MySQL counts changed rows unless it is told to count matched ones, and a compare-and-set would lie.
func TestMatchedRowsCount(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		if _, err := c.Tasks().Define(t.Context(), "same", center.Settings{Queues: 1}); err != nil {
			t.Fatal(err)
		}
		for name, db := range map[string]interface {
			ExecContext(context.Context, string, ...any) (sqlResult, error)
		}{"dealers": c.DB(), "store": c.Store()} {
			res, err := db.ExecContext(t.Context(), "UPDATE schedule_task_type SET thread_number = thread_number")
			if err != nil {
				t.Fatal(err)
			}
			if n, err := res.RowsAffected(); n != 1 || err != nil {
				t.Errorf("%s: %d rows, %v", name, n, err)
			}
		}
	})
}

// MySQL: the end of a context closes the connection and not the statement, which would wait for a lock in
// the server for 50 s more. The roster's own wait for a second.
func TestMySQLWaitsBriefly(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.MySQL), center.Options{})
	var lock, idle int
	err := c.Store().QueryRowContext(t.Context(), "SELECT @@innodb_lock_wait_timeout, @@idle_transaction_timeout").Scan(&lock, &idle)
	if err != nil || lock != 1 || idle != 10 {
		t.Fatalf("%d s for a lock, %d s idle, %v", lock, idle, err)
	}
}

// A transaction of ours whose client says nothing more is ended by the server.
func TestPostgresEndsIdleTransactions(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.Postgres), center.Options{})
	if _, err := c.Tasks().Define(t.Context(), "settle", center.Settings{Queues: 1}); err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{"idle_in_transaction_session_timeout": "10s", "lock_timeout": "1s"} {
		for _, peek := range []bool{true, false} { // from the first statement on
			tx, err := c.Lock(t, "settle", peek)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			if err := tx.QueryRowContext(t.Context(), "SHOW "+setting).Scan(&got); err != nil || got != want {
				t.Errorf("%s with the lock row: %q, %v", setting, got, err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := c.Transact(t.Context(), "SHOW "+setting); err != nil || got != want {
			t.Errorf("%s without the lock row: %q, %v", setting, got, err)
		}
	}
}

// L2: the clock is read after the lock. PostgreSQL's now() is the start of the transaction, MySQL's
// NOW() the start of the statement: both would be from before the wait.
func TestClockIsReadAfterTheLock(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		if _, err := c.Tasks().Define(t.Context(), "clock", center.Settings{Queues: 1}); err != nil {
			t.Fatal(err)
		}
		block, err := c.DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := block.ExecContext(t.Context(), "UPDATE schedule_task_running SET paused = paused"); err != nil {
			t.Fatal(err)
		}
		registered := make(chan time.Time, 1)
		var g errgroup.Group
		g.Go(func() error {
			reg, err := c.Roster().Register(t.Context(), roster.Server{UUID: "u", TaskType: "clock", JudgeDeadInterval: time.Minute})
			registered <- reg.At
			return err
		})
		time.Sleep(100 * time.Millisecond) // should it not wait for the lock by now, the test just proves less
		released := time.Now()
		if err := block.Commit(); err != nil {
			t.Fatal(err)
		}
		at := <-registered
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if at.Before(released.Add(-10 * time.Millisecond)) { // one host, one clock
			t.Fatalf("registered at %s, the lock was free at %s", at, released.UTC())
		}
	})
}

// F3: where share locks do not reach every writer the fence writes, and batches of one queue run one
// by one.
func TestFenceByWriting(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		c.FenceByWriting()
		centertest.Fence(t, c)
	})
}

// L4: a plan whose rows are no longer as they were read is not written, not even in part.
func TestPlanIsCompareAndSet(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		if _, err := c.Tasks().Define(t.Context(), "race", center.Settings{Queues: 2}); err != nil {
			t.Fatal(err)
		}
		stale := map[string]plan.Change{
			"epoch": {QueueID: "1", OldEpoch: 7, Owner: "A"},
			"owner": {QueueID: "1", OldOwner: "B", OldEpoch: 1, Owner: "A"},
			"row":   {QueueID: "9", OldEpoch: 1, Owner: "A"},
		}
		for name, change := range stale {
			for _, changes := range [][]plan.Change{{change}, {{QueueID: "0", OldEpoch: 1, Owner: "A"}, change}} {
				err := c.WritePlan(t.Context(), "race", changes)
				if name == "row" && c.Dialect() != "sqlite" {
					continue // a row that is gone is passed over like one that is locked
				}
				if !errors.Is(err, sqldb.ErrRaced) {
					t.Errorf("another %s, %d changes: %v", name, len(changes), err)
				}
			}
		}
		var owned int
		if err := c.DB().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM schedule_queue WHERE queue_id <> '0' AND cur_server IS NOT NULL").Scan(&owned); err != nil || owned != 0 {
			t.Errorf("%d queues got an owner from a stale plan: %v", owned, err)
		}
	})
}

// L3: a server that has sent a heartbeat since it was read survives.
func TestExpirySparesServersWithANewHeartbeat(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		if _, err := c.Tasks().Define(t.Context(), "expire", center.Settings{Queues: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Roster().Register(t.Context(), roster.Server{UUID: "A", TaskType: "expire", JudgeDeadInterval: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if alive, err := c.ExpireAsReadBefore(t.Context(), "expire", "A"); err != nil || alive != 1 {
			t.Fatalf("%d live, %v", alive, err)
		}
	})
}

// A clock that was set back leaves heartbeats in the future: whose are never followed by another are dead.
func TestHeartbeatsFromTheFuture(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		liveOnce(t, c)
		execAll(t, c, "UPDATE schedule_server SET heartbeat_time = '2999-01-01 00:00:00.000000', beat_token = 'x' WHERE host_name = 'web2'")
		pulses, err := c.Roster().SendHeartbeat(t.Context(), roster.Heartbeat{Token: "y", OldTokens: []string{""}, Servers: []roster.ServerReport{{UUID: "web1:1:00000000", TaskType: "settle"}}})
		if err != nil || !pulses["web1:1:00000000"].AnyDead {
			t.Fatalf("%+v, %v", pulses, err)
		}
		judge := roster.RebalanceOptions{Actor: "web1:1:00000000", Watched: time.Hour, MaxHeartbeatAge: time.Minute}
		for _, seen := range []string{"2999-01-01", ""} { // a pulse from before the clock was set proves nothing
			if seen != "" {
				if judge.RepliedAt, err = time.Parse(time.DateOnly, seen); err != nil {
					t.Fatal(err)
				}
			} else {
				judge.RepliedAt = pulses["web1:1:00000000"].Now
			}
			done, err := c.Roster().Rebalance(t.Context(), "settle", judge)
			if err != nil {
				t.Fatal(err)
			}
			for _, silent := range done.Silences {
				if silent != time.Minute { // the judge_dead_interval
					t.Errorf("silent for %s", silent)
				}
			}
			if live, want := countRows(t, c, "SELECT uuid FROM schedule_server"), map[bool]int{true: 2, false: 1}[seen != ""]; live != want {
				t.Fatalf("%d live, want %d", live, want)
			}
		}
		if n := countRows(t, c, "SELECT 1 FROM schedule_event WHERE kind = 'EXPIRED' AND reason = 'silent since the clock was set back, from 2999-01-01T00:00:00Z or later; judge_dead_interval 1m0s'"); n != 1 {
			t.Errorf("%d events say why", n)
		}
	})
}

// F1: the fence of some queues locks these and no others. InnoDB locks what a statement reads, and with
// IN the optimizer may choose to read the whole roster.
func TestFenceLocksItsOwnQueuesOnly(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		t.Run(kind, func(t *testing.T) {
			c := centertest.Open(t, testdb.URL(t, kind), center.Options{})
			for _, queues := range []int{4, 16, 100} {
				task := fmt.Sprint("settle", queues)
				if _, err := c.Tasks().Define(t.Context(), task, center.Settings{Queues: queues}); err != nil {
					t.Fatal(err)
				}
				execAll(t, c, "UPDATE schedule_queue SET cur_server = 'A' WHERE task_type = '"+task+"'")
				for fenced := 1; fenced < queues; fenced *= 2 {
					if free := freeBeside(t, c, task, fenced); free != queues-fenced {
						t.Errorf("%d of %d queues are fenced, and %d are free", fenced, queues, free)
					}
				}
			}
		})
	}
}

// freeBeside fences some queues and counts those that others can still lock.
func freeBeside(t *testing.T, c *center.Center, task string, fenced int) (free int) {
	t.Helper()
	b := center.Batch{Server: "A", TaskType: task}
	for i := range fenced {
		b.Queues = append(b.Queues, center.QueueEpoch{ID: fmt.Sprint(i), Epoch: 1})
	}
	ctx := c.Bind(t.Context(), b)
	tx, err := c.DB().BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := center.Fence(ctx, tx); err != nil {
		t.Fatal(err)
	}
	return countRows(t, c, "SELECT queue_id FROM schedule_queue WHERE task_type = '"+task+"' FOR UPDATE SKIP LOCKED")
}
