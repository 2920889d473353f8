package roster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
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

// Ask runs f in a transaction that has read the lock row and does not hold it, and that changes nothing. It is for the
// methods of LockTx that say whether a request would be refused: another transaction may change the answer at once.
func (r *Roster) Ask(ctx context.Context, taskType string, f func(context.Context, *LockTx) error) error {
	tx, err := r.DB.Store.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	l := &LockTx{Tx: sqldb.Tx{Raw: tx, Dialect: r.DB.Dialect}, TaskType: taskType, OwnSign: r.OwnSign}
	defer l.Rollback()
	if err = l.read(ctx); err == nil {
		err = f(ctx, l)
	} else if errors.Is(err, sql.ErrNoRows) {
		err = ErrUnknownTask
	}
	return sqldb.Wrap(err, "%s$%s", taskType, r.OwnSign)
}

// lockFunc is a way to take the lock row: a method of LockTx.
type lockFunc func(*LockTx, context.Context) error

// underLockWith does what UnderLock does, with the given way to take the lock.
func (r *Roster) underLockWith(ctx context.Context, taskType string, lock lockFunc,
	f func(context.Context, *LockTx) error,
) error {
	failures := 0
	err := r.DB.Retry(ctx, func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, sqldb.AttemptTimeout)
		defer cancel()
		l := &LockTx{
			TaskType: taskType, OwnSign: r.OwnSign, plannerVersion: r.PlannerVersion, queuesRemoved: r.QueuesRemoved,
			mayPassLine: failures >= lineFailures,
		}
		clean, err := r.tryUnderLock(ctx, l, lock, f)
		if r.DB.Class(err) == sqldb.RolledBack {
			failures++
		}
		return clean, err
	})
	return sqldb.Wrap(err, "%s$%s", taskType, r.OwnSign)
}

// lineFailures is after how many failed attempts a transaction may take the lock row without the line before it.
const lineFailures = 2

// tryUnderLock makes one attempt of underLockWith. It reports whether an attempt that failed has certainly changed
// nothing, so that it may be repeated.
func (r *Roster) tryUnderLock(ctx context.Context, l *LockTx, lock lockFunc,
	f func(context.Context, *LockTx) error,
) (clean bool, err error) {
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
	if clean, err = l.Commit(ctx); err == nil && len(l.given) > 0 && r.OnGiven != nil {
		r.OnGiven(l.given...)
	}
	return clean, err
}

// InsertLockRow inserts the lock row of the task type if there is none. It is a transaction of its own: two larger
// transactions that insert the row would wait for each other. It reads first, so that the start of a worker leaves no
// error in the log of the database.
func (r *Roster) InsertLockRow(ctx context.Context, taskType string) error {
	return r.DB.Retry(ctx, func() (bool, error) {
		n, err := sqldb.Value[int](ctx, r.DB, `SELECT COUNT(*) FROM schedule_task_running WHERE `+ofTask,
			taskType, r.OwnSign)
		if err != nil || n > 0 {
			return true, err
		}
		_, err = r.DB.Exec(ctx, `INSERT INTO schedule_task_running (task_type, own_sign) VALUES (?, ?)`,
			taskType, r.OwnSign)
		if r.DB.Class(err) == sqldb.Duplicate {
			err = nil
		}
		return true, err // a repetition does no harm
	})
}

