package runs

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Cancel ends an open run at once: its unfinished queues are CANCELLED, whichever servers own them. A server with a
// sweep notices it at its next tick or [Sweeps.Save]; its calls in flight may still take effect. Dependants under rule
// SUCCESS fail. Cancel returns ErrRunState if the run has ended.
func (rs *Runs) Cancel(ctx context.Context, runID, actor string) error {
	err := rs.operate(ctx, runID, func(ctx context.Context, l *roster.LockTx) error {
		n, err := l.Exec(ctx, `UPDATE schedule_run SET cancel_requested = TRUE, version = version + 1 WHERE run_id = ? AND state IN (?, ?, ?)`,
			runID, RunWaiting, RunReady, RunRunning)
		if err != nil || n == 0 {
			return wrongState(ctx, l.Tx, runID, err)
		}
		return l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: "run " + runID + " was cancelled"})
	})
	if err == nil {
		err = rs.closer.stopRun(ctx, runID)
	}
	if err != nil {
		return fmt.Errorf("cancel run %s: %w", runID, err)
	}
	return nil
}

// SetPaused pauses or resumes an open run. A paused run is not opened, servers claim none of its queues, and they suspend
// its sweeps. Its deadline does not change. SetPaused returns ErrRunState if the run has ended.
func (rs *Runs) SetPaused(ctx context.Context, runID string, paused bool, actor string) error {
	err := rs.operate(ctx, runID, func(ctx context.Context, l *roster.LockTx) error {
		n, err := l.Exec(ctx, `UPDATE schedule_run SET paused = ?, version = version + 1 WHERE run_id = ? AND state IN (?, ?, ?)`,
			paused, runID, RunWaiting, RunReady, RunRunning)
		if err != nil || n == 0 {
			return wrongState(ctx, l.Tx, runID, err)
		}
		return l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: "run " + runID + " was " + roster.PauseVerb(paused) + "d"})
	})
	if err != nil {
		return fmt.Errorf("%s run %s: %w", roster.PauseVerb(paused), runID, err)
	}
	return nil
}

// Rerun reopens a run that is FAILED, CANCELLED or DEPENDENT_FAILED (R11). Its failed and cancelled queues start again, each
// at its cursor. Queues that are DONE stay so, unless the number of queues has changed. The run is opened like any other
// READY run, and gets a new deadline. Its dependants that failed because of it wait again; a dependant that is RUNNING or
// has succeeded does not change. If an upstream of the run itself has failed, the run fails again. Rerun returns
// ErrRunState if the run is in any other state.
func (rs *Runs) Rerun(ctx context.Context, runID, actor string) error {
	var taskType string
	err := rs.operate(ctx, runID, func(ctx context.Context, l *roster.LockTx) error {
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
		return l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: "run " + runID + " was started again"})
	})
	if err == nil {
		err = rs.closer.resolveAll(ctx, []taskRun{{runID, taskType}})
	}
	if err != nil {
		return fmt.Errorf("rerun %s: %w", runID, err)
	}
	return nil
}

// reopenRun makes a run that has ended READY, or WAITING if not all of its upstreams have succeeded.
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

// resetDependants makes the DEPENDENT_FAILED runs among the direct and indirect dependants of a run WAITING again. It locks
// each dependant before it reads the state: if another transaction is resolving the dependant, its commit comes first.
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
	slices.Sort(dependants) // every transaction locks runs in the same order
	for _, id := range dependants {
		if _, err := t.Exec(ctx, `UPDATE schedule_run SET version = version + 1 WHERE run_id = ?`, id); err != nil {
			return err
		}
		_, err := t.Exec(ctx, `UPDATE schedule_run SET state = '`+RunWaiting+`', message = '', finished_at = NULL
			WHERE run_id = ? AND state = '`+RunDependentFailed+`'`, id)
		if err != nil {
			return fmt.Errorf("let run %s wait again: %w", id, err)
		}
	}
	return nil
}

// operate runs f under the lock row of the run's task type.
func (rs *Runs) operate(ctx context.Context, runID string, f func(context.Context, *roster.LockTx) error) error {
	r, err := rs.readRun(ctx, runID)
	if err != nil {
		return err
	}
	return rs.roster.UnderLock(ctx, r.TaskType, f)
}
