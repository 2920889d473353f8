package roster

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// UnderLock runs f in a transaction that holds the lock row of the task type, and retries it. f may run several
// times: it must not keep results of an attempt that failed.
func (r *Roster) UnderLock(ctx context.Context, taskType string, f func(context.Context, *LockTx) error) error {
	return r.underLockWith(ctx, taskType, (*LockTx).lock, f)
}

// underFreeLock does what UnderLock does for a caller that does not wait: it returns sqldb.ErrBusy while another
// transaction has the lock row or waits for it.
func (r *Roster) underFreeLock(ctx context.Context, taskType string, f func(context.Context, *LockTx) error) error {
	return r.underLockWith(ctx, taskType, (*LockTx).lockIfFree, f)
}

// lockFunc is a way to take the lock row: a method of LockTx.
type lockFunc func(*LockTx, context.Context) error

// underLockWith does what UnderLock does, with the given way to take the lock.
func (r *Roster) underLockWith(ctx context.Context, taskType string, lock lockFunc, f func(context.Context, *LockTx) error) error {
	failures := 0
	err := r.DB.Retry(ctx, func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, sqldb.AttemptTimeout)
		defer cancel()
		l := &LockTx{TaskType: taskType, OwnSign: r.OwnSign, plannerVersion: r.PlannerVersion, queuesRemoved: r.QueuesRemoved, mayPassLine: failures >= lineFailures}
		clean, err := r.tryUnderLock(ctx, l, lock, f)
		if r.DB.Class(err) == sqldb.RolledBack {
			failures++
		}
		return clean, err
	})
	if err != nil {
		return fmt.Errorf("%s$%s: %w", taskType, r.OwnSign, err)
	}
	return nil
}

// lineFailures is after how many failed attempts a transaction may take the lock row without the line before it.
const lineFailures = 2

// tryUnderLock makes one attempt of underLockWith. It reports whether an attempt that failed has certainly changed
// nothing, so that it may be repeated.
func (r *Roster) tryUnderLock(ctx context.Context, l *LockTx, lock lockFunc, f func(context.Context, *LockTx) error) (clean bool, err error) {
	tx, err := r.DB.Begin(ctx, r.DB.Store)
	if err != nil {
		return true, err
	}
	defer tx.Rollback()
	l.Tx = tx
	if err := lock(l, ctx); err != nil {
		return true, err
	}
	begin := time.Now()
	defer func() { r.OnLock(l.TaskType, time.Since(begin)) }()
	if l.passedLine && r.OnLineHeld != nil {
		r.OnLineHeld(ctx, l.TaskType)
	}
	if err := f(ctx, l); err != nil {
		return true, err
	}
	return l.Commit(ctx)
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
		_, err = r.DB.Exec(ctx, `INSERT INTO schedule_task_running (task_type, own_sign, planner_version) VALUES (?, ?, ?)`, taskType, r.OwnSign, r.PlannerVersion)
		if r.DB.Class(err) == sqldb.Duplicate {
			err = nil
		}
		return true, err // a repetition does no harm
	})
}
