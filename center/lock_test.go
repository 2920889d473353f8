package center_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/center/postgres"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// waiting is how many sessions of the database wait, in the line for the lock row and for the row itself.
func waiting(t *testing.T, db *sql.DB) (line, row int) {
	t.Helper()
	err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FILTER (WHERE l.locktype = 'advisory'), COUNT(*) FILTER (WHERE l.locktype <> 'advisory')
		FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE a.datname = current_database() AND NOT l.granted`).Scan(&line, &row)
	if err != nil {
		t.Fatal(err)
	}
	return line, row
}

// Each session that waited for the row itself would wake up with each version of it (see lockBy).
func TestOneWaitsForTheLockRow(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.Postgres), center.Options{})
	if _, err := c.Tasks().Define(t.Context(), "sweep", center.Settings{Queues: 1}); err != nil {
		t.Fatal(err)
	}
	const callers = 8
	c.Store().SetMaxOpenConns(callers + 1)
	other, err := c.DB().BeginTx(t.Context(), nil) // which knows nothing of a line
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
			_, err := c.Roster().Rebalance(t.Context(), "sweep", roster.RebalanceOptions{Actor: "somebody", Always: true})
			return err
		})
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		line, row := waiting(t, c.DB())
		if line == callers-1 && row == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d stand in line and %d wait for the row, want %d and 1", line, row, callers-1)
		}
	}
	if busy, err := c.Roster().Rebalance(t.Context(), "sweep", roster.RebalanceOptions{Actor: "somebody", Always: true, NoWait: true}); err != nil || !busy.Busy {
		t.Errorf("who does not wait: %+v, %v", busy, err)
	}
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// A roster whose lock is held must not hold up its namesake in another schema.
func TestEachSchemaHasItsOwnLine(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.Postgres)
	first := centertest.Open(t, url, center.Options{})
	if _, err := first.DB().ExecContext(t.Context(), `CREATE SCHEMA second`); err != nil {
		t.Fatal(err)
	}
	second := centertest.Open(t, url+"&search_path=second", center.Options{})
	for _, c := range []*center.Center{first, second} {
		if _, err := c.Tasks().Define(t.Context(), "sweep", center.Settings{Queues: 1}); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := first.Lock(t, "sweep", false)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if busy, err := second.Roster().Rebalance(ctx, "sweep", roster.RebalanceOptions{Actor: "somebody", Always: true, NoWait: true}); err != nil || busy.Busy {
		t.Errorf("the other schema's roster: %+v, %v", busy, err)
	}
	if busy, err := first.Roster().Rebalance(ctx, "sweep", roster.RebalanceOptions{Actor: "somebody", Always: true, NoWait: true}); err != nil || !busy.Busy {
		t.Errorf("the same roster: %+v, %v", busy, err)
	}
}

// A try that ended with the connection would leave a session in the server, which waits on, and soon there would be no
// room for others.
func TestTimedOutWaitLeavesNoSession(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.Postgres)
	c := centertest.Open(t, url, center.Options{})
	if _, err := c.Tasks().Define(t.Context(), "sweep", center.Settings{Queues: 1}); err != nil {
		t.Fatal(err)
	}
	dialect := postgres.URL(url).Dialect
	givesUp := func(t *testing.T) {
		tx, err := c.Lock(t, "sweep", false)
		defer tx.Rollback()
		if class := dialect.Class(err); class != sqldb.RolledBack {
			t.Errorf("who waits got %v (%s), want a lock_timeout", err, class)
		}
		if line, row := waiting(t, c.DB()); line+row > 0 {
			t.Errorf("%d stand in line and %d wait for the row after that", line, row)
		}
	}
	t.Run("in line", func(t *testing.T) {
		tx, err := c.Lock(t, "sweep", false)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		givesUp(t)
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
		givesUp(t)
		if _, err := c.Roster().Audit(t.Context(), "sweep", "somebody"); dialect.Class(err) != sqldb.RolledBack {
			t.Errorf("who audits got %v, want a lock_timeout", err)
		}
		if line, row := waiting(t, c.DB()); line+row > 0 {
			t.Errorf("%d stand in line and %d wait for the row after an audit", line, row)
		}
	})
}
