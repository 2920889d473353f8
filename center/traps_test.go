package center_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
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
		ExecContext(context.Context, string, ...any) (sql.Result, error)
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
			ExecContext(context.Context, string, ...any) (sql.Result, error)
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
