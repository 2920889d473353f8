package runs

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// closer ends runs, counts their ends and resolves their dependants.
type closer struct {
	core
	ends *endCounts
}

// closeRun ends a RUNNING run if all its queues are finished, and resolves its dependants (R10). The caller commits the
// DONE of its queue first: otherwise two servers that finish at the same time each find the other's queue unfinished.
// The test for unfinished queues follows the statement that locks the run's row. If it came first, a rerun could make a
// queue PENDING between the test and the end of the run.
func (c *closer) closeRun(ctx context.Context, runID string) error {
	return c.end(ctx, runID, func(ctx context.Context, t sqldb.Tx, runID string) (bool, error) {
		if running, err := lockRun(ctx, t, runID, Running); err != nil || !running {
			return false, err
		}
		sum, err := countQueues(ctx, t, runID)
		if err != nil || sum.open > 0 {
			return false, err
		}
		state, message := sum.outcome()
		return true, endRun(ctx, t, runID, Running, state, message, sum)
	})
}

// end runs f in a transaction. If f has ended the run, end resolves its dependants once that is committed.
func (c *closer) end(ctx context.Context, runID string,
	f func(ctx context.Context, t sqldb.Tx, runID string) (ended bool, err error),
) error {
	var ended bool
	err := c.db.Transact(ctx, c.db.Store, func(ctx context.Context, t sqldb.Tx) (err error) {
		ended, err = f(ctx, t, runID)
		return err
	})
	if err == nil && ended {
		err = c.resolveDependants(ctx, runID)
	}
	return sqldb.Wrap(err, "close run %s", runID)
}

// endRun ends a run whose row is locked.
func endRun(ctx context.Context, t sqldb.Tx, runID, from, state, message string, sum queueCounts) error {
	if err := moveRun(ctx, t, runID, from, state, message); err != nil {
		return err
	}
	_, err := t.Exec(ctx, `UPDATE schedule_run SET items_done = ?, items_failed = ?, items_at_least = ? WHERE run_id = ?`,
		sum.itemsDone, sum.itemsFailed, sum.atLeast, runID)
	return err
}

// queueCounts are the numbers of queues of a run by state, and the sums of their items.
type queueCounts struct {
	open, done, failed, cancelled int
	itemsDone, itemsFailed        int64
	atLeast                       bool   // itemsDone and itemsFailed are lower bounds
	cause                         string // the error of the first queue that failed
}

func countQueues(ctx context.Context, t sqldb.Tx, runID string) (sum queueCounts, err error) {
	type group struct {
		State        string
		Queues       int
		Done, Failed int64
		AtLeast      bool
	}
	groups, err := sqldb.Records[group](ctx, t, `SELECT state, COUNT(*), `+sqldb.SumOf("items_done")+`, `+
		sqldb.SumOf("items_failed")+`, `+anyLowerBound+` FROM schedule_run_queue WHERE run_id = ?
		GROUP BY state ORDER BY state`, runID)
	for _, g := range groups {
		sum.itemsDone, sum.itemsFailed = sum.itemsDone+g.Done, sum.itemsFailed+g.Failed
		sum.atLeast = sum.atLeast || g.AtLeast
		switch g.State {
		case QueueDone:
			sum.done = g.Queues
		case QueueFailed:
			sum.failed = g.Queues
		case QueueCancelled:
			sum.cancelled = g.Queues
		default:
			sum.open += g.Queues
		}
	}
	if err != nil || sum.failed == 0 {
		return sum, err
	}
	type failure struct{ Queue, Error string }
	first, err := sqldb.Value[failure](ctx, t, `SELECT queue_id, last_error FROM schedule_run_queue
		WHERE run_id = ? AND state = '`+QueueFailed+`' ORDER BY finished_at, queue_id LIMIT 1`, runID)
	sum.cause = fmt.Sprintf("%d of %d queues failed, first queue %s: %s",
		sum.failed, sum.done+sum.failed+sum.cancelled+sum.open, first.Queue, first.Error)
	return sum, err
}

// outcome returns the state and the message of a run whose queues are all finished.
func (sum queueCounts) outcome() (state, message string) {
	switch {
	case sum.failed > 0:
		return Failed, sum.cause
	case sum.cancelled > 0 && sum.done == 0:
		return Cancelled, "all its queues were removed"
	case sum.cancelled > 0:
		return Success, "without " + human.Count(sum.cancelled, "queue that was removed", "queues that were removed")
	}
	return Success, ""
}

// lowerBound notes in an UPDATE of a queue of a run, before it assigns the state (L6), that the counts of a queue whose
// sweep did not record its end are lower bounds (R15). The items that the sweep has executed since its last save are
// not counted.
const lowerBound = `items_at_least = CASE WHEN state = '` + QueueRunning + `' THEN TRUE ELSE items_at_least END`

// anyLowerBound reports in a query over queues of runs whether the counts of any of them are lower bounds.
const anyLowerBound = `MAX(CASE WHEN items_at_least THEN 1 ELSE 0 END)`

