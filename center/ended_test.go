package center_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"testing"

	"modernc.org/sqlite"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
)

// F1: after a deadlock the server has rolled the transaction back. A function that passes over the error, as a batch
// may over that of an item, writes nothing without the fence, and runs again.
func TestATransactionThatTheServerHasEnded(t *testing.T) {
	t.Parallel()
	const change = "UPDATE orders SET state = 'MINE' WHERE id = ?"
	calls := map[string]func(tx *sql.Tx, id int) error{
		"statement": func(tx *sql.Tx, id int) error {
			_, err := tx.Exec(change, id)
			return err
		},
		"prepared": func(tx *sql.Tx, id int) error {
			prepared, err := tx.Prepare(change)
			if err != nil {
				return err
			}
			defer prepared.Close()
			_, err = prepared.Exec(id)
			return err
		},
		"select": func(tx *sql.Tx, id int) error {
			return tx.QueryRow("SELECT id FROM orders WHERE id = ? FOR UPDATE", id).Scan(&id)
		},
	}
	for _, kind := range testdb.Kinds(t) {
		if kind != testdb.MySQL && kind != testdb.MariaDB {
			continue
		}
		for name, call := range calls {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				f := newFenced(t, testdb.URL(t, kind))
				f.exec("INSERT INTO orders VALUES (2, 'NEW'), (3, 'NEW')")
				c, batch := f.c, f.batch
				other := heavy(t, c.DB())
				ended, runs := make(chan error, 1), 0
				err := center.InTx(batch, c.DB(), func(tx *sql.Tx) error {
					if runs++; runs > 2 {
						t.Fatal("the function ran three times")
					}
					if _, err := tx.ExecContext(t.Context(), change, 1); err != nil {
						return err
					}
					if runs > 1 {
						return nil
					}
					go func() {
						_, err := other.Exec("UPDATE orders SET state = 'OTHER' WHERE id = 1")
						ended <- err
					}()
					if err := call(tx, 2); err == nil {
						t.Error("no deadlock")
					}
					if err := call(tx, 3); !c.IsTransient(err) {
						t.Errorf("behind the end of the transaction: %v", err)
					}
					if err := <-ended; err != nil {
						t.Error(err)
					}
					if err := other.Commit(); err != nil {
						t.Error(err)
					}
					if got := states(t, c.DB()); got != "OTHER OTHER NEW" {
						t.Errorf("the rows are %s before the commit", got)
					}
					return nil
				})
				if got := states(t, c.DB()); err != nil || runs != 2 || got != "MINE OTHER NEW" {
					t.Errorf("after %d runs: error %v, the rows are %s", runs, err, got)
				}
			})
		}
	}
}

// F1: so it is after a lock wait that took too long, on a server that then rolls the transaction back. Other servers
// roll the statement back, and the transaction goes on.
func TestLockTimeoutThatEndsTheTransaction(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]string{"ON": "MINE OTHER NEW", "OFF": "MINE OTHER MINE"} {
		t.Run(option, func(t *testing.T) {
			t.Parallel()
			f := newFenced(t, testdb.Own(t, testdb.MariaDB, "--innodb-rollback-on-timeout="+option).URL())
			f.exec("INSERT INTO orders VALUES (2, 'NEW'), (3, 'NEW')")
			other, runs := heavy(t, f.c.DB()), 0
			err := center.InTx(f.batch, f.c.DB(), func(tx *sql.Tx) error {
				const change = "UPDATE orders SET state = 'MINE' WHERE id = ?"
				runs++
				if _, err := tx.ExecContext(t.Context(), change, 1); err != nil || runs > 1 {
					return err
				}
				if _, err := tx.ExecContext(t.Context(), "SET innodb_lock_wait_timeout = 1"); err != nil {
					return err
				}
				if _, err := tx.ExecContext(t.Context(), change, 2); err == nil {
					t.Error("no timeout")
				}
				if err := other.Commit(); err != nil {
					t.Error(err)
				}
				_, err := tx.ExecContext(t.Context(), change, 3)
				if (err != nil) != (option == "ON") {
					t.Errorf("behind the timeout: %v", err)
				}
				return nil
			})
			if got := states(t, f.c.DB()); err != nil || got != want {
				t.Errorf("after %d runs: error %v, the rows are %s, want %s", runs, err, got, want)
			}
		})
	}
}

