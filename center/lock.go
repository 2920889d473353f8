package center

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// locked is a transaction that holds the lock row of a roster (L1). It reads its fields after the lock, so that they
// stay true until the commit.
type locked struct {
	sqldb.Tx
	taskType string
	ownSign  string

	now               time.Time // the database's clock: no other clock decides about other servers (L2)
	queueTotal        int
	requestedTotal    int // 0: no change of the number of queues is wanted
	partitionVersion  int64
	membershipVersion int64
	plannedVersion    int64
	planVersion       int64
	epochHigh         int64
	itemVersion       int64
	removing          sqldb.List // queues that get no new owner, and are deleted when they are drained (N2)

	silent        []time.Duration                                                                   // how long the servers that this transaction expired had been silent
	queuesRemoved func(ctx context.Context, l *locked, state, reason string, queues []string) error // the hook of the Roster

	instants time.Duration // how far nextInstant has advanced
}

// nextInstant returns instants of the database's time that are all different, in rising order, so that ids that are made
// of them sort in the order in which this transaction makes them.
func (l *locked) nextInstant() time.Time {
	l.instants += time.Microsecond
	return l.now.Add(l.instants)
}

// underLock runs f in a transaction that holds the lock row of the task type, and retries it. f may run several times:
// it must not keep results of an attempt that failed.
func (r *Roster) underLock(ctx context.Context, taskType string, f func(context.Context, *locked) error) error {
	return r.underLockBy(ctx, taskType, (*locked).lock, f)
}

// underFreeLock does what underLock does for a caller that does not wait: it returns sqldb.ErrBusy while another
// transaction has the lock row, or waits in line for it. Correctness does not depend on that: lock takes the lock.
func (r *Roster) underFreeLock(ctx context.Context, taskType string, f func(context.Context, *locked) error) error {
	return r.underLockBy(ctx, taskType, func(l *locked, ctx context.Context) error {
		if err := l.peek(ctx); err != nil {
			return err
		}
		return l.lock(ctx)
	}, f)
}

func (r *Roster) underLockBy(ctx context.Context, taskType string, lock func(*locked, context.Context) error, f func(context.Context, *locked) error) error {
	err := r.db.Retry(ctx, func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, sqldb.AttemptTimeout)
		defer cancel()
		return r.tryUnderLock(ctx, taskType, lock, f)
	})
	if err != nil {
		return fmt.Errorf("%s$%s: %w", taskType, r.ownSign, err)
	}
	return nil
}

// tryUnderLock reports whether a failure left nothing behind for certain.
func (r *Roster) tryUnderLock(ctx context.Context, taskType string, lock func(*locked, context.Context) error, f func(context.Context, *locked) error) (clean bool, err error) {
	tx, err := r.db.Begin(ctx, r.db.Store)
	if err != nil {
		return true, err
	}
	defer tx.Rollback()
	l := &locked{Tx: tx, taskType: taskType, ownSign: r.ownSign, queuesRemoved: r.queuesRemoved}
	if err := lock(l, ctx); err != nil {
		return true, err
	}
	begin := time.Now()
	defer func() { r.onLock(taskType, time.Since(begin)) }()
	if err := f(ctx, l); err != nil {
		return true, err
	}
	return l.Commit(ctx)
}

// peek locks the row that lock is going to write, if it is free. Otherwise it returns sqldb.ErrBusy.
func (l *locked) peek(ctx context.Context) error {
	if l.Dialect.SkipLocked == "" {
		return nil
	}
	var one int
	line, args := l.line(l.Dialect.TryLine)
	err := l.QueryRow(ctx, `SELECT 1 FROM schedule_task_running q WHERE task_type = ? AND own_sign = ?`+line+l.Dialect.SkipLocked, args...).Scan(&one)
	if sqldb.NoRows(err) {
		return sqldb.ErrBusy
	}
	return err
}

// lock takes the lock row by writing it: this is the same row lock in each database, and leaves a trace. Then it reads
// the row and the clock.
func (l *locked) lock(ctx context.Context) error {
	if err := l.lockBy(ctx, `version = version + 1`); err != nil {
		return err
	}
	err := l.QueryRow(ctx, `SELECT {now}, queue_total, COALESCE(requested_total, 0), partition_version, membership_version, planned_version, plan_version, epoch_high, item_version, removing
		FROM schedule_task_running WHERE task_type = ? AND own_sign = ?`, l.taskType, l.ownSign).
		Scan((*sqldb.Instant)(&l.now), &l.queueTotal, &l.requestedTotal, &l.partitionVersion, &l.membershipVersion, &l.plannedVersion, &l.planVersion, &l.epochHigh, &l.itemVersion, &l.removing)
	if err != nil {
		return fmt.Errorf("read the lock row: %w", err)
	}
	return nil
}

// lockToChange takes the lock row for a transaction that changes the plan and needs nothing else of the row: hundreds may
// wait in line for it, and each statement less counts. It reads nothing, not even the clock.
func (l *locked) lockToChange(ctx context.Context) error {
	return l.lockBy(ctx, `version = version + 1, plan_version = plan_version + 1`)
}

// lockBy writes the lock row. In PostgreSQL, a transaction that waits for a row wakes up with each version of the row, goes
// on to the next version and waits again: with hundreds of them each commit would wake hundreds. So they wait in a line
// before the row: each wakes up once, and only one waits for the row itself. The line is a lock of the transaction, which
// works behind PgBouncer, and of the table, so that rosters in other schemas have lines of their own. Correctness does
// not depend on the line: the row is the lock.
func (l *locked) lockBy(ctx context.Context, set string) error {
	line, args := l.line(l.Dialect.WaitInLine)
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
func (l *locked) membershipChanged(ctx context.Context) error {
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET membership_version = membership_version + 1
		WHERE task_type = ? AND own_sign = ?`, l.taskType, l.ownSign)
	l.membershipVersion++
	return err
}

// planChanged makes the servers read their queues again.
func (l *locked) planChanged(ctx context.Context) error {
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET plan_version = plan_version + 1
		WHERE task_type = ? AND own_sign = ?`, l.taskType, l.ownSign)
	l.planVersion++
	return err
}

// line returns a condition of the dialect, empty if it has none, and the parameters of a statement about the lock row that
// ends with the condition.
func (l *locked) line(condition string) (string, []any) {
	args := []any{l.taskType, l.ownSign}
	if condition != "" {
		args = append(args, l.taskType+"$"+l.ownSign)
	}
	return condition, args
}

// insertLockRow is a transaction of its own: two that insert the row inside larger ones would
// wait for each other. It looks first, so that a worker's start leaves no error in the server's log.
func (r *Roster) insertLockRow(ctx context.Context, taskType string) error {
	return r.db.Retry(ctx, func() (bool, error) {
		var n int
		err := r.db.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_task_running WHERE task_type = ? AND own_sign = ?`,
			taskType, r.ownSign).Scan(&n)
		if err != nil || n > 0 {
			return true, err
		}
		_, err = r.db.Exec(ctx, `INSERT INTO schedule_task_running (task_type, own_sign) VALUES (?, ?)`, taskType, r.ownSign)
		if r.db.Class(err) == sqldb.Duplicate {
			err = nil
		}
		return true, err // doing it twice is doing it once
	})
}
