package center

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
)

// QueueEpoch is a queue and the epoch under which a server owns it.
type QueueEpoch = roster.QueueEpoch

// CursorMove is how a batch of a Cursored dealer moves the cursor of its queue: from where the batch began to the
// position after its last item.
type CursorMove = roster.CursorMove

// Batch holds what the fence compares with the table: the queue of a batch and the epoch under which its items were
// selected (F2). The context of Execute carries it.
type Batch struct {
	Server   string // uuid
	TaskType string
	OwnSign  string
	Queue    QueueEpoch

	// Cursor, if not nil, is how a batch of a Cursored dealer moves the cursor of the queue. The fencing statement itself
	// saves it (F4).
	Cursor *CursorMove
	// Database is the name of the data database that has the items of the queue; empty for the roster's database (F11).
	Database string
	// Run, if not empty, is the id of the run whose sweep the batch belongs to (R8). Its cursor is that of the
	// queue in the run, and the fence also fails if the run's queue no longer belongs to this sweep.
	Run string
}

type batchKey struct{}

type boundBatch struct {
	Batch
	c     *Center
	data  *Data        // of Database
	saved *atomic.Bool // a fenced transaction has committed, and the cursor with it
}

// Bind returns a context that carries the batch to Fence and InTx. The manager calls it before each Execute. A test of
// a dealer that uses InTx may call it as well.
func (c *Center) Bind(ctx context.Context, b Batch) context.Context {
	b.OwnSign = c.ownSign
	return context.WithValue(ctx, batchKey{}, boundBatch{b, c, c.Data(b.Database), new(atomic.Bool)})
}

// BatchFrom returns the batch that the context of Execute carries.
func BatchFrom(ctx context.Context) (Batch, bool) {
	b, ok := ctx.Value(batchKey{}).(boundBatch)
	return b.Batch, ok
}

// batchOf returns the batch that the context of Execute carries, or ErrNoBatch.
func batchOf(ctx context.Context) (boundBatch, error) {
	b, ok := ctx.Value(batchKey{}).(boundBatch)
	if !ok {
		return b, ErrNoBatch
	}
	return b, nil
}

// IsFenced reports whether an error means that the server has lost the queue, rather than that an item has failed.
func IsFenced(err error) bool { return errors.Is(err, ErrFenced) }

// Fence makes the transaction commit only while this server owns the batch's queue under the epoch of the batch's
// selection. It is one statement. Make it the transaction's first, before any savepoint: rolling back to an earlier
// savepoint would drop its lock. Until the transaction ends, no other server can take over the queue: keep it short.
// The database ends a transaction that is idle for longer than Options.IdleTxTimeout. On SQLite the transaction must be
// an immediate one, as those of DB are.
//
// Fence returns ErrFenced if the queue has another owner or epoch, or if its cursor does not stand where the batch
// began, and the caller must roll back. It returns ErrNoBatch
// if ctx does not come from Execute, ErrNoTx if tx has no Commit and Rollback (a pool or a connection, of
// database/sql or of a wrapper), and ErrNoRoster if the transaction's database has no tables of the roster, or those
// of another roster.
//
// Fence sends its statement to the *sql.Tx that a struct embeds, past the wrapper's own placeholders and hooks. The
// examples of internal/wrappertest show Execute over sqlx and over bun. A dealer that begins by itself also retries by
// itself, and calls UnknownCommit after a commit that has failed, unless the database has answered.
//
// Fence does not see the pool of the transaction, and does not ask it for the settings that InTx asks for. It does not
// notice these, and guards nothing there: a wrapper whose Commit and Rollback belong to no transaction; a transaction
// that a statement (COMMIT, DDL on MySQL) has ended, or in a pool of the program a deadlock on MySQL or an interrupt on
// SQLite; a savepoint that is rolled back later; and a database that has a current copy of the roster's rows, such as a
// logical replica that takes writes.
func Fence(ctx context.Context, tx Tx) error {
	b, err := batchOf(ctx)
	if err != nil {
		return err
	}
	tx, err = begun(tx)
	if err != nil {
		return err
	}
	err = lostSince(ctx, b.fence(ctx, tx))
	if b.c.db.Class(err) == sqldb.NoTable {
		err = fmt.Errorf("%w (%w)", ErrNoRoster, err)
	}
	return b.fenceError(ctx, err)
}

