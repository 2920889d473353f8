package roster_test

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center/postgres"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// waiting returns how many sessions of the database wait in the line for the lock row, and how many wait for the row
// itself.
func waiting(t *testing.T, db *sql.DB) (line, row int) {
	t.Helper()
	err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FILTER (WHERE l.locktype = 'advisory'),
		COUNT(*) FILTER (WHERE l.locktype <> 'advisory')
		FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE a.datname = current_database()
		AND NOT l.granted`).Scan(&line, &row)
	if err != nil {
		t.Fatal(err)
	}
	return line, row
}

// Only one transaction waits for the row itself, because it wakes up with each version of the row (see lockBySetting).
func TestOneWaitsForTheLockRow(t *testing.T) {
	t.Parallel()
	c := openTask(t, testdb.URL(t, testdb.Postgres), "sweep", 1)
	const callers = 8
	c.Roster().DB.Store.SetMaxOpenConns(callers + 1)
	other, err := c.DB().BeginTx(t.Context(), nil) // takes the row without the line
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback()
	if _, err := other.ExecContext(t.Context(), `UPDATE schedule_task_running SET version = version + 1`); err != nil {
		t.Fatal(err)
	}
	var g errgroup.Group
	for range callers {
		g.Go(func() error {
			_, err := c.Roster().Planner("sweep", "somebody").Rebalance(t.Context(), roster.RebalanceOptions{Always: true})
			return err
		})
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		line, row := waiting(t, c.DB())
		if line == callers-1 && row == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("sessions that wait: got %d in line and %d for the row, want %d and 1", line, row, callers-1)
		}
	}
	if busy, err := c.Roster().Planner("sweep", "somebody").Rebalance(t.Context(),
		roster.RebalanceOptions{Always: true, NoWait: true}); err != nil || !busy.Busy {
		t.Errorf("rebalance without waiting: got %+v, %v, want Busy", busy, err)
	}
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// A busy lock row does not delay the roster of the same name in another schema.
func TestEachSchemaHasItsOwnLine(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.Postgres)
	first := openTask(t, url, "sweep", 1)
	if _, err := first.DB().ExecContext(t.Context(), `CREATE SCHEMA second`); err != nil {
		t.Fatal(err)
	}
	second := openTask(t, url+"&search_path=second", "sweep", 1)
	tx, err := first.Roster().BeginLocked(t, "sweep", false)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if busy, err := second.Roster().Planner("sweep", "somebody").Rebalance(ctx,
		roster.RebalanceOptions{Always: true, NoWait: true}); err != nil || busy.Busy {
		t.Errorf("rebalance in the other schema: got %+v, %v, want not Busy", busy, err)
	}
	if busy, err := first.Roster().Planner("sweep", "somebody").Rebalance(ctx,
		roster.RebalanceOptions{Always: true, NoWait: true}); err != nil || !busy.Busy {
		t.Errorf("rebalance in the same schema: got %+v, %v, want Busy", busy, err)
	}
}

// An attempt that times out leaves no session that still waits in the database: such sessions would soon use up the
// connections that the database allows.
func TestTimedOutWaitLeavesNoSession(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.Postgres)
	c := openTask(t, url, "sweep", 1)
	dialect := postgres.URL(url).Dialect
	timesOut := func(t *testing.T) {
		tx, err := c.Roster().BeginLocked(t, "sweep", false)
		defer tx.Rollback()
		if class := dialect.Class(err); class != sqldb.RolledBack {
			t.Errorf("error after a wait: got %v (%s), want a lock_timeout", err, class)
		}
		if line, row := waiting(t, c.DB()); line+row > 0 {
			t.Errorf("sessions that wait after the time-out: got %d in line and %d for the row, want none", line, row)
		}
	}
	t.Run("in line", func(t *testing.T) {
		tx, err := c.Roster().BeginLocked(t, "sweep", false)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		timesOut(t)
	})
	t.Run("for the row", func(t *testing.T) {
		other, err := c.DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Rollback()
		if _, err := other.ExecContext(t.Context(), `UPDATE schedule_task_running SET version = version + 1`); err != nil {
			t.Fatal(err)
		}
		timesOut(t)
		if _, err := c.Roster().Planner("sweep", "somebody").Audit(t.Context()); dialect.Class(err) != sqldb.RolledBack {
			t.Errorf("error of an audit: got %v, want a lock_timeout", err)
		}
		if line, row := waiting(t, c.DB()); line+row > 0 {
			t.Errorf("sessions that wait after an audit: got %d in line and %d for the row, want none", line, row)
		}
	})
}

// PostgreSQL ends a transaction of the roster whose client is gone. The limits hold from the first statement on.
func TestPostgresLimitsTransactions(t *testing.T) {
	t.Parallel()
	c := openTask(t, testdb.URL(t, testdb.Postgres), "settle", 1)
	for setting, want := range map[string]string{"idle_in_transaction_session_timeout": "10s", "lock_timeout": "1s"} {
		for _, checkOnly := range []bool{true, false} {
			tx, err := c.Roster().BeginLocked(t, "settle", checkOnly)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			if err := tx.QueryRowContext(t.Context(), "SHOW "+setting).Scan(&got); err != nil || got != want {
				t.Errorf("%s with the lock row: got %q, %v, want %s", setting, got, err, want)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
		var got string
		err := c.Roster().DB.Transact(t.Context(), c.Roster().DB.Store, func(ctx context.Context, tx sqldb.Tx) error {
			return tx.QueryRow(ctx, "SHOW "+setting).Scan(&got)
		})
		if err != nil || got != want {
			t.Errorf("%s without the lock row: got %q, %v, want %s", setting, got, err, want)
		}
	}
}

// L2: a transaction reads the clock after it has the lock. PostgreSQL's now() is the start of the transaction and
// MySQL's NOW() the start of the statement: both precede the wait.
func TestClockIsReadAfterTheLock(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := openTask(t, url, "clock", 1)
		blocker, err := c.DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := blocker.ExecContext(t.Context(), "UPDATE schedule_task_running SET paused = paused"); err != nil {
			t.Fatal(err)
		}
		var registered time.Time
		var g errgroup.Group
		g.Go(func() error {
			reg, err := c.Roster().Register(t.Context(),
				roster.ServerInfo{UUID: "u", TaskType: "clock", JudgeDeadInterval: time.Minute})
			registered = reg.At
			return err
		})
		// if Register does not wait for the lock by now, the test proves less and does not fail
		time.Sleep(100 * time.Millisecond)
		unlocked := time.Now()
		if err := blocker.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if registered.Before(unlocked.Add(-10 * time.Millisecond)) { // the server runs on this host and has its clock
			t.Fatalf("time of the registration: got %s, want %s or later, when the lock was free", registered, unlocked.UTC())
		}
	})
}

// Each role that may connect can hold the line, because its key is no secret. Then a transaction takes the free row
// without the line, with a notice.
func TestHeldLineDoesNotStopTheRoster(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.Postgres)
	c := openTask(t, url, "sweep", 1)
	var notices atomic.Int64
	c.Roster().OnLineHeld = func(context.Context, string) { notices.Add(1) }
	other, err := c.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	const hold = `SELECT pg_advisory_lock(hashtextextended('sweep$BASE', CAST(tableoid AS bigint)))
		FROM schedule_task_running`
	if _, err := other.ExecContext(t.Context(), hold); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Roster().Planner("sweep", "somebody").Rebalance(t.Context(),
		roster.RebalanceOptions{Always: true}); err != nil {
		t.Fatal(err)
	}
	if n := notices.Load(); n != 1 {
		t.Errorf("%d notices, want 1", n)
	}
}
