package center_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

// fenced is a queue of one server, and a table whose row the statements of its batches change.
type fenced struct {
	*testing.T
	c     *center.Center
	batch context.Context
}

func newFenced(t *testing.T, url string) *fenced {
	t.Helper()
	f := &fenced{T: t, c: centertest.Open(t, url, center.Options{})}
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

// F1: a statement of ExecFenced has its effect, whatever it looks like.
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
			// The parameters of the fence are none of the statement's.
			f.exec("UPDATE orders SET state = 'NEW'")
			for _, text := range []string{"UPDATE orders SET state = $1", "UPDATE orders SET state = $2 WHERE id = $1"} {
				args := []any{1}[:strings.Count(text, "$")-1]
				if err := center.ExecFenced(f.batch, f.c.DB(), text, args...); err == nil || f.state() != "NEW" {
					t.Errorf("%s with %d parameters: error %v, state %s", text, len(args), err, f.state())
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
	})
}

// A row of a dealer that breaks a rule is no statement that the database has refused, about which there is an alert rule.
func TestBadDataIsCountedApart(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		f := newFenced(t, url)
		before := f.c.Stats().Errors
		for _, text := range []string{"INSERT INTO orders VALUES (1, 'TWICE')", "INSERT INTO orders VALUES (1, NULL)"} {
			if err := center.ExecFenced(f.batch, f.c.DB(), text); err == nil {
				t.Errorf("%s: no error", text)
			}
		}
		after := f.c.Stats().Errors
		if after["bad_data"] < before["bad_data"]+2 || after["refused"] != before["refused"] {
			t.Errorf("the errors were %v, and are %v", before, after)
		}
	})
}

// F5: the end of a statement that takes too long is no unknown commit, and the statement is not repeated.
func TestExecFencedTakesTooLong(t *testing.T) {
	t.Parallel()
	for _, kind := range testdb.Kinds(t) {
		if kind != testdb.Postgres {
			continue // elsewhere it is a statement of InTx
		}
		f := newFenced(t, testdb.URL(t, kind))
		f.c.DB().SetMaxOpenConns(1)
		f.exec("SET statement_timeout = 500")
		tries := f.c.Stats().Tries
		err := center.ExecFenced(f.batch, f.c.DB(), "UPDATE orders SET state = 'LATE' FROM pg_sleep(60)")
		f.exec("RESET statement_timeout")
		if err == nil || errors.Is(err, center.ErrUnknownCommit) || f.c.Stats().Tries != tries+1 || f.state() != "NEW" {
			t.Errorf("after %d tries: error %v, state %s", f.c.Stats().Tries-tries, err, f.state())
		}
	}
}

