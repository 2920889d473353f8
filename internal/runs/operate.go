package runs

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// CancelRun ends an open run, at once: its queues are CANCELLED, whoever owns them. A server that is at work learns of
// it with its next tick or SaveSweep; what it has begun may still take effect. Dependants under rule SUCCESS fail.
// ErrRunState if the run has ended.
func (e *Engine) CancelRun(ctx context.Context, runID, actor string) error {
	err := e.operateRun(ctx, runID, func(ctx context.Context, l *roster.LockTx) error {
		n, err := l.Exec(ctx, `UPDATE schedule_run SET cancel_requested = TRUE, version = version + 1 WHERE run_id = ? AND state IN (?, ?, ?)`,
			runID, RunWaiting, RunReady, RunRunning)
		if err != nil || n == 0 {
			return wrongState(ctx, l.Tx, runID, err)
		}
		return l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: "cancelled: " + runID})
	})
	if err == nil {
		err = e.stopRun(ctx, runID)
	}
	if err != nil {
		return fmt.Errorf("cancel run %s: %w", runID, err)
	}
	return nil
}

// PauseRun stops an open run, or lets it go on: it is not opened, its queues are not claimed, and its sweeps are
// suspended. Its deadline stays what it is. ErrRunState if the run has ended.
func (e *Engine) PauseRun(ctx context.Context, runID string, paused bool, actor string) error {
	err := e.operateRun(ctx, runID, func(ctx context.Context, l *roster.LockTx) error {
		n, err := l.Exec(ctx, `UPDATE schedule_run SET paused = ?, version = version + 1 WHERE run_id = ? AND state IN (?, ?, ?)`,
			paused, runID, RunWaiting, RunReady, RunRunning)
		if err != nil || n == 0 {
			return wrongState(ctx, l.Tx, runID, err)
		}
		return l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: roster.PauseKind(paused) + ": " + runID})
	})
	if err != nil {
		return fmt.Errorf("pause run %s: %w", runID, err)
	}
	return nil
}

// Rerun lets a run that has failed or was cancelled go on (R11): its failed and cancelled queues begin anew, each where
// its cursor stands; those that are done stay done, unless the number of queues has changed. It is opened as any other
// run that is READY, and gets a new deadline. Its dependants that have failed because of it wait again; one that is
// RUNNING or has succeeded is left alone. While an upstream of the run itself is not SUCCESS, it fails again.
// ErrRunState if the run is in any other state.
func (e *Engine) Rerun(ctx context.Context, runID, actor string) error {
	var taskType string
	err := e.operateRun(ctx, runID, func(ctx context.Context, l *roster.LockTx) error {
		taskType = l.TaskType
		if ok, err := lockRun(ctx, l.Tx, runID, RunFailed, RunCancelled, RunDependentFailed); err != nil || !ok {
			return wrongState(ctx, l.Tx, runID, err)
		}
		_, err := l.Exec(ctx, `UPDATE schedule_run_queue SET state = '`+RunQueuePending+`', attempt = 0, recoveries = 0, next_attempt_at = NULL,
			last_error = '', finished_at = NULL WHERE run_id = ? AND state IN ('`+RunQueueFailed+`', '`+RunQueueCancelled+`')`, runID)
		if err != nil {
			return err
		}
		if err := reopenRun(ctx, l.Tx, runID); err != nil {
			return err
		}
		if err := resetDependants(ctx, l.Tx, runID); err != nil {
			return err
		}
		return l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: "rerun: " + runID})
	})
	if err == nil {
		err = e.resolveAll(ctx, []taskRun{{runID, taskType}})
	}
	if err != nil {
		return fmt.Errorf("rerun %s: %w", runID, err)
	}
	return nil
}

// reopen makes a run that has ended READY, or wait for its upstreams, if not all of them have succeeded.
func reopenRun(ctx context.Context, t sqldb.Tx, runID string) error {
	state, _, err := upstreamState(ctx, t, runID)
	if err != nil {
		return err
	}
	if state != RunReady {
		state = RunWaiting
	}
	_, err = t.Exec(ctx, `UPDATE schedule_run SET state = ?, message = '', cancel_requested = FALSE, paused = FALSE, deadline_at = NULL, finished_at = NULL
		WHERE run_id = ?`, state, runID)
	return err
}

// resetDependants makes all runs wait again that have failed because this one had, directly or not. They are locked
// first, whatever their state: one that is being settled meanwhile is looked at when that is committed.
func resetDependants(ctx context.Context, t sqldb.Tx, runID string) error {
	seen := []string{runID}
	for i := 0; i < len(seen) && len(seen) < maxGraphRuns; i++ {
		err := t.Each(ctx, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			if !slices.Contains(seen, id) {
				seen = append(seen, id)
			}
			return err
		}, `SELECT run_id FROM schedule_run_dep WHERE upstream_run_id = ? ORDER BY run_id`, seen[i])
		if err != nil {
			return fmt.Errorf("read the dependants: %w", err)
		}
	}
	dependants := seen[1:]
	slices.Sort(dependants) // one order of locking for all
	for _, id := range dependants {
		if _, err := t.Exec(ctx, `UPDATE schedule_run SET version = version + 1 WHERE run_id = ?`, id); err != nil {
			return err
		}
		_, err := t.Exec(ctx, `UPDATE schedule_run SET state = '`+RunWaiting+`', message = '', finished_at = NULL
			WHERE run_id = ? AND state = '`+RunDependentFailed+`'`, id)
		if err != nil {
			return fmt.Errorf("wake run %s: %w", id, err)
		}
	}
	return nil
}

// operateRun runs f under the lock row of the run's task type.
func (e *Engine) operateRun(ctx context.Context, runID string, f func(context.Context, *roster.LockTx) error) error {
	r, err := e.Run(ctx, runID)
	if err != nil {
		return err
	}
	return e.roster.UnderLock(ctx, r.TaskType, f)
}

// wrongState says in which state a run is that did not match, unless there was another error.
func wrongState(ctx context.Context, t sqldb.Tx, runID string, err error) error {
	if err != nil {
		return err
	}
	var state string
	if err := t.QueryRow(ctx, `SELECT state FROM schedule_run WHERE run_id = ?`, runID).Scan(&state); err != nil {
		return err
	}
	return fmt.Errorf("%w: it is %s", ErrRunState, state)
}
