package roster

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Execer is a transaction or a pool.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// FenceTx is a transaction that can be fenced.
type FenceTx interface {
	Execer
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Fence compares the owner of a queue of a task type with the row of one table, in the name of one server. The
// table is schedule_queue of the roster, or rota_fence of a database with the data of a task type (F11).
type Fence struct {
	DB                        *sqldb.DB
	Table                     string
	TaskType, OwnSign, Server string
	IdleTxTimeout             time.Duration // as that of the Roster
}

// queueTable is the table of the roster's queues.
const queueTable = "schedule_queue"

// Fence returns what fences the writes of the server in the roster's database.
func (s Server) Fence() Fence {
	return Fence{s.roster.DB, queueTable, s.taskType, s.roster.OwnSign, s.uuid, s.roster.IdleTxTimeout}
}

// Hold makes the transaction commit only while the server owns the queue under its epoch (F1). It returns ErrFenced if
// the server has lost it.
func (f Fence) Hold(ctx context.Context, tx FenceTx, q QueueEpoch) error {
	if f.DB.WriteFence {
		return f.HoldByWriting(ctx, tx, q)
	}
	return f.holdByReading(ctx, tx, q)
}

// holdByReading locks the row in share mode, so that several batches of one queue run at the same time. A transaction
// that changes the owner waits for them, or skips the row (F3).
func (f Fence) holdByReading(ctx context.Context, tx sqldb.Queryer, q QueueEpoch) error {
	settings, params := f.fenceSettings()
	return f.compareOwner(ctx, tx, q, settings, f.DB.Share, params...)
}

// Guard returns a statement that runs work, which changes rows and has the given parameters, while the server owns the
// queue under its epoch, and else fails without an effect: see [Fence.GuardError]. It returns false if the database, or
// the statement, does not allow that: then hold the queue in a transaction.
func (f Fence) Guard(q QueueEpoch, work string, params []any) (text string, all []any, ok bool) {
	if f.DB.WriteFence {
		return "", nil, false
	}
	text, ok = f.DB.Guarded(f.Table, work, len(params))
	return text, slices.Concat(params, f.ofOwner(q)), ok
}

// GuardError returns what the error of a statement of Guard means for the queue: ErrFenced if the server has lost it.
func (Fence) GuardError(q QueueEpoch, err error) error {
	if err != nil && strings.Contains(err.Error(), sqldb.GuardFailed) {
		return fmt.Errorf("queue %s: %w", q.ID, ErrFenced)
	}
	return err
}

// Check returns ErrFenced if the server does not own the queue under its epoch at the moment, or if its cursor does not
// stand where the move begins or ends, unless that is nil. It locks nothing, and reads over the connections of the
// roster.
func (f Fence) Check(ctx context.Context, q QueueEpoch, m *CursorMove) error {
	if m == nil {
		return f.compareOwner(ctx, f.DB.Store, q, ``, ``)
	}
	return f.compareOwner(ctx, f.DB.Store, q, ` AND `+CursorStands, ``, m.From, m.To)
}

// compareOwner returns ErrFenced if the server does not own the queue under its epoch. and is another condition for the
// row, with its parameters, and lock ends the SELECT.
//
// The row is looked up by its key, and compared here: see HoldByWriting.
func (f Fence) compareOwner(ctx context.Context, tx sqldb.Queryer, q QueueEpoch, and, lock string, params ...any,
) error {
	type owned struct {
		ID    string
		Epoch int64
		Owner sqldb.Text
	}
	rows, err := sqldb.Records[owned](ctx, sqldb.Strict{Eacher: f.DB.On(tx)}, `SELECT q.queue_id, q.epoch, q.cur_server
		FROM `+f.Table+` AS q WHERE `+ofTask+` AND queue_id = ?`+and+lock,
		append([]any{f.TaskType, f.OwnSign, q.ID}, params...)...)
	if err != nil {
		return err
	}
	if !slices.Contains(rows, owned{q.ID, q.Epoch, sqldb.Text(f.Server)}) {
		return fmt.Errorf("queue %s: %w", q.ID, ErrFenced)
	}
	return nil
}

// HoldByWriting does what Hold does, for databases without share locks across their nodes: it updates the row, so that
// the database detects the conflict. Batches of one queue then run one after the other. Writing the time ensures that
// the row changes.
//
// The row is looked up by its key. In an index of the owners, a transaction at REPEATABLE READ, the default of MySQL,
// would also lock the place beside its row, and a plan that makes another server an owner would wait for it (L5).
func (f Fence) HoldByWriting(ctx context.Context, tx Execer, q QueueEpoch) error {
	return f.write(ctx, tx, q, ``, ``)
}

// CursorMove is how a batch of a Cursored dealer moves the cursor of its queue: from where the batch began to the
// position after its last item.
type CursorMove struct{ From, To string }

// CursorStands is the condition for the row of a cursor that a move may be saved (F4), with the parameters From and To.
// The cursor stands at To already where an attempt has moved it whose reply was lost.
const CursorStands = `cursor_value IN (?, ?)`

// MoveCursor does what HoldByWriting does, and moves the cursor of the queue. It returns ErrFenced, too, if the cursor
// does not stand where the batch began (F4).
func (f Fence) MoveCursor(ctx context.Context, tx Execer, q QueueEpoch, m CursorMove) error {
	err := f.write(ctx, tx, q, `cursor_value = ?, `, CursorStands+` AND `, m.To, m.From, m.To)
	if errors.Is(err, ErrFenced) {
		err = fmt.Errorf("%w, or its cursor is not where the batch began", err)
	}
	return err
}

// write updates the row. set begins the SET clause, and where the condition; args are the parameters of both.
func (f Fence) write(ctx context.Context, tx Execer, q QueueEpoch, set, where string, args ...any) error {
	query, params := f.statement(q, set+`gmt_modified = {now}`, where, args...)
	n, err := sqldb.Affected(tx.ExecContext(ctx, query, params...))
	if err == nil && n == 0 {
		err = fmt.Errorf("queue %s: %w", q.ID, ErrFenced)
	}
	return err
}

// End waits until all transactions have ended that the fence has let pass for a queue, for about a second, and then
// returns a HeldError. It writes the row, as a change of the owner does. So it makes a transaction fail that another
// node of a cluster has not certified yet. It returns ErrFenced if the server does not own the queue any more.
func (f Fence) End(ctx context.Context, q QueueEpoch) error {
	return f.DB.Transact(ctx, f.DB.Store, func(ctx context.Context, t sqldb.Tx) error {
		return f.held(f.HoldByWriting(ctx, t.Raw, q))
	})
}

// Statement returns what HoldByWriting runs, for another program. It changes one row while the server
// owns the queue under the epoch, and else none. It has a mark for each parameter, in their order.
func (f Fence) Statement(q QueueEpoch) (query string, params []any) {
	return f.statement(q, `gmt_modified = `+cmp.Or(f.DB.PlainNow, `{now}`), ``)
}

func (f Fence) statement(q QueueEpoch, set, where string, args ...any) (query string, params []any) {
	settings, params := f.fenceSettings()
	return f.DB.SQL(`UPDATE ` + f.Table + f.DB.ByKey + ` SET ` + set + ` WHERE ` + where + ofOwner + settings),
		slices.Concat(args, f.ofOwner(q), params)
}

// fenceSettings returns a condition of the fencing statement and its parameters. The condition is always true. It makes
// the transaction durable, and limits how long it may be idle (F6), where that is to be set for a transaction.
func (f Fence) fenceSettings() (condition string, args []any) {
	if f.IdleTxTimeout <= 0 || f.DB.IdleLimit == "" {
		return f.DB.Durable, nil
	}
	ms := strconv.FormatInt(max(f.IdleTxTimeout.Milliseconds(), 1), 10) + "ms"
	return f.DB.Durable + f.DB.IdleLimit, slices.Repeat([]any{ms}, strings.Count(f.DB.IdleLimit, "?"))
}

// CheckCursor returns an error if no database could keep a cursor as it is. A cut one would be another place
// (X12).
func CheckCursor(cursor string) error { return sqldb.CheckText("the cursor", cursor, sqldb.MaxText) }

// Cursor returns how far the source of a queue was read. It returns ErrFenced if the server does not own the queue
// under that epoch any more.
func (f Fence) Cursor(ctx context.Context, q QueueEpoch) (cursor string, err error) {
	cursor, err = sqldb.One[string](ctx, f.DB.On(f.DB.Dealers), ErrFenced, `SELECT cursor_value
		FROM `+f.Table+` WHERE `+ofOwner, f.ofOwner(q)...)
	return cursor, sqldb.Wrap(err, "read the cursor of queue %s of %s$%s", q.ID, f.TaskType, f.OwnSign)
}

// WindowDone records that a queue was found empty in the permit window that began at since: its owner does not work
// it again until the next window begins. It returns ErrFenced if the server does not own the queue under that epoch
// any more.
func (s Server) WindowDone(ctx context.Context, q QueueEpoch, since time.Time) error {
	n, err := s.roster.DB.Repeat(ctx, `UPDATE schedule_queue SET window_done_at = ? WHERE `+ofOwner,
		append([]any{s.roster.DB.Time(since)}, s.ofOwner(q)...)...)
	if err == nil && n == 0 {
		err = ErrFenced
	}
	return sqldb.Wrap(err, "record the permit window of queue %s of %s$%s", q.ID, s.taskType, s.roster.OwnSign)
}

// ofOwner is the condition that the row of a queue belongs to an owner and its epoch.
const ofOwner = ofTask + ` AND queue_id = ? AND cur_server = ? AND epoch = ?`

// ofOwner returns the parameters of the condition.
func (f Fence) ofOwner(q QueueEpoch) []any {
	return []any{f.TaskType, f.OwnSign, q.ID, f.Server, q.Epoch}
}

func (s Server) ofOwner(q QueueEpoch) []any { return s.Fence().ofOwner(q) }

// FailingQueue says since when the calls of a queue do nothing but fail; zero: they do not.
type FailingQueue struct {
	QueueEpoch
	Since time.Time
}

// SaveFailing records which queues fail (X7). It skips queues that the server does not own any more.
func (s Server) SaveFailing(ctx context.Context, queues []FailingQueue) error {
	for _, q := range queues {
		_, err := s.roster.DB.Repeat(ctx, `UPDATE schedule_queue SET failing_since = ? WHERE `+ofOwner,
			append([]any{s.roster.DB.TimeOrNull(q.Since)}, s.ofOwner(q.QueueEpoch)...)...)
		if err != nil {
			return fmt.Errorf("record whether queue %s of %s$%s fails: %w", q.ID, s.taskType, s.roster.OwnSign, err)
		}
	}
	return nil
}