// RebuildLockRow fills in a new lock row from the queues, if there are any, and reports whether it did. The old row was
// deleted by hand. Epochs (H6), plan versions (S2) and partition versions (X6) go on above all that the tables still
// have. A pause and the changes that waited are lost.
func RebuildLockRow(ctx context.Context, l *LockTx) (rebuilt bool, err error) {
	type highest struct {
		Queues                 int
		Plan, Epoch, Partition int64
	}
	high, err := sqldb.Value[highest](ctx, sqldb.Strict{Eacher: l}, `SELECT
		(SELECT COUNT(*) FROM schedule_queue WHERE `+ofTask+`),
		(SELECT COALESCE(MAX(plan_version), 0) FROM schedule_queue WHERE `+ofTask+`),
		(SELECT COALESCE(MAX(epoch), 0) FROM schedule_event WHERE `+ofTask+`),
		(SELECT COALESCE(MAX(partition_version) + 1, 0) FROM schedule_failed_item WHERE `+ofTask+`)`,
		slices.Repeat([]any{l.TaskType, l.OwnSign}, 4)...)
	if err != nil || high.Queues == 0 {
		return false, sqldb.Wrap(err, "rebuild the lock row: read the highest versions")
	}
	if err := RaiseEpochHigh(ctx, l); err != nil {
		return false, fmt.Errorf("rebuild the lock row: %w", err)
	}
	l.EpochHigh = max(l.EpochHigh, high.Epoch)
	l.QueueTotal, l.versions.plan = high.Queues, max(l.versions.plan, high.Plan)
	l.versions.partition = max(l.versions.partition, high.Partition)
	err = l.setLockRow(ctx, `queue_total = ?, epoch_high = ?, plan_version = ?, partition_version = ?,
		membership_version = membership_version + 1`, l.QueueTotal, l.EpochHigh, l.versions.plan, l.versions.partition)
	if err == nil {
		err = l.queuesChangedForAll(ctx)
	}
	return err == nil, sqldb.Wrap(err, "rebuild the lock row")
}

// LockTx is a transaction that holds the lock row of a roster (L1). It has the row and the clock as they were read
// after the lock, so that they stay true until the commit. The steps of the protocol are functions that take it.
type LockTx struct {
	sqldb.Tx
	TaskType string
	OwnSign  string

	Now          time.Time // by the database's clock: no other clock decides about other servers (L2)
	QueueTotal   int
	Changes      Changes // that wait until the queues have no owner (N1, N2, N3)
	EpochHigh    int64   // no deleted queue had a higher epoch (H6)
	versions     versions
	epochFloor   int64 // plans raise the epochs of all queues above it (H8)
	floorToReach int64 // the one of the environment

	plannerVersion int // of this program (P11)

	loadMovesUntil time.Time // zero for none

	queuesRemoved QueuesRemovedFunc // the hook of the Roster
	mayPassLine   bool              // take the row without the line before it, if the row is free
	passedLine    bool              // it did
	given         []string          // servers that have got queues or requests; one may be in it several times
	instants      time.Duration     // how far NextInstant has advanced
}

// NextInstant returns a later time with each call, from the database's time on. Ids that are made of these times sort
// in the order in which this transaction makes them.
func (l *LockTx) NextInstant() time.Time {
	l.instants += time.Microsecond
	return l.Now.Add(l.instants)
}

// Of returns the transaction for another task type. The transaction holds the lock row of that one, too, and has not
// read it: the caller uses the names and the clock only.
func (l *LockTx) Of(taskType string) *LockTx {
	return &LockTx{Tx: l.Tx, TaskType: taskType, OwnSign: l.OwnSign, Now: l.Now, instants: l.instants}
}

// InOwnSign returns the transaction for the roster of the same task type in another own_sign, after taking the lock
// row of that roster, too. For its own own_sign it returns itself.
func (l *LockTx) InOwnSign(ctx context.Context, ownSign string) (*LockTx, error) {
	if ownSign == l.OwnSign {
		return l, nil
	}
	other := &LockTx{
		Tx: l.Tx, TaskType: l.TaskType, OwnSign: ownSign, plannerVersion: l.plannerVersion,
		queuesRemoved: l.queuesRemoved, mayPassLine: l.mayPassLine,
	}
	return other, other.lock(ctx)
}

// lock takes the lock row by writing it: this takes the same row lock in each database and leaves a trace (L1). Then
// it reads the row and the clock (L2).
func (l *LockTx) lock(ctx context.Context) error {
	if err := l.lockBySetting(ctx, `version = version + 1`); err != nil {
		return err
	}
	return l.read(ctx)
}

