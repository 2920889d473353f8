package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Tx is a transaction that translates its statements into the dialect of its database.
type Tx struct {
	Raw     *sql.Tx
	Dialect *Dialect
}

// Exec returns how many rows a statement matched.
func (t Tx) Exec(ctx context.Context, query string, args ...any) (int, error) {
	return Affected(t.Raw.ExecContext(ctx, t.Dialect.SQL(query), args...))
}

// QueryRow asks for one row.
func (t Tx) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return t.Raw.QueryRowContext(ctx, t.Dialect.SQL(query), args...)
}

// Each calls scan for each row that a query returns.
func (t Tx) Each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	return Reading{t.Raw, t.Dialect}.Each(ctx, scan, query, args...)
}

// Commit commits. After a failure, clean reports whether the transaction has certainly changed nothing. Otherwise the
// error is ErrUnknownCommit.
func (t Tx) Commit(ctx context.Context) (clean bool, err error) {
	err = t.Dialect.CommitError(ctx, t.Raw.Commit())
	return !errors.Is(err, ErrUnknownCommit), err
}

// Rollback ends the transaction if Commit has not. It drops the error: if the connection is lost, the server rolls
// back.
func (t Tx) Rollback() { _ = t.Raw.Rollback() }

// limit sets the limits of the dialect with a statement of its own.
func (t Tx) limit(ctx context.Context) error {
	if t.Dialect.Limits == "" {
		return nil
	}
	_, err := Value[int](ctx, t, `SELECT 1 WHERE 1 = 1`+t.Dialect.Limits)
	return err
}

// Begin starts a transaction on one of the pools.
func (db *DB) Begin(ctx context.Context, pool *sql.DB) (Tx, error) {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return Tx{}, fmt.Errorf("begin: %w", err)
	}
	return Tx{Raw: tx, Dialect: db.Dialect}, nil
}

// Transact runs f in a transaction of a pool without the lock row, and retries it. After a commit whose reply was lost,
// Transact runs f once more. Therefore f must change rows under conditions, and must treat a change that is already
// there as its own.
func (db *DB) Transact(ctx context.Context, pool *sql.DB, f func(context.Context, Tx) error) error {
	once := func() error {
		return db.Retry(ctx, func() (bool, error) { return db.tryTransact(ctx, pool, f) })
	}
	err := once()
	if errors.Is(err, ErrUnknownCommit) && ctx.Err() == nil {
		err = once()
	}
	return err
}

func (db *DB) tryTransact(ctx context.Context, pool *sql.DB,
	f func(context.Context, Tx) error,
) (clean bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, AttemptTimeout)
	defer cancel()
	t, err := db.Begin(ctx, pool)
	if err != nil {
		return true, err
	}
	defer t.Rollback()
	if err := t.limit(ctx); err != nil {
		return true, err
	}
	if err := f(ctx, t); err != nil {
		return true, err
	}
	return t.Commit(ctx)
}

// AttemptTimeout bounds one attempt of a transaction, which has a dozen statements at most. Over a slow link each of
// them takes up to a sixth of judge_dead_interval. A database that does not answer is noticed after IOTimeout.
const AttemptTimeout = 30 * time.Second

// attempts is the largest number of attempts of one transaction. After that, the caller tries again at its next
// heartbeat.
const attempts = 8

// Retry calls try, which runs a transaction, until it has committed or failed for good (L7). clean reports whether a
// failed try has certainly changed nothing.
func (db *DB) Retry(ctx context.Context, try func() (clean bool, err error)) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 5*time.Millisecond, 500*time.Millisecond
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		clean, err := try()
		db.count(err)
		if err != nil && (!clean || !db.Retryable(err)) {
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxTries(attempts))
	return err
}

// RetryRead retries a read outside of a transaction as Retry does a transaction.
func (db *DB) RetryRead(ctx context.Context, read func(context.Context) error) error {
	return db.Retry(ctx, func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, AttemptTimeout)
		defer cancel()
		return true, read(ctx)
	})
}

// Counts has counts since a DB was opened. A try is one attempt of a transaction, or of a statement outside of
// transactions.
type Counts struct {
	Done   int64           // successes, however many tries they took
	Tries  int64           // each retry counts
	Errors map[Class]int64 // failed tries
}

func (db *DB) count(err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.counts.Tries++
	if err == nil || errors.Is(err, ErrBusy) { // the caller does not wait
		db.counts.Done++
		return
	}
	db.counts.Errors[db.Class(err)]++
}
