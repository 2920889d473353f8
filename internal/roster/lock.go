package roster

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// LockTx is a transaction that holds the lock row of a roster (L1). It reads its fields after the lock, so that they
// stay true until the commit.
type LockTx struct {
	sqldb.Tx
	TaskType string
	OwnSign  string

	Now               time.Time // by the database's clock: no other clock decides about other servers (L2)
	QueueTotal        int
	RequestedTotal    int // 0 if no other number of queues is requested
	partitionVersion  int64
	membershipVersion int64
	plannedVersion    int64
	planVersion       int64
	EpochHigh         int64
	itemVersion       int64
	removing          sqldb.List // queues that get no new owner and are deleted when they are drained (N2)

	silences      []time.Duration                                                                   // how long each server that this transaction expired had been silent
	QueuesRemoved func(ctx context.Context, l *LockTx, state, reason string, queues []string) error // the hook of the Roster

	instants time.Duration // how far NextInstant has advanced
}

// NextInstant returns a later time with each call, from the database's time on. Ids that are made of these times sort
// in the order in which this transaction makes them.
func (l *LockTx) NextInstant() time.Time {
	l.instants += time.Microsecond
	return l.Now.Add(l.instants)
}

// UnderLock runs f in a transaction that holds the lock row of the task type, and retries it. f may run several
// times: it must not keep results of an attempt that failed.
func (r *Roster) UnderLock(ctx context.Context, taskType string, f func(context.Context, *LockTx) error) error {
	return r.underLockWith(ctx, taskType, (*LockTx).Lock, f)
}

// underFreeLock does what UnderLock does for a caller that does not wait: it returns sqldb.ErrBusy while another
// transaction has the lock row or waits for it. Correctness does not depend on the check: Lock takes the lock.
func (r *Roster) underFreeLock(ctx context.Context, taskType string, f func(context.Context, *LockTx) error) error {
	return r.underLockWith(ctx, taskType, func(l *LockTx, ctx context.Context) error {
		if err := l.LockIfFree(ctx); err != nil {
			return err
		}
		return l.Lock(ctx)
	}, f)
}

// underLockWith does what UnderLock does, with the given way to take the lock.
func (r *Roster) underLockWith(ctx context.Context, taskType string, lock func(*LockTx, context.Context) error, f func(context.Context, *LockTx) error) error {
	err := r.DB.Retry(ctx, func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, sqldb.AttemptTimeout)
		defer cancel()
		return r.TryUnderLock(ctx, taskType, lock, f)
	})
	if err != nil {
		return fmt.Errorf("%s$%s: %w", taskType, r.OwnSign, err)
	}
	return nil
}

// TryUnderLock makes one attempt of UnderLock, with the given way to take the lock. It reports whether a failure left
// nothing behind for certain.
func (r *Roster) TryUnderLock(ctx context.Context, taskType string, lock func(*LockTx, context.Context) error, f func(context.Context, *LockTx) error) (clean bool, err error) {
	tx, err := r.DB.Begin(ctx, r.DB.Store)
	if err != nil {
		return true, err
	}
	defer tx.Rollback()
	l := &LockTx{Tx: tx, TaskType: taskType, OwnSign: r.OwnSign, QueuesRemoved: r.QueuesRemoved}
	if err := lock(l, ctx); err != nil {
		return true, err
	}
	begin := time.Now()
	defer func() { r.OnLock(taskType, time.Since(begin)) }()
	if err := f(ctx, l); err != nil {
		return true, err
	}
	return l.Commit(ctx)
}

// LockIfFree locks the row that Lock is going to write, if it is free. Otherwise it returns sqldb.ErrBusy.
func (l *LockTx) LockIfFree(ctx context.Context) error {
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

// Lock takes the lock row by writing it: this takes the same row lock in each database and leaves a trace (L1). Then
// it reads the row and the clock (L2).
func (l *LockTx) Lock(ctx context.Context) error {
	if err := l.lockBySetting(ctx, `version = version + 1`); err != nil {
		return err
	}
	err := l.QueryRow(ctx, `SELECT {now}, queue_total, COALESCE(requested_total, 0), partition_version, membership_version, planned_version, plan_version, epoch_high, item_version, removing
		FROM schedule_task_running WHERE task_type = ? AND own_sign = ?`, l.TaskType, l.OwnSign).
		Scan((*sqldb.Instant)(&l.Now), &l.QueueTotal, &l.RequestedTotal, &l.partitionVersion, &l.membershipVersion, &l.plannedVersion, &l.planVersion, &l.EpochHigh, &l.itemVersion, &l.removing)
	if err != nil {
		return fmt.Errorf("read the lock row: %w", err)
	}
	return nil
}

// LockForPlanChange takes the lock row for a transaction that changes the plan and needs nothing else of the row. It
// reads nothing, not even the clock: hundreds of transactions may wait for the lock, so each statement counts.
func (l *LockTx) LockForPlanChange(ctx context.Context) error {
	return l.lockBySetting(ctx, `version = version + 1, plan_version = plan_version + 1`)
}

// lockBySetting takes the lock row with an UPDATE that has the given SET clause.
//
// On PostgreSQL, a transaction that waits for a row wakes up with each version of the row, goes on to the next
// version and waits again. With hundreds of waiting transactions each commit would wake up hundreds. So they wait in
// a line before the row: each wakes up once, and only one waits for the row itself. The line is a lock of the
// transaction, which works behind PgBouncer. Its key contains the table, so that rosters in other schemas have other
// lines. Correctness does not depend on the line: the row is the lock.
func (l *LockTx) lockBySetting(ctx context.Context, set string) error {
	line, args := l.lineCondition(l.Dialect.WaitInLine)
	n, err := l.Exec(ctx, `UPDATE schedule_task_running SET `+set+` WHERE task_type = ? AND own_sign = ?`+line, args...)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if n == 0 {
		return ErrUnknownTask
	}
	return nil
}

// membershipChanged makes the servers plan again (S3).
func (l *LockTx) membershipChanged(ctx context.Context) error {
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET membership_version = membership_version + 1
		WHERE task_type = ? AND own_sign = ?`, l.TaskType, l.OwnSign)
	l.membershipVersion++
	return err
}

// planChanged makes the servers read their queues again.
func (l *LockTx) planChanged(ctx context.Context) error {
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET plan_version = plan_version + 1
		WHERE task_type = ? AND own_sign = ?`, l.TaskType, l.OwnSign)
	l.planVersion++
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

// InsertLockRow inserts the lock row of the task type if there is none. It is a transaction of its own: two larger
// transactions that insert the row would wait for each other. It reads first, so that the start of a worker leaves no
// error in the log of the database.
func (r *Roster) InsertLockRow(ctx context.Context, taskType string) error {
	return r.DB.Retry(ctx, func() (bool, error) {
		var n int
		err := r.DB.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_task_running WHERE task_type = ? AND own_sign = ?`,
			taskType, r.OwnSign).Scan(&n)
		if err != nil || n > 0 {
			return true, err
		}
		_, err = r.DB.Exec(ctx, `INSERT INTO schedule_task_running (task_type, own_sign) VALUES (?, ?)`, taskType, r.OwnSign)
		if r.DB.Class(err) == sqldb.Duplicate {
			err = nil
		}
		return true, err // a repetition does no harm
	})
}