// read reads the lock row and the clock.
func (l *LockTx) read(ctx context.Context) error {
	v := &l.versions
	err := l.QueryRow(ctx, `SELECT {now}, queue_total, queue_changes, partition_version, membership_version,
		planned_version, plan_version, epoch_high, item_version, epoch_floor,
		`+environmentFloor("schedule_task_running")+`,
		CASE WHEN `+planDue("schedule_task_running")+` THEN 1 ELSE 0 END,
		CASE WHEN skipped IS NULL THEN 0 ELSE 1 END, skipped,
		CASE WHEN reserved_until IS NULL THEN 0 ELSE 1 END, load_moves_until
		FROM schedule_task_running WHERE `+ofTask, l.TaskType, l.OwnSign).
		Scan((*sqldb.Instant)(&l.Now), &l.QueueTotal, &l.Changes, &v.partition, &v.membership, &v.planned, &v.plan,
			&l.EpochHigh, &v.item, &l.epochFloor, &l.floorToReach,
			&v.planDue, &v.skipped, &v.toMove, &v.reserved, (*sqldb.Instant)(&l.loadMovesUntil))
	return sqldb.Wrap(err, "read the lock row")
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
	if l.Dialect.OneWriter {
		return nil // the transaction has the lock of all writers
	}
	line, args := l.lineCondition(l.Dialect.TryLine)
	free, _, err := sqldb.Free[int](ctx, l, l.Dialect, `SELECT 1 FROM schedule_task_running q WHERE `+ofTask+line, args...)
	if err == nil && len(free) == 0 {
		err = sqldb.ErrBusy
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
	// If the statement finds no row, another transaction has it, and this one waits in the line.
	free, _, err := sqldb.Free[int](ctx, l, l.Dialect, `SELECT 1 FROM schedule_task_running q WHERE `+ofTask+
		l.Dialect.Limits, l.TaskType, l.OwnSign)
	l.passedLine = len(free) > 0
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

// versions are the counters in the lock row. A server learns them with its heartbeat. It reads or plans only if one of
// them has changed (S2, S3).
type versions struct {
	partition  int64 // rises when a queue is added, and when a change of queues is requested, withdrawn or made (X6)
	membership int64 // rises when a server or queue comes, goes or changes its state: a plan is due
	planned    int64 // the membership of the last plan
	plan       int64 // rises with each change of an owner or requester
	item       int64 // rises when an operator changes failed items

	planDue bool       // when the row was read
	skipped bool       // the last plan skipped changes, because other transactions held their rows (L5)
	toMove  sqldb.List // the queues among them that are to move

	reserved bool // queues are reserved, or were at the last plan (P13)
}

// ofTask is the condition that a row belongs to the roster of a task type.
const ofTask = `task_type = ? AND own_sign = ?`

// setLockRow writes columns of the lock row.
func (l *LockTx) setLockRow(ctx context.Context, set string, args ...any) error {
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET `+set+` WHERE `+ofTask, append(args, l.TaskType, l.OwnSign)...)
	return err
}

// membershipChanged makes the servers plan again (S3).
func (l *LockTx) membershipChanged(ctx context.Context) error {
	l.versions.membership++
	return l.setLockRow(ctx, `membership_version = membership_version + 1`)
}

// planChanged notes that an owner or a requester has changed.
func (l *LockTx) planChanged(ctx context.Context) error {
	l.versions.plan++
	return l.setLockRow(ctx, `plan_version = plan_version + 1`)
}

// queuesChanged writes what is known of the queues and of their changes to the lock row, with more queues than before,
// and makes the servers read their queues and plan again. An item may have another queue than before (X6).
func (l *LockTx) queuesChanged(ctx context.Context, more int) error {
	l.QueueTotal += more
	l.versions.plan++
	l.versions.membership++
	l.versions.partition++
	if err := l.queuesChangedForAll(ctx); err != nil {
		return err
	}
	return l.setLockRow(ctx, `queue_total = ?, epoch_high = ?, queue_changes = ?, partition_version = ?,
		plan_version = plan_version + 1, membership_version = membership_version + 1`,
		l.QueueTotal, l.EpochHigh, l.Changes, l.versions.partition)
}
