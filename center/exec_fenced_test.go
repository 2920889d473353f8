package center_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

// fenced is a queue of one server, and a table whose row the statements of its batches change.
type fenced struct {
	*testing.T
	c     *center.Center
	url   string
	batch context.Context
}

func newFenced(t *testing.T, url string) *fenced {
	t.Helper()
	f := &fenced{T: t, url: url, c: centertest.Open(t, url, center.Options{})}
	_, err := ops.New(f.c).Tasks().Define(t.Context(), "settle", center.Settings{Queues: 1})
	must(t, err)
	f.exec("UPDATE schedule_queue SET cur_server = '" + web1 + "', epoch = 7")
	f.exec("CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(20) NOT NULL)")
	f.exec("INSERT INTO orders VALUES (1, 'NEW')")
	f.batch = f.c.Bind(t.Context(), center.Batch{Server: web1, TaskType: "settle", Queue: center.QueueEpoch{ID: "0", Epoch: 7}})
	return f
}

func (f *fenced) exec(query string) {
	f.Helper()
	_, err := f.c.DB().ExecContext(f.Context(), query)
	must(f.T, err)
}

func (f *fenced) state() (state string) {
	f.Helper()
	must(f.T, f.c.DB().QueryRowContext(f.Context(), "SELECT state FROM orders WHERE id = 1").Scan(&state))
	return state
}

// mark is the mark of a parameter.
func (f *fenced) mark() string {
	if f.c.Dialect() == schema.Postgres {
		return "$1"
	}
	return "?"
}

// F1: a statement of ExecFenced has its effect while the server owns the queue under the epoch of the batch, and no
// effect afterwards, whatever it looks like.
func TestExecFenced(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		f := newFenced(t, url)
		change := "UPDATE orders SET state = " + f.mark() + " WHERE id = 1"
		for text, args := range map[string][]any{
			change:                                     {"SETTLED"},
			"  update orders set state = 'OLD';\n":     nil,
			change + " -- a comment":                   {"COMMENTED"},
			"WITH a AS (SELECT 1) " + change:           {"WITH"},
			"/* first */ " + change:                    {"BEHIND"},
			"INSERT INTO orders VALUES (2, 'NEW')":     nil,
			"DELETE FROM orders WHERE id = 2":          nil,
			"UPDATE orders SET state = '?' WHERE 1=1 ": nil,
		} {
			if strings.HasPrefix(text, "WITH") && f.c.Dialect().Family() == schema.MySQL {
				continue // MariaDB has no WITH before UPDATE
			}
			if err := center.ExecFenced(f.batch, f.c.DB(), text, args...); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			if len(args) > 0 && f.state() != args[0] {
				t.Errorf("%s: the state is %s", text, f.state())
			}
		}
		if f.c.Dialect() == schema.Postgres { // a SELECT that nobody reads would not be executed
			f.exec("CREATE FUNCTION settle() RETURNS int LANGUAGE sql AS $$ UPDATE orders SET state = 'CALLED' RETURNING 1 $$")
			for _, text := range []string{"SELECT settle()", "WITH a AS (SELECT 1) SELECT settle()"} {
				f.exec("UPDATE orders SET state = 'NEW'")
				if err := center.ExecFenced(f.batch, f.c.DB(), text); err != nil || f.state() != "CALLED" {
					t.Errorf("%s: error %v, state %s", text, err, f.state())
				}
			}
			// What it refuses as a part of another statement is tried that way once.
			refused := f.c.Stats().Errors["refused"]
			for range 3 {
				err := center.ExecFenced(f.batch, f.c.DB(), "UPDATE orders SET state = 'TWO'; -- and a comment")
				if err != nil || f.state() != "TWO" {
					t.Errorf("a statement with an end of its own: error %v, state %s", err, f.state())
				}
			}
			if n := f.c.Stats().Errors["refused"] - refused; n != 1 {
				t.Errorf("the database has refused it %d times", n)
			}
		}
		if err := center.ExecFenced(f.batch, f.c.DB(), "UPDATE orders SET no_such = 1"); err == nil || center.IsFenced(err) {
			t.Errorf("a statement that fails: %v", err)
		}
		if err := center.ExecFenced(t.Context(), f.c.DB(), change, "x"); !errors.Is(err, center.ErrNoBatch) {
			t.Errorf("without a batch: %v", err)
		}
		f.exec("UPDATE schedule_queue SET epoch = 8")
		before := f.state()
		if err := center.ExecFenced(f.batch, f.c.DB(), change, "LATE"); !errors.Is(err, center.ErrFenced) || f.state() != before {
			t.Errorf("under an old epoch: error %v, state %s", err, f.state())
		}
	})
}

// F1, F3: a change of the owner and a statement of ExecFenced wait for each other: the queue does not change its owner
// under the statement, and a statement behind the change has no effect.
func TestExecFencedBesideAChangeOfTheOwner(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		f := newFenced(t, url)
		if f.c.Dialect() == schema.SQLite {
			t.Skip("SQLite has one lock for all writers")
		}
		const owner = "UPDATE schedule_queue SET cur_server = '" + web2 + "', epoch = epoch + 1"
		// The statement waits for its row. Meanwhile the owner cannot change.
		row := centertest.Begin(t, f.c)
		f.in(row, "UPDATE orders SET state = 'HELD'")
		ended := f.start("UPDATE orders SET state = 'FIRST' WHERE id = 1")
		changed := make(chan error, 1)
		go func() {
			_, err := f.c.DB().ExecContext(t.Context(), owner)
			changed <- err
		}()
		f.await(2)
		must(t, row.Commit())
		must(t, <-ended)
		must(t, <-changed)
		if f.state() != "FIRST" {
			t.Errorf("the statement before the change: state %s", f.state())
		}
		// The change comes first. The statement waits for it.
		f.exec("UPDATE schedule_queue SET cur_server = '" + web1 + "', epoch = 7")
		change := centertest.Begin(t, f.c)
		f.in(change, owner)
		ended = f.start("UPDATE orders SET state = 'SECOND'")
		f.await(1)
		must(t, change.Commit())
		if err := <-ended; !errors.Is(err, center.ErrFenced) || f.state() != "FIRST" {
			t.Errorf("the statement behind the change: error %v, state %s", err, f.state())
		}
	})
}

func (f *fenced) in(tx *sql.Tx, query string) {
	f.Helper()
	_, err := tx.ExecContext(f.Context(), query)
	must(f.T, err)
}

// start executes a statement beside the test, which waits for a lock.
func (f *fenced) start(query string) (ended chan error) {
	f.Helper()
	ended = make(chan error, 1)
	go func() { ended <- center.ExecFenced(f.batch, f.c.DB(), query) }()
	f.await(1)
	return ended
}

// await waits until n sessions wait for locks.
func (f *fenced) await(n int) {
	f.Helper()
	for deadline := time.Now().Add(time.Minute); testdb.Waiting(f.T, f.url, f.c.DB()) < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.Fatalf("fewer than %d sessions wait for locks", n)
		}
	}
}
