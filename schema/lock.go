package schema

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// leaseTime is how long a dead holder blocks the others. A live holder renews three times in that time.
const leaseTime = 15 * time.Second

var (
	errHeld = errors.New("another process is migrating")
	errLost = errors.New("another process took the migration lock, because this one did not renew it in time: " +
		"run the migration again")
)

// lease is the lock of a process that migrates: the row of schedule_schema_lock, which names the holder and the
// moment at which its lease expires by the database's clock.
type lease struct {
	*grammar
	db     *sql.DB
	holder string
	time   time.Duration
}

func newLease(g *grammar, db *sql.DB) *lease {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown" // The name helps a reader of the table. The random text makes the holder unique.
	}
	return &lease{grammar: g, db: db, holder: fmt.Sprintf("%s:%d:%s", host, os.Getpid(), rand.Text()), time: leaseTime}
}

// hold waits for the lease, calls fn and releases the lease. The context of fn ends when the lease is lost.
func (l *lease) hold(ctx context.Context, fn func(context.Context) error) error {
	if err := l.wait(ctx); err != nil {
		return fmt.Errorf("acquire the migration lock: %w", err)
	}
	defer l.release(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	var renewals sync.WaitGroup
	renewals.Go(func() { l.keep(ctx, cancel) })
	err := causeOr(ctx, fn(ctx))
	cancel(nil)
	renewals.Wait()
	return err
}

// wait creates the bookkeeping tables, and returns when the lease is held or ctx ends. It has no time limit of its
// own: the migration of a live holder may take long, and the lease of a dead holder expires. Its error names the
// holder.
func (l *lease) wait(ctx context.Context) error {
	again := func(err error) bool { return errors.Is(err, errHeld) || l.transient(err) || l.raced(err) }
	var other string
	err := retry(ctx, again, 0, func() error {
		for _, statement := range l.bookkeeping {
			if _, err := l.db.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		err := l.acquire(ctx)
		if errors.Is(err, errHeld) {
			if name, err := l.liveHolder(ctx, l.db); err == nil { // the name is for the error only
				other = name
			}
		}
		return err
	})
	if err != nil && other != "" {
		return fmt.Errorf("%s holds it: %w", other, err)
	}
	return err
}

// acquire takes the lease if it is free or expired, and returns errHeld otherwise. It also succeeds if this process
// holds the lease already: the reply to an earlier attempt may have been lost.
func (l *lease) acquire(ctx context.Context) error {
	query := `UPDATE schedule_schema_lock SET holder = ?, expires_at = ` + l.soon + `
		WHERE id = 1 AND (holder IN ('', ?) OR expires_at < ` + l.now + `)`
	return l.update(ctx, l.db, errHeld, query, l.holder, l.time.Milliseconds(), l.holder)
}

// keep renews the lease until ctx ends, and cancels ctx when another process has taken it. A renewal that fails for
// another reason loses nothing: the lease is held until another process takes it, and each migration renews it once
// more in its own transaction.
func (l *lease) keep(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(l.time / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := l.renew(ctx, l.db); errors.Is(err, errLost) {
				cancel(err)
				return
			}
		}
	}
}

func (l *lease) renew(ctx context.Context, db execer) error {
	query := `UPDATE schedule_schema_lock SET expires_at = ` + l.soon + ` WHERE id = 1 AND holder = ?`
	return l.update(ctx, db, errLost, query, l.time.Milliseconds(), l.holder)
}

// release drops its error: a lease that cannot be released expires.
func (l *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.time/3)
	defer cancel()
	query := `UPDATE schedule_schema_lock SET holder = '', expires_at = NULL WHERE id = 1 AND holder = ?`
	_ = retry(ctx, l.transient, 0, func() error { return l.update(ctx, l.db, errLost, query, l.holder) })
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// update runs a statement on the lease row and returns missed if no row matched. Every statement changes the row that
// it matches, because MySQL counts changed rows.
func (l *lease) update(ctx context.Context, db execer, missed error, query string, args ...any) error {
	result, err := db.ExecContext(ctx, l.bind(query), args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = missed
	}
	return err
}
