package schema

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// rivals returns two leases on one database, each with its own handle. The bookkeeping tables are there.
func rivals(t *testing.T, url string) (a, b *lease) {
	t.Helper()
	rival := func() *lease {
		db, d := open(t, url)
		g, err := d.grammar()
		if err != nil {
			t.Fatal(err)
		}
		return newLease(g, db)
	}
	a, b = rival(), rival()
	for _, s := range a.bookkeeping {
		execute(t, a.db, s)
	}
	return a, b
}

func TestLeaseExcludes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		a, b := rivals(t, url)
		for range 2 { // the second time as after a lost reply
			if err := a.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.acquire(t.Context()); !errors.Is(err, errHeld) {
			t.Fatalf("acquired by both: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, _, err := Up(ctx, b.db, b.name); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Up beside a holder: %v", err)
		}
		b.release(t.Context()) // b does not hold it
		if err := b.acquire(t.Context()); !errors.Is(err, errHeld) {
			t.Errorf("released by a process that does not hold it: %v", err)
		}
		a.release(t.Context())
		if err := b.acquire(t.Context()); err != nil {
			t.Errorf("after release: %v", err)
		}
	})
}

func TestLeaseOfADeadHolderExpires(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		dead, next := rivals(t, url)
		dead.time = 300 * time.Millisecond
		if err := dead.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if from, to, err := Up(patient(t), next.db, next.name); err != nil || from != 0 || to != Latest() {
			t.Fatalf("Up = %d, %d, %v", from, to, err)
		}
		complete(t, next.db, next.name)
	})
}

// A holder that slept until its lease expired must not record a version, and must not change a table where DDL can be
// rolled back.
func TestLateHolderChangesNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		late, next := rivals(t, url)
		if err := next.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := late.renew(t.Context(), late.db); !errors.Is(err, errLost) {
			t.Errorf("renew = %v", err)
		}
		if _, _, err := late.up(t.Context()); !errors.Is(err, errLost) {
			t.Errorf("up = %v", err)
		}
		if err := Check(t.Context(), next.db, next.name); !errors.Is(err, ErrMissing) {
			t.Errorf("the late holder recorded a version: %v", err)
		}
		if left := relations(t, next.db, next.name); next.name.Family() != MySQL && slices.Contains(left, "schedule_queue") {
			t.Errorf("the late holder left %v", left)
		}
		if _, _, err := next.up(t.Context()); err != nil {
			t.Errorf("its successor: %v", err)
		}
	})
}

// patient returns a context for work that may take a while on a slow machine.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestHoldRenews(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		l, watcher := rivals(t, url)
		l.time = 600 * time.Millisecond
		err := l.hold(patient(t), func(ctx context.Context) error {
			first := expiry(t, watcher.db) //nolint:contextcheck // the watcher does not hold the lease
			for last, renewals := first, 0; renewals < 2; {
				if now := expiry(t, watcher.db); now.After(last) { //nolint:contextcheck // the same
					last, renewals = now, renewals+1
				}
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(20 * time.Millisecond):
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := watcher.acquire(t.Context()); err != nil {
			t.Errorf("not released: %v", err)
		}
	})
}

func expiry(t *testing.T, db *sql.DB) time.Time {
	t.Helper()
	var at time.Time
	err := retry(t.Context(), busy, 0, func() error {
		return db.QueryRowContext(t.Context(), `SELECT expires_at FROM schedule_schema_lock`).Scan((*instant)(&at))
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestHoldEndsWhenLost(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		l, thief := rivals(t, url)
		l.time = 600 * time.Millisecond
		err := l.hold(patient(t), func(ctx context.Context) error {
			execute(t, thief.db, `UPDATE schedule_schema_lock SET holder = ?`, thief.holder) //nolint:contextcheck // the thief does not hold the lease
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, errLost) {
			t.Errorf("hold = %v", err)
		}
		if holders := texts(t, thief.db, `SELECT holder FROM schedule_schema_lock`); holders[0] != thief.holder {
			t.Errorf("the lease of the thief was released: %q", holders)
		}
	})
}

// A stray transaction holds the row. Up returns the error of its context, whatever error the driver has.
func TestBlockedUpEndsWithItsContext(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		l, stray := rivals(t, url)
		tx, err := stray.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(t.Context(), `UPDATE schedule_schema_lock SET holder = 'stray'`); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, _, err := Up(ctx, l.db, l.name); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Up = %v", err)
		}
	})
}

// An operator may delete the row to release the lease.
func TestDeletedLockRowComesBack(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		l, _ := rivals(t, url)
		execute(t, l.db, `DELETE FROM schedule_schema_lock`)
		if _, _, err := Up(t.Context(), l.db, l.name); err != nil {
			t.Fatal(err)
		}
	})
}

func TestDollars(t *testing.T) {
	t.Parallel()
	if got := dollars("a = ? AND b IN (?, ?)"); got != "a = $1 AND b IN ($2, $3)" {
		t.Error(got)
	}
}