// interrupts has what test_interrupt calls, a function of SQL: it ends the context of a statement that has begun.
var interrupts sync.Map

func init() {
	sqlite.MustRegisterScalarFunction("test_interrupt", 1,
		func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			cancel, _ := interrupts.Load(args[0])
			cancel.(context.CancelFunc)()
			return int64(1), nil
		})
}

// F1: SQLite rolls the transaction back when a statement that writes is interrupted. A function that passes over the
// error writes nothing without the fence, and the transaction fails.
func TestInterruptThatEndsTheTransaction(t *testing.T) {
	t.Parallel()
	const change = "UPDATE orders SET state = 'MINE' WHERE id = ?"
	const long = `INSERT INTO orders WITH RECURSIVE n (id) AS (SELECT 100 UNION ALL SELECT id + 1 FROM n)
		SELECT id, 'NEW' FROM n WHERE test_interrupt(?)`
	calls := map[string]func(ctx context.Context, tx *sql.Tx, query string, args ...any) error{
		"statement": func(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
			_, err := tx.ExecContext(ctx, query, args...)
			return err
		},
		"prepared": func(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
			prepared, err := tx.PrepareContext(ctx, query)
			if err != nil {
				return err
			}
			defer prepared.Close()
			_, err = prepared.ExecContext(ctx, args...)
			return err
		},
		"select": func(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
			var id int
			return tx.QueryRowContext(ctx, query+" RETURNING id", args...).Scan(&id)
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFenced(t, testdb.URL(t, testdb.SQLite))
			f.exec("INSERT INTO orders VALUES (2, 'NEW'), (3, 'NEW')")
			err := center.InTx(f.batch, f.c.DB(), func(tx *sql.Tx) error {
				if err := call(t.Context(), tx, change, 1); err != nil {
					return err
				}
				ended, cancel := context.WithCancel(t.Context())
				interrupts.Store(name, cancel)
				if err := call(ended, tx, long, name); err == nil {
					t.Error("no interrupt")
				}
				if err := call(t.Context(), tx, change, 3); err == nil {
					t.Error("behind the end of the transaction: no error")
				}
				return nil
			})
			got := states(t, f.c.DB())
			if err == nil || errors.Is(err, center.ErrUnknownCommit) || got != "NEW NEW NEW" {
				t.Errorf("error %v, the rows are %s; want the error of the interrupt, and no change", err, got)
			}
			must(t, center.InTx(f.batch, f.c.DB(), func(tx *sql.Tx) error { return call(t.Context(), tx, change, 3) }))
			if got := states(t, f.c.DB()); got != "NEW NEW MINE" {
				t.Errorf("after the next transaction the rows are %s", got)
			}
		})
	}
}

// heavy returns a transaction that has the row 2, and that the server does not choose to end a deadlock.
func heavy(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for id := range 50 {
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO orders VALUES (?, 'NEW')", 100+id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tx.ExecContext(t.Context(), "UPDATE orders SET state = 'OTHER' WHERE id = 2"); err != nil {
		t.Fatal(err)
	}
	return tx
}

// states returns the states of the rows 1 to 3.
func states(t *testing.T, db *sql.DB) string {
	t.Helper()
	var state [3]string
	for i := range state {
		err := db.QueryRowContext(t.Context(), "SELECT state FROM orders WHERE id = ?", i+1).Scan(&state[i])
		if err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("%s %s %s", state[0], state[1], state[2])
}