// fenceError returns the error of a fence, unless its transaction leads to another roster.
func (b boundBatch) fenceError(ctx context.Context, err error) error {
	if errors.Is(err, ErrFenced) && !errors.Is(err, runs.ErrRunOver) && b.passes(ctx) {
		err = fmt.Errorf("%w: in the roster the worker owns the queue of the batch, and where the transaction leads it "+
			"does not", ErrNoRoster)
	}
	return sqldb.Wrap(err, "fence %s$%s", b.TaskType, b.OwnSign)
}

// lostSince adds ErrFenced to the error of a statement whose context was cancelled because the server has lost the
// queue of the batch. The statement does not reach the fence then, or its reply is not waited for. A commit whose
// outcome is unknown stays unknown: the fence may have let it pass before.
func lostSince(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || errors.Is(err, ErrFenced) || errors.Is(err, ErrUnknownCommit) || !errors.Is(cause, ErrFenced) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

// passes reports whether the fence of the batch would pass by the roster's own connections. The fence of a transaction
// in the same database does not fail then: an epoch is never used again, and only the batch itself moves its cursor. A
// roster in memory has one connection, which the transaction holds.
func (b boundBatch) passes(ctx context.Context) bool {
	if b.c.db.Database.Memory {
		return false
	}
	cursor := b.Cursor
	if b.data != nil || b.Run != "" { // it is in another row
		cursor = nil
	}
	return b.rows().Check(ctx, b.Queue, cursor) == nil
}

// rows returns what compares the owners with the rows of the roster.
func (b boundBatch) rows() roster.Fence { return b.c.roster.Server(b.TaskType, b.Server).Fence() }

// fence fences a transaction of the roster's database. The cursor of a queue whose items are elsewhere is there, too.
func (b boundBatch) fence(ctx context.Context, tx Tx) error {
	switch {
	case b.data != nil:
		return b.rows().Hold(ctx, tx, b.Queue)
	case b.Run != "" && b.Cursor != nil:
		return b.fenceRun(ctx, tx)
	}
	return b.saveOrHold(ctx, tx, b.rows())
}

// saveOrHold fences a transaction with the rows of its database, and saves the cursor of the batch if it has one.
func (b boundBatch) saveOrHold(ctx context.Context, tx Tx, rows roster.Fence) error {
	if b.Cursor == nil {
		return rows.Hold(ctx, tx, b.Queue)
	}
	return b.saveCursor(ctx, tx, rows)
}

func (b boundBatch) saveCursor(ctx context.Context, tx roster.Execer, rows roster.Fence) error {
	if err := roster.CheckCursor(b.Cursor.To); err != nil {
		return err
	}
	return rows.MoveCursor(ctx, tx, b.Queue, *b.Cursor)
}

// fenceRun saves the cursor of a queue of a run. The cursor is not in the queue's own row, so fenceRun fences that row
// first. It fences by writing: the batches of a cursor run one by one anyway (X3).
func (b boundBatch) fenceRun(ctx context.Context, tx roster.Execer) error {
	if err := roster.CheckCursor(b.Cursor.To); err != nil {
		return err
	}
	if err := b.rows().HoldByWriting(ctx, tx, b.Queue); err != nil {
		return err
	}
	q, move := b.Queue, *b.Cursor
	n, err := sqldb.Affected(tx.ExecContext(ctx, b.c.db.SQL(`UPDATE schedule_run_queue`+b.c.db.ByKey+`
		SET cursor_value = ?, recoveries = 0, progress_at = {now}
		WHERE run_id = ? AND queue_id = ? AND state = '`+runs.QueueRunning+`' AND server = ?
		AND epoch = ? AND `+roster.CursorStands), move.To, b.Run, q.ID, b.Server, q.Epoch, move.From, move.To))
	if err == nil && n == 0 {
		err = fmt.Errorf("queue %s of run %s: %w: %w", q.ID, b.Run, ErrFenced, runs.ErrRunOver)
	}
	return err
}

// InTx runs fn in a fenced transaction of db: begin, fence (and save the cursor), fn, commit. An item then takes effect
// exactly once if fn changes a value that Select filters on (F5). The cursor of a Cursored dealer moves to the end of
// the batch, so call InTx once for all items of the batch.
//
// InTx may run fn several times, each time after a transaction that certainly rolled back: fn must have effects through
// tx only. When the outcome of the commit is unknown, InTx returns ErrUnknownCommit and does not run fn again. The
// queue is selected again when the transaction has ended (see UnknownCommit); Select then returns the items that did
// not take effect. InTx wraps the errors of Fence, of fn and of the database.
//
// db is the pool of DB, or one of the program's own that leads to the roster's database, such as the field DB of a
// *sqlx.DB or a *bun.DB. InTx asks such a pool for what the fence needs in a transaction of its own, before the first
// use, and returns ErrUnfitPool for a setting that would break the fence: on PostgreSQL client_encoding and
// transaction_read_only; on MySQL and MariaDB the character sets, and wsrep_sync_wait on Galera; on SQLite _txlock, and
// the driver, which must be modernc.org/sqlite. Any isolation level will do, and clientFoundRows is not needed. InTx
// assumes that all connections of a pool are alike. Options.IdleTxTimeout holds for the transactions of such a pool on
// PostgreSQL only: on MySQL and MariaDB InTx logs a warning if theirs may be idle for longer.
func InTx(ctx context.Context, db *sql.DB, fn func(*sql.Tx) error) error {
	b, err := batchOf(ctx)
	if err != nil {
		return err
	}
	return b.ended(nil, lostSince(ctx, b.c.db.Retry(ctx, func() (clean bool, err error) {
		if err := b.c.checkPool(ctx, db); err != nil {
			return true, err
		}
		return tryInTx(ctx, b.c.db, db, Fence, fn)
	})))
}

// tryInTx runs fn in a fenced transaction of a pool that leads to a database. After a failure, clean reports whether
// the transaction has certainly changed nothing and fn may run again.
func tryInTx(ctx context.Context, d *sqldb.DB, pool *sql.DB, fence func(context.Context, Tx) error,
	fn func(*sql.Tx) error,
) (clean bool, err error) {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return true, fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // after a commit it does nothing
	if err := fence(ctx, tx); err != nil {
		return true, err
	}
	if err := fn(tx); err != nil {
		// A lost connection is no reason to run fn again: fn may have opened it itself.
		return d.Class(err) == sqldb.RolledBack, err
	}
	err = d.CommitError(ctx, tx.Commit())
	return !errors.Is(err, ErrUnknownCommit), err
}

// SaveCursor saves the cursor of the batch that ctx carries, unless InTx has committed it already in this context (F4).
// It is for dealers that do not write through a fenced transaction, or take its failure for success. Their cursor may
// fall behind their effects, but is never ahead of them. If center.Fence has saved the cursor in a transaction of the
// dealer, SaveCursor writes it once more, which changes nothing. SaveCursor returns ErrFenced if the queue has another
// owner or epoch, or if its cursor does not stand where the batch began, and ErrNoBatch if ctx does not come from
// Execute.
func SaveCursor(ctx context.Context) error {
	b, err := batchOf(ctx)
	if err != nil || b.Cursor == nil || b.saved.Load() {
		return err
	}
	if b.Run != "" {
		err := b.c.db.Transact(ctx, b.c.db.Dealers,
			func(ctx context.Context, t sqldb.Tx) error { return b.fenceRun(ctx, t.Raw) })
		if err != nil {
			return fmt.Errorf("save the cursor of run %s: %w", b.Run, lostSince(ctx, err))
		}
		return nil
	}
	rows := b.rows()
	if b.data != nil {
		rows = b.data.fence(b.TaskType, b.Server)
	}
	one := sqldb.Single{Pool: rows.DB.Dealers}
	err = rows.DB.Retry(ctx, func() (bool, error) { return true, b.saveCursor(ctx, one, rows) })
	if b.data != nil && errors.Is(err, ErrFenced) {
		b.data.forget(b.TaskType, b.Queue)
	}
	if err != nil {
		return fmt.Errorf("save the cursor of %s$%s: %w", b.TaskType, b.OwnSign, lostSince(ctx, err))
	}
	return nil
}

// Column returns the values of a query with one column, for the Select of a dealer:
//
//	return center.Column[int64](ctx, db,
//		`SELECT id FROM orders WHERE state = 'NEW' AND `+c.Dialect().Mine("id", 1)+` ORDER BY id LIMIT $3`,
//		s.Total, s.Queue.Index, s.Limit)
//
// The values are scanned as by database/sql. It returns the error of the query, of a scan, or of reading on, and no
// values then.
func Column[T any](ctx context.Context, db Queryer, query string, args ...any) (values []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return values, nil
}

// Queryer is a *sql.DB, *sql.Conn or *sql.Tx, or what wraps one.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}
