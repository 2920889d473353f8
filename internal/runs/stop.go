package runs

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// stopRun ends an open run that was cancelled or whose deadline has passed, whether its queues have owners or not (R9,
// R13). An owner with a sweep notices it at its next write: the row of its queue is no longer RUNNING.
func (c *closer) stopRun(ctx context.Context, runID string) error {
	var ended bool
	err := c.db.Transact(ctx, c.db.Store, func(ctx context.Context, t sqldb.Tx) (err error) {
		ended, err = stopRunTx(ctx, t, runID)
		return err
	})
	return c.afterEnd(ctx, runID, ended, err)
}

func stopRunTx(ctx context.Context, t sqldb.Tx, runID string) (ended bool, err error) {
	if open, err := lockRun(ctx, t, runID, RunWaiting, RunReady, RunRunning); err != nil || !open {
		return false, err
	}
	var from string
	var cancel, late bool
	err = t.QueryRow(ctx, `SELECT state, cancel_requested, CASE WHEN deadline_at < {now} THEN TRUE ELSE FALSE END
		FROM schedule_run WHERE run_id = ?`, runID).Scan(&from, (*sqldb.Flag)(&cancel), (*sqldb.Flag)(&late))
	if err != nil || !cancel && !late {
		return false, err
	}
	queueState, state, why := RunQueueFailed, RunFailed, "the deadline of the run has passed"
	if from != RunRunning {
		why = "it did not start in time (run_start_timeout)"
	}
	if cancel {
		queueState, state, why = RunQueueCancelled, RunCancelled, "cancelled"
	}
	n, err := t.Exec(ctx, `UPDATE schedule_run_queue SET `+lowerBound+`, state = ?, last_error = CASE WHEN last_error = '' THEN ? ELSE last_error END, next_attempt_at = NULL,
		finished_at = {now} WHERE run_id = ? AND state IN ('`+RunQueuePending+`', '`+RunQueueRunning+`')`, queueState, why, runID)
	if err != nil {
		return false, err
	}
	sum, err := countQueues(ctx, t, runID)
	if err != nil {
		return false, err
	}
	if n == 0 && from == RunRunning {
		return true, endRun(ctx, t, runID, from, sum) // all queues were finished before
	}
	if n > 0 {
		why = fmt.Sprintf("%s: %d of %d queues were not done", why, sum.cancelled+sum.failed, sum.cancelled+sum.failed+sum.done)
	}
	return true, endRunAs(ctx, t, runID, from, state, why, sum)
}

// CancelAll cancels all open runs of a task type whose roster is deleted. A tick of their dependants' task types
// resolves the dependants.
func CancelAll(ctx context.Context, l *roster.LockTx) error {
	const open = ` WHERE task_type = ? AND own_sign = ? AND state IN ('` + RunWaiting + `', '` + RunReady + `', '` + RunRunning + `')`
	if _, err := l.Exec(ctx, `UPDATE schedule_run SET cancel_requested = TRUE`+open, l.TaskType, l.OwnSign); err != nil {
		return fmt.Errorf("cancel the runs: %w", err)
	}
	var ids []string
	err := l.Each(ctx, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, `SELECT run_id FROM schedule_run`+open+` ORDER BY run_id`, l.TaskType, l.OwnSign)
	for _, id := range ids {
		if err == nil {
			_, err = stopRunTx(ctx, l.Tx, id)
		}
	}
	if err != nil {
		return fmt.Errorf("cancel the runs: %w", err)
	}
	return nil
}
