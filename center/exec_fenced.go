package center

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/dutyrota/rota/internal/sqldb"
)

// ExecFenced executes one statement that changes rows, with the effect of an [InTx] whose function executes nothing
// else. PostgreSQL gets both in one statement, which is one round trip in the place of four; a connection of DB that
// was idle for a second is asked first whether it still answers. On the pool of DB it parses and plans the statement
// once for each connection, unless there is a pooler between: so a batch of a hundred rows takes the database about as
// long as it does without a fence. For that the statement begins with INSERT, UPDATE or DELETE, the batch has no
// cursor, and its items are in the roster's database. All others are executed by InTx. So is what PostgreSQL refuses,
// because it takes some statements not as a part of another one: for instance, for a table with rules.
//
// db, the retries and the errors are those of InTx. query has the placeholders of the database, for args.
func ExecFenced(ctx context.Context, db *sql.DB, query string, args ...any) error {
	b, err := batchOf(ctx)
	if err != nil {
		return err
	}
	guarded, params, ok := b.guard(query, args)
	if ok {
		err := b.ended(nil, lostSince(ctx, b.c.db.Retry(ctx, func() (clean bool, err error) {
			if err := b.c.checkPool(ctx, db); err != nil {
				return true, err
			}
			err = b.execGuarded(ctx, db, guarded, params)
			clean = !errors.Is(err, ErrUnknownCommit) && b.c.db.Class(err) != sqldb.Interrupted
			return clean, err // as InTx, it does not repeat a statement that takes too long
		})))
		if class := b.c.db.Class(err); class != sqldb.Refused && class != sqldb.NoTable {
			return err
		}
	}
	err = InTx(ctx, db, execute(ctx, query, args))
	if ok && err == nil { // so it was refused as a part of another one only
		b.c.unguarded.add(query)
	}
	return err
}

// unguarded are the last texts of statements that PostgreSQL refuses as a part of another one.
type unguarded struct {
	mu    sync.Mutex
	texts map[string]bool
}

// mostUnguarded bounds them. A program that makes a text for each batch begins anew with each hundred.
const mostUnguarded = 100

func (u *unguarded) add(text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.texts == nil || len(u.texts) >= mostUnguarded {
		u.texts = map[string]bool{}
	}
	u.texts[text] = true
}

func (u *unguarded) has(text string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.texts[text]
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
	if b.data != nil || b.Cursor != nil || b.c.unguarded.has(query) {
		return "", nil, false
	}
	return b.rows().Guard(b.Queue, query, args)
}

// execGuarded executes a statement with its fence. It takes a connection first: a pool would send the statement again
// after a connection that was lost, although the first one may have had its effect.
func (b boundBatch) execGuarded(ctx context.Context, db *sql.DB, text string, params []any) error {
	conn, err := sqldb.Answering(ctx, db)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close() // returns it to the pool
	_, err = conn.ExecContext(sqldb.Repeated(ctx), text, params...)
	if err = b.rows().GuardError(b.Queue, err); errors.Is(err, ErrFenced) {
		return b.fenceError(ctx, err)
	}
	if b.c.db.Class(err) == sqldb.Interrupted { // PostgreSQL, which has the guard, has answered that it rolled back
		return err
	}
	return b.c.db.CommitError(ctx, err)
}
