package center

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// ExecFenced executes one statement that changes rows, with the effect of an [InTx] whose function executes nothing
// else. PostgreSQL gets both in one statement, which is one round trip in the place of four, and takes a tenth off
// the database's time for a batch of a hundred rows. For that the statement begins with INSERT, UPDATE or DELETE, the
// batch has no cursor, and its items are in the roster's database. All others are executed by InTx. So is what
// PostgreSQL refuses, because it takes some statements not as a part of another one: for instance, for a table with
// rules.
//
// db, the retries and the errors are those of InTx. query has the placeholders of the database, for args.
func ExecFenced(ctx context.Context, db *sql.DB, query string, args ...any) error {
	b, err := batchOf(ctx)
	if err != nil {
		return err
	}
	if guarded, params, ok := b.guard(query, args); ok {
		err := b.noted(lostSince(ctx, b.c.db.Retry(ctx, func() (clean bool, err error) {
			if err := b.c.checkPool(ctx, db); err != nil {
				return true, err
			}
			err = b.execGuarded(ctx, db, guarded, params)
			return !errors.Is(err, ErrUnknownCommit), err
		})))
		if b.c.db.Class(err) != sqldb.Refused {
			return err
		}
	}
	return InTx(ctx, db, execute(ctx, query, args))
}

func execute(ctx context.Context, query string, args []any) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	}
}

// ExecFenced does what the function ExecFenced does, in this database and on the pool of DB.
func (d *Data) ExecFenced(ctx context.Context, query string, args ...any) error {
	return d.InTx(ctx, execute(ctx, query, args))
}

// guard returns the statement with its fence, if the database takes both together.
func (b boundBatch) guard(query string, args []any) (text string, params []any, ok bool) {
	if b.data != nil || b.Cursor != nil {
		return "", nil, false
	}
	return b.rows().Guard(b.Queue, query, args)
}

// execGuarded executes a statement with its fence. It takes a connection first: a pool would send the statement again
// after a connection that was lost, although the first one may have had its effect.
func (b boundBatch) execGuarded(ctx context.Context, db *sql.DB, text string, params []any) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close() // returns it to the pool
	_, err = conn.ExecContext(ctx, text, params...)
	if err = b.rows().GuardError(b.Queue, err); errors.Is(err, ErrFenced) {
		return b.fenceError(ctx, err)
	}
	return b.c.db.CommitError(ctx, err)
}
