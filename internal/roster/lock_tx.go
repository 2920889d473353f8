package roster

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// LockTx is a transaction that holds the lock row of a roster (L1). It has the row and the clock as they were read
// after the lock, so that they stay true until the commit. The steps of the protocol are functions that take it.
type LockTx struct {
	sqldb.Tx
	TaskType string
	OwnSign  string

	Now            time.Time // by the database's clock: no other clock decides about other servers (L2)
	QueueTotal     int
	RequestedTotal int   // 0 if no other number of queues is requested
	EpochHigh      int64 // no deleted queue had a higher epoch (H6)
	versions       versions
	removing       sqldb.List // queues that get no new owner and are deleted when they are drained (N2)

	plannerVersion int // of this program (P11)

	loadMovesUntil time.Time // zero for none

	queuesRemoved QueuesRemovedFunc // the hook of the Roster
	mayPassLine   bool              // take the row without the line before it, if the row is free
	passedLine    bool              // it did
	instants      time.Duration     // how far NextInstant has advanced
}

// NextInstant returns a later time with each call, from the database's time on. Ids that are made of these times sort
// in the order in which this transaction makes them.
func (l *LockTx) NextInstant() time.Time {
	l.instants += time.Microsecond
	return l.Now.Add(l.instants)
}

// InOwnSign returns the transaction for the roster of the same task type in another own_sign, after taking the lock
// row of that roster, too. For its own own_sign it returns itself.
func (l *LockTx) InOwnSign(ctx context.Context, ownSign string) (*LockTx, error) {
	if ownSign == l.OwnSign {
		return l, nil
	}
	other := &LockTx{Tx: l.Tx, TaskType: l.TaskType, OwnSign: ownSign, plannerVersion: l.plannerVersion, queuesRemoved: l.queuesRemoved, mayPassLine: l.mayPassLine}
	return other, other.lock(ctx)
}

// lock takes the lock row by writing it: this takes the same row lock in each database and leaves a trace (L1). Then
// it reads the row and the clock (L2).
func (l *LockTx) lock(ctx context.Context) error {
	if err := l.lockBySetting(ctx, `version = version + 1`); err != nil {
		return err
	}
	v := &l.versions
	err := l.QueryRow(ctx, `SELECT {now}, queue_total, COALESCE(requested_total, 0), partition_version, membership_version, planned_version, plan_version, epoch_high, item_version, planner_version, removing,
		CASE WHEN `+planDue+` THEN 1 ELSE 0 END, CASE WHEN skipped IS NULL THEN 0 ELSE 1 END, skipped, CASE WHEN reserved_until IS NULL THEN 0 ELSE 1 END, load_moves_until
		FROM schedule_task_running WHERE task_type = ? AND own_sign = ?`, l.TaskType, l.OwnSign).
		Scan((*sqldb.Instant)(&l.Now), &l.QueueTotal, &l.RequestedTotal, &v.partition, &v.membership, &v.planned, &v.plan, &l.EpochHigh, &v.item, &v.planner, &l.removing, &v.planDue, &v.skipped, &v.toMove, &v.reserved, (*sqldb.Instant)(&l.loadMovesUntil))
	if err != nil {
		return fmt.Errorf("read the lock row: %w", err)
	}
	return nil
}

// lockIfFree does what lock does if the row is free. Otherwise it returns sqldb.ErrBusy. Correctness does not depend on
// the check: lock takes the lock.
func (l *LockTx) lockIfFree(ctx context.Context) error {
	if err := l.checkFree(ctx); err != nil {
		return err
	}
	return l.lock(ctx)
}

// checkFree locks the row that lock is going to write, if it is free. Otherwise it returns sqldb.ErrBusy.
func (l *LockTx) checkFree(ctx context.Context) error {
	if l.Dialect.SkipLocked == "" {
		return nil
	}
	var one int
	line, args := l.lineCondition(l.Dialect.TryLine)
	err := l.QueryRow(ctx, `SELECT 1 FROM schedule_task_running q WHERE task_type = ? AND own_sign = ?`+line+l.Dialect.SkipLocked, args...).Scan(&one)
	if sqldb.NoRows(err) {
		return sqldb.ErrBusy
	}
	return err
}

// lockForPlanChange takes the lock row for a transaction that changes the plan and needs nothing else of the row. It
// reads nothing, not even the clock: hundreds of transactions may wait for the lock, so each statement counts.
func (l *LockTx) lockForPlanChange(ctx context.Context) error {
	return l.lockBySetting(ctx, `version = version + 1, plan_version = plan_version + 1`)
}

// lockBySetting takes the lock row with an UPDATE that has the given SET clause.
//
// On PostgreSQL, a transaction that waits for a row wakes up with each version of the row, goes on to the next
// version and waits again. With hundreds of waiting transactions each commit would wake up hundreds. So they wait in
// a line before the row: each wakes up once, and only one waits for the row itself. The line is a lock of the
// transaction, which works behind PgBouncer. Its key contains the table, so that rosters in other schemas have other
// lines. Correctness does not depend on the line: the row is the lock.
//
// Any role that may connect can hold the line. After some time-outs, a transaction takes a row that is free without it.
func (l *LockTx) lockBySetting(ctx context.Context, set string) error {
	if err := l.passLine(ctx); err != nil {
		return err
	}
	line, args := l.lineCondition(l.Dialect.WaitInLine)
	if l.passedLine {
		line, args = l.Dialect.Limits, args[:2]
	}
	n, err := l.Exec(ctx, `UPDATE schedule_task_running SET `+set+` WHERE task_type = ? AND own_sign = ?`+line, args...)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if n == 0 {
		return ErrUnknownTask
	}
	return nil
}

// passLine takes the row without the line if the transaction may do so and the row is free.
func (l *LockTx) passLine(ctx context.Context) error {
	if !l.mayPassLine || l.Dialect.WaitInLine == "" {
		return nil
	}
	var one int
	err := l.QueryRow(ctx, `SELECT 1 FROM schedule_task_running q WHERE task_type = ? AND own_sign = ?`+l.Dialect.Limits+l.Dialect.SkipLocked,
		l.TaskType, l.OwnSign).Scan(&one)
	if sqldb.NoRows(err) {
		return nil // another transaction has the row, and this one waits in the line
	}
	l.passedLine = err == nil
	return err
}

// lineCondition returns a condition of the dialect, which may be empty, and the parameters of a statement on the lock
// row that ends with the condition.
func (l *LockTx) lineCondition(condition string) (string, []any) {
	args := []any{l.TaskType, l.OwnSign}
	if condition != "" {
		args = append(args, l.TaskType+"$"+l.OwnSign)
	}
	return condition, args
}
