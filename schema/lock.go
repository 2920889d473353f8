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

// leaseTime is how long a holder that died blocks the others. A living one renews three times as often.
const leaseTime = 15 * time.Second

var (
	errHeld = errors.New("another process migrates")
	errLost = errors.New("another process took the migration lock, because this one was silent for too long: run it again")
)

// lease is the lock that one migrating process holds: a row that says who, and until when by the
// database's clock.
type lease struct {
	*grammar
	db     *sql.DB
	holder string
	time   time.Duration
}

func newLease(g *grammar, db *sql.DB) *lease {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown" // The name is for a human who looks into the table, the rest makes it unique.
	}
	return &lease{grammar: g, db: db, holder: fmt.Sprintf("%s:%d:%s", host, os.Getpid(), rand.Text()), time: leaseTime}
}

// hold waits for the lease and calls fn while it keeps it. fn's context ends when the lease was lost.
func (l *lease) hold(ctx context.Context, fn func(context.Context) error) error {
	if err := l.wait(ctx); err != nil {
		return fmt.Errorf("take the migration lock: %w", err)
	}
	defer l.free(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { l.keep(ctx, cancel) })
	err := because(ctx, fn(ctx))
	cancel(nil)
	keeper.Wait()
	return err
}

// wait returns when the lease is held, or when ctx ends. It has no limit of its own, because a living holder
// may have much to migrate, and a dead one's lease runs out.
func (l *lease) wait(ctx context.Context) error {
	again := func(err error) bool { return errors.Is(err, errHeld) || l.transient(err) || l.raced(err) }
	return retry(ctx, again, 0, func() error {
		for _, statement := range l.bookkeeping {
			if _, err := l.db.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return l.take(ctx)
	})
}

// take succeeds too if the lease is ours already: the reply to an earlier attempt may have been lost.
func (l *lease) take(ctx context.Context) error {
	query := `UPDATE schedule_schema_lock SET holder = ?, expires_at = ` + l.soon + `
		WHERE id = 1 AND (holder IN ('', ?) OR expires_at < ` + l.now + `)`
	return l.update(ctx, l.db, errHeld, query, l.holder, l.time.Milliseconds(), l.holder)
}

// keep renews the lease until ctx ends. An attempt that fails is not the end: as long as nobody has taken
// the lease it is ours, and the renewal that each migration makes in its own transaction decides.
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

// free drops its error: the lease of a holder that cannot say good-bye runs out.
func (l *lease) free(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.time/3)
	defer cancel()
	query := `UPDATE schedule_schema_lock SET holder = '', expires_at = NULL WHERE id = 1 AND holder = ?`
	_ = retry(ctx, l.transient, 0, func() error { return l.update(ctx, l.db, errLost, query, l.holder) })
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// update runs a statement on the lease row and returns missed if it met no row. Every statement changes the
// row that it meets, so that MySQL, which counts changed rows, counts it.
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
