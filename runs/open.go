package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// openTries bounds the READY runs that one call tries to open.
const openTries = 20

// openNext opens the READY run of the highest priority, the oldest of them first, unless a run is RUNNING, the task
// type is paused or a repartition is under way (R6). It returns the runs that ended because they could not be opened.
func (s *Scheduler) openNext(ctx context.Context, taskType string) (ended []string, err error) {
	err = s.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) error {
		ended = nil
		if busy, err := openingForbidden(ctx, l); err != nil || busy {
			return err
		}
		for range openTries {
			id, err := nextReady(ctx, l)
			if err != nil || id == "" {
				return err
			}
			state, err := openRun(ctx, l, id, s.runTimeout)
			if err != nil || state == Running {
				return err
			}
			if state != Waiting {
				ended = append(ended, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open a run of %w", err)
	}
	return ended, nil
}

func openingForbidden(ctx context.Context, l *roster.LockTx) (bool, error) {
	type row struct {
		Paused  bool
		Running int
	}
	r, err := sqldb.Value[row](ctx, l, `SELECT k.paused,
		(SELECT COUNT(*) FROM schedule_run r WHERE r.task_type = k.task_type
		AND r.own_sign = k.own_sign AND r.state = '`+Running+`')
		FROM schedule_task_running k WHERE k.task_type = ? AND k.own_sign = ?`, l.TaskType, l.OwnSign)
	return r.Paused || r.Running > 0 || l.Changes.DivideAnew(), err
}

// mayBegin is the condition that the time has come before which a run is not opened.
const mayBegin = `(not_before IS NULL OR not_before <= {now})`

// nextReady returns the READY run that is opened next, "" if there is none. It leaves out runs that have waited for too
// long: a tick fails only some of them (R13). The slots of a backfill are older than all
// others. In the order of slots, its runs would hold up the other runs of their priority for as long as the backfill
// lasts. So its runs stand in the order in which they were made.
func nextReady(ctx context.Context, l *roster.LockTx) (id string, err error) {
	id, _, err = sqldb.Record[string](ctx, l, `SELECT run_id FROM schedule_run WHERE task_type = ? AND own_sign = ?
		AND state = '`+Ready+`' AND NOT paused AND NOT cancel_requested AND `+mayBegin+`
		AND (deadline_at IS NULL OR deadline_at >= {now})
		ORDER BY priority DESC, CASE WHEN backfill_id IS NULL THEN scheduled_at ELSE created_at END, run_id LIMIT 1`,
		l.TaskType, l.OwnSign)
	return id, err
}

// openRun opens a READY run and returns its new state. With the run's row locked it reads the upstreams again, because
// a rerun may have reopened one of them.
func openRun(ctx context.Context, l *roster.LockTx, runID string, byDefault time.Duration) (state string, err error) {
	ready, err := lockRun(ctx, l.Tx, runID, Ready)
	if err == nil && !ready {
		err = sqldb.ErrRaced
	}
	if err != nil {
		return "", err
	}
	state, cause, err := upstreamState(ctx, l.Tx, runID)
	if err != nil {
		return "", err
	}
	if state != Ready {
		return state, moveRun(ctx, l.Tx, runID, Ready, state, cause)
	}
	r, err := runRow(ctx, l, runID)
	if err != nil {
		return "", err
	}
	total, err := snapshotQueues(ctx, l, r)
	if err != nil {
		return "", err
	}
	if total == 0 {
		return Failed, moveRun(ctx, l.Tx, runID, Ready, Failed, "the task type has no queues")
	}
	timeout, err := runTimeout(ctx, l, byDefault)
	if err != nil {
		return "", err
	}
	_, err = l.Exec(ctx, `UPDATE schedule_run SET state = '`+Running+`', message = '', queue_total = ?,
		waiting_since = {now}, started_at = COALESCE(started_at, {now}), deadline_at = ?, finished_at = NULL
		WHERE run_id = ?`,
		total, l.Dialect.Time(r.earlier(l.Now.Add(timeout))), runID)
	return Running, err
}

// runTimeout returns the timeout of a run. It is never zero, even if the row of the task type was deleted.
func runTimeout(ctx context.Context, l *roster.LockTx, byDefault time.Duration) (time.Duration, error) {
	timeout, _, err := sqldb.Record[time.Duration](ctx, l, `SELECT run_timeout_ms FROM schedule_task_type
		WHERE task_type = ?`, l.TaskType)
	return cmp.Or(timeout, byDefault), sqldb.Wrap(err, "read run_timeout")
}

// snapshotQueues inserts a row of the run for each queue (R6), and returns the number of queues. It leaves out queues
// that are being removed. A run that was rerun has rows already. It keeps them unless the number of queues has changed:
// then items have moved to other queues, and all queues are swept again. So they are if retention has deleted some of
// the rows (R12): nothing else says which queues they were, and whether these were done.
func snapshotQueues(ctx context.Context, l *roster.LockTx, r Run) (total int, err error) {
	queues, err := l.NamedQueues(ctx)
	numbered := errors.Is(err, roster.ErrNumbered)
	if err != nil && !numbered {
		return 0, fmt.Errorf("read the queues: %w", err)
	}
	queues = slices.DeleteFunc(queues, func(q roster.NamedQueue) bool { return q.Removing })
	rows, err := sqldb.Records[sizedQueue](ctx, l, `SELECT queue_id, COALESCE(queue_total, 0) FROM schedule_run_queue
		WHERE run_id = ? ORDER BY queue_id`, r.ID)
	if err != nil {
		return 0, err
	}
	if len(rows) > 0 {
		if len(rows) == r.QueueTotal && (!numbered || sameQueues(rows, queues)) {
			return r.QueueTotal, cancelRemovedQueues(ctx, l, r.ID, rows, queues)
		}
		for _, table := range []string{"schedule_run_item", "schedule_run_queue"} {
			if _, err := l.Exec(ctx, `DELETE FROM `+table+` WHERE run_id = ?`, r.ID); err != nil {
				return 0, err
			}
		}
	}
	return len(queues), insertRunQueues(ctx, l, r.ID, queues)
}

// sizedQueue is a queue of a run, with the number by which its items were divided; 0 for a name.
type sizedQueue struct {
	ID    string
	Total int
}

// sameQueues reports whether the items are divided as they were for the rows of the run.
func sameQueues(rows []sizedQueue, queues []roster.NamedQueue) bool {
	now := make(map[sizedQueue]bool, len(queues))
	for _, q := range queues {
		now[sizedQueue{q.ID, q.Total}] = true
	}
	return len(rows) == len(queues) && !slices.ContainsFunc(rows, func(q sizedQueue) bool { return !now[q] })
}

// cancelRemovedQueues cancels the rows of queues that were removed since the run was first opened.
func cancelRemovedQueues(ctx context.Context, l *roster.LockTx, runID string, rows []sizedQueue,
	queues []roster.NamedQueue,
) error {
	var gone []string
	for _, row := range rows {
		if !slices.ContainsFunc(queues, func(q roster.NamedQueue) bool { return q.ID == row.ID }) {
			gone = append(gone, row.ID)
		}
	}
	return endRunQueues(ctx, l.Tx, runID, QueueCancelled, queueRemoved, gone)
}

const queueRemoved = "the queue was removed"

// runQueue is the key of a row of schedule_run_queue.
type runQueue struct {
	RunID   string `db:"run_id"`
	QueueID string `db:"queue_id"`
}

// newRunQueue has the columns of a new row of schedule_run_queue that not every database gives a default.
type newRunQueue struct {
	runQueue
	Total     *int   `db:"queue_total"`
	Cursor    string `db:"cursor_value"`
	LastError string `db:"last_error"`
}

func insertRunQueues(ctx context.Context, l *roster.LockTx, runID string, queues []roster.NamedQueue) error {
	rows := make([]newRunQueue, len(queues))
	for i, q := range queues {
		rows[i].runQueue = runQueue{runID, q.ID}
		if q.Total > 0 {
			rows[i].Total = &q.Total
		}
	}
	err := sqldb.Insert(ctx, l.Tx, "schedule_run_queue", rows...)
	return sqldb.Wrap(err, "insert the queues of run %s", runID)
}

// endRunQueues ends the unfinished rows of the queues in a run.
func endRunQueues(ctx context.Context, t sqldb.Tx, runID, state, why string, queues []string) error {
	_, err := t.ExecIn(ctx, queues, `UPDATE schedule_run_queue SET `+lowerBound+`, state = ?, last_error = ?,
		next_attempt_at = NULL, finished_at = {now}
		WHERE run_id = ? AND state IN `+unfinished+` AND queue_id IN ({ids})`, state, why, runID)
	return sqldb.Wrap(err, "end queues of runs")
}

// endQueuesOfOpenRun ends the unfinished rows of the open run for queues that this transaction deletes (N1, N2).
func endQueuesOfOpenRun(ctx context.Context, l *roster.LockTx, state, why string, queues []string) error {
	open, err := sqldb.Records[string](ctx, l, `SELECT run_id FROM schedule_run
		WHERE task_type = ? AND own_sign = ? AND state = '`+Running+`' ORDER BY run_id`, l.TaskType, l.OwnSign)
	if err != nil {
		return fmt.Errorf("read the open run: %w", err)
	}
	for _, id := range open {
		if err := endRunQueues(ctx, l.Tx, id, state, why, queues); err != nil {
			return err
		}
	}
	return nil
}

// startLimits returns how long new runs of the task types may wait until they are opened (R13). A task type without a
// limit is not in the map.
func startLimits(ctx context.Context, l *roster.LockTx, runs []Run) (map[string]time.Duration, error) {
	type taskLimit struct {
		Name  string
		Limit time.Duration
	}
	limits := map[string]time.Duration{}
	var names []string
	for _, r := range runs {
		names = append(names, r.TaskType)
	}
	slices.Sort(names)
	list, err := sqldb.RecordsIn[taskLimit](ctx, l, slices.Compact(names), `SELECT task_type, run_start_timeout_ms
		FROM schedule_task_type WHERE run_start_timeout_ms > 0 AND task_type IN ({ids}) ORDER BY task_type`)
	for _, t := range list {
		limits[t.Name] = t.Limit
	}
	return limits, sqldb.Wrap(err, "read run_start_timeout")
}

// startDeadline returns until when the run must be opened: for run_start_timeout from now on, or from the time before
// which it is not opened, and not after it must have ended. It is zero if there is no limit.
func (r Run) startDeadline(now time.Time, limit time.Duration) time.Time {
	if limit == 0 {
		return r.EndBefore
	}
	from := now
	if r.NotBefore.After(now) {
		from = r.NotBefore
	}
	return r.earlier(from.Add(limit))
}

// earlier returns the instant, or the one by which the run must have ended if that is earlier.
func (r Run) earlier(at time.Time) time.Time {
	if !r.EndBefore.IsZero() && r.EndBefore.Before(at) {
		return r.EndBefore
	}
	return at
}

// restartLimit begins the wait of a run anew, after it was reopened. An EndBefore that has passed does not count any
// more: otherwise no run that failed because of it could be rerun.
func restartLimit(ctx context.Context, t sqldb.Tx, runID string) error {
	_, err := t.Exec(ctx, `UPDATE schedule_run SET end_before = NULL WHERE run_id = ? AND end_before <= {now}`, runID)
	if err != nil {
		return err
	}
	type wait struct {
		Now, NotBefore, EndBefore time.Time
		Limit                     time.Duration
	}
	w, err := sqldb.Value[wait](ctx, t, `SELECT {now}, r.not_before, r.end_before, COALESCE(t.run_start_timeout_ms, 0)
		FROM schedule_run r LEFT JOIN schedule_task_type t ON t.task_type = r.task_type WHERE r.run_id = ?`, runID)
	if err != nil {
		return fmt.Errorf("read run_start_timeout: %w", err)
	}
	_, err = t.Exec(ctx, `UPDATE schedule_run SET deadline_at = ? WHERE run_id = ?`,
		t.Dialect.TimeOrNull(Run{NotBefore: w.NotBefore, EndBefore: w.EndBefore}.startDeadline(w.Now, w.Limit)), runID)
	return err
}