// stopRun ends an open run that was cancelled or whose deadline has passed, whether its queues have owners or not (R9,
// R13). An owner with a sweep notices it at its next write: the row of its queue is no longer RUNNING.
func (c *closer) stopRun(ctx context.Context, runID string) error {
	return c.end(ctx, runID, stopRunTx)
}

// stopRuns calls stopRun for each of the runs.
func (c *closer) stopRuns(ctx context.Context, runs []string) error {
	for _, id := range runs {
		if err := c.stopRun(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func stopRunTx(ctx context.Context, t sqldb.Tx, runID string) (ended bool, err error) {
	if open, err := lockRun(ctx, t, runID, Waiting, Ready, Running); err != nil || !open {
		return false, err
	}
	type row struct {
		State                   string
		Cancel, Late, Submitted bool // Submitted: the deadline is that of its submission
	}
	run, err := sqldb.Value[row](ctx, t, `SELECT r.state, r.cancel_requested,
		CASE WHEN r.deadline_at < {now} THEN TRUE ELSE FALSE END, CASE WHEN `+ofSubmission+` THEN TRUE ELSE FALSE END
		FROM schedule_run r WHERE r.run_id = ?`, runID)
	if err != nil || !run.Cancel && !run.Late {
		return false, err
	}
	queueState, state, why := QueueFailed, Failed, "the deadline of the run has passed"
	switch {
	case run.Cancel:
		queueState, state, why = QueueCancelled, Cancelled, "cancelled"
	case run.State != Running && run.Submitted:
		why = "it did not start by the time at which it must have ended"
	case run.State != Running:
		why = "it did not start in time (run_start_timeout)"
	}
	n, err := t.Exec(ctx, `UPDATE schedule_run_queue SET `+lowerBound+`, state = ?,
		last_error = CASE WHEN last_error = '' THEN ? ELSE last_error END, next_attempt_at = NULL, finished_at = {now}
		WHERE run_id = ? AND state IN `+unfinished, queueState, why, runID)
	if err != nil {
		return false, err
	}
	sum, err := countQueues(ctx, t, runID)
	if err != nil {
		return false, err
	}
	if n == 0 && run.State == Running {
		state, why = sum.outcome() // all queues were finished before
	}
	if n > 0 {
		left := sum.cancelled + sum.failed
		why = fmt.Sprintf("%s: %d of %d queues were not done", why, left, left+sum.done)
	}
	return true, endRun(ctx, t, runID, run.State, state, why, sum)
}

// CancelSome cancels open runs of a task type before its roster is deleted, and deletes its submissions (R21). A call
// cancels at most CleanRows runs without queues, and reports whether more of them may be open. A tick of the task types
// of dependants resolves these.
func CancelSome(ctx context.Context, l *roster.LockTx) (more bool, err error) {
	if _, err := l.Exec(ctx, `DELETE FROM schedule_submission WHERE task_type = ? AND own_sign = ?`, l.TaskType,
		l.OwnSign); err != nil {
		return false, fmt.Errorf("delete from schedule_submission: %w", err)
	}
	more, err = cancelUnopened(ctx, l)
	if err != nil || more {
		return more, sqldb.Wrap(err, "cancel the runs")
	}
	const open = ` WHERE task_type = ? AND own_sign = ? AND state IN ` + openStates
	_, err = l.Exec(ctx, `UPDATE schedule_run SET cancel_requested = TRUE`+open, l.TaskType, l.OwnSign)
	var ids []string
	if err == nil {
		ids, err = sqldb.Records[string](ctx, l, `SELECT run_id FROM schedule_run`+open+` ORDER BY run_id`,
			l.TaskType, l.OwnSign)
	}
	for _, id := range ids {
		if err == nil {
			_, err = stopRunTx(ctx, l.Tx, id)
		}
	}
	return false, sqldb.Wrap(err, "cancel the runs")
}

// cancelUnopened cancels runs that have no queues yet, in two statements however many they are: a task type whose
// workers have been away may have tens of thousands. It reports whether more may be left. Nothing opens one of them
// meanwhile, because the caller holds the lock row.
func cancelUnopened(ctx context.Context, l *roster.LockTx) (more bool, err error) {
	const unopened = `state IN ('` + Waiting + `', '` + Ready + `')`
	ids, err := sqldb.Records[string](ctx, l, fmt.Sprintf(`SELECT r.run_id FROM schedule_run r
		WHERE r.task_type = ? AND r.own_sign = ? AND r.`+unopened+`
		AND NOT EXISTS (SELECT 1 FROM schedule_run_queue q WHERE q.run_id = r.run_id)
		ORDER BY r.run_id LIMIT %d`, CleanRows), l.TaskType, l.OwnSign)
	if err != nil {
		return false, err
	}
	_, err = l.ExecIn(ctx, ids, `UPDATE schedule_run SET state = '`+Cancelled+`', cancel_requested = TRUE,
		message = 'cancelled', finished_at = {now}, version = version + 1 WHERE `+unopened+` AND run_id IN ({ids})`)
	return len(ids) == CleanRows, err
}