// F5: a connection that the server has closed while it was idle is no unknown commit.
func TestExecFencedAfterARestart(t *testing.T) {
	t.Parallel()
	for _, kind := range testdb.Kinds(t) {
		if kind != testdb.Postgres {
			continue // elsewhere InTx begins a transaction first
		}
		f := newFenced(t, testdb.URL(t, kind))
		const conns = 5
		var open []*sql.Conn
		for range conns {
			conn, err := f.c.DB().Conn(t.Context())
			must(t, err)
			open = append(open, conn)
		}
		for _, conn := range open {
			must(t, conn.Close())
		}
		ended, err := sqldb.Value[int](t.Context(), f.c.Roster().DB, `SELECT COUNT(pg_terminate_backend(pid, 60000))
			FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		must(t, err)
		if ended < conns {
			t.Errorf("%d sessions were ended, want %d", ended, conns)
		}
		time.Sleep(time.Second) // as long as a connection is taken for a live one
		for range conns {
			must(t, center.ExecFenced(f.batch, f.c.DB(), "UPDATE orders SET state = 'NEXT'"))
		}
	}
}

// F5: a transaction that the database has ended by itself is no unknown commit: PostgreSQL refuses to commit it.
func TestCommitOfAFailedTransaction(t *testing.T) {
	t.Parallel()
	for _, kind := range testdb.Kinds(t) {
		if kind != testdb.Postgres {
			continue // elsewhere the statements before stay
		}
		f := newFenced(t, testdb.URL(t, kind))
		runs := 0
		err := center.InTx(f.batch, f.c.DB(), func(tx *sql.Tx) error {
			runs++
			_, _ = tx.ExecContext(t.Context(), "INSERT INTO orders VALUES (1, 'TWICE')")
			return nil
		})
		if err == nil || errors.Is(err, center.ErrUnknownCommit) || runs != 1 {
			t.Errorf("after %d runs: %v", runs, err)
		}
	}
}

// F11: a statement in a data database has its effect only under the epoch that the owner has raised there, and a raise
// waits for the statement.
func TestDataExecFenced(t *testing.T) {
	eachData(t, func(t *testing.T, f dataFixture) {
		f.exec("CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(20) NOT NULL)")
		f.exec("INSERT INTO orders VALUES (1, 'NEW')")
		write := func(e center.Entry, state string, id int) error {
			query := fmt.Sprintf("UPDATE orders SET state = '%s' WHERE id = %d", state, id)
			return f.d.ExecFenced(f.batch(e, nil), query)
		}
		want := func(want string) {
			t.Helper()
			var got string
			must(t, f.d.DB().QueryRowContext(t.Context(), "SELECT state FROM orders").Scan(&got))
			if got != want {
				t.Errorf("the row has the state %s, want %s", got, want)
			}
		}
		a, b := f.own("A", "0", 7), f.own("B", "0", 8)
		f.mustBeFenced("before the raise", write(a, "EARLY", 1))
		f.enter(f.own("A", "0", 7))
		must(t, write(a, "FIRST", 1))
		must(t, write(a, "NONE", 2)) // it matches nothing, and the server owns the queue
		want("FIRST")
		if f.d.Dialect() != schema.SQLite { // it has one lock for all writers
			f.raiseBesideStatement(b, func() error { return write(a, "SECOND", 1) })
			want("SECOND")
		}
		f.enter(f.own("B", "0", 8))
		f.mustBeFenced("after the raise of the next owner", write(a, "LATE", 1))
		f.mustBeFenced("a statement that matches nothing", write(a, "LATE", 2))
		must(t, write(b, "NEXT", 1))
		want("NEXT")
	})
}

// raiseBesideStatement checks that a raise of the next owner fails while a statement is in progress.
func (f dataFixture) raiseBesideStatement(next center.Entry, write func() error) {
	f.Helper()
	row, err := f.d.DB().BeginTx(f.Context(), nil)
	must(f.T, err)
	defer row.Rollback()
	_, err = row.ExecContext(f.Context(), "UPDATE orders SET state = 'HELD'")
	must(f.T, err)
	ended := make(chan error, 1)
	go func() { ended <- write() }()
	for deadline := time.Now().Add(time.Minute); testdb.Waiting(f.T, f.d.Address(), f.d.DB()) == 0; time.Sleep(10 * time.Millisecond) {
		if len(ended) > 0 || time.Now().After(deadline) {
			f.Fatal("the statement does not wait for its row")
		}
	}
	var held *roster.HeldError
	f.own("B", "0", 8)
	if _, err := f.d.Enter(f.Context(), next); !errors.As(err, &held) {
		f.Errorf("a raise beside the statement: error %v, want a HeldError", err)
	}
	must(f.T, row.Commit())
	must(f.T, <-ended)
}

// PostgreSQL parses and plans a repeated statement of ExecFenced once on a connection, and those of users each time: for
// a select the plan depends on the values.
func TestExecFencedIsPrepared(t *testing.T) {
	t.Parallel()
	f := newFenced(t, testdb.URL(t, testdb.Postgres))
	f.c.DB().SetMaxOpenConns(1)
	settle := func(batch context.Context, state string) error {
		return center.ExecFenced(batch, f.c.DB(), "UPDATE orders SET state = $1 WHERE id = 1", state)
	}
	prepared := func(want int) {
		t.Helper()
		n := 0
		must(t, f.c.DB().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM pg_prepared_statements").Scan(&n))
		if n != want {
			t.Errorf("%d statements are prepared, want %d", n, want)
		}
	}
	for range 3 {
		_, err := f.c.DB().ExecContext(t.Context(), "UPDATE orders SET state = $1 WHERE id = 1", "OWN")
		must(t, err)
		prepared(0)
	}
	for i, want := range []int{0, 1, 1} {
		state := fmt.Sprint("SETTLED", i)
		must(t, settle(f.batch, state))
		if prepared(want); f.state() != state {
			t.Errorf("the state is %s, want %s", f.state(), state)
		}
	}
	late := f.c.Bind(t.Context(), center.Batch{Server: web1, TaskType: "settle", Queue: center.QueueEpoch{ID: "0", Epoch: 6}})
	if err := settle(late, "LATE"); !errors.Is(err, center.ErrFenced) || f.state() == "LATE" {
		t.Errorf("under an old epoch: error %v, state %s", err, f.state())
	}
	f.exec("DEALLOCATE ALL") // as a pooler does, or code of the user
	must(t, settle(f.batch, "AGAIN"))
	if f.state() != "AGAIN" {
		t.Errorf("the state is %s, want AGAIN", f.state())
	}
}
