package runs

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/internal/roster"
)

// Cancel ends an open run at once: its unfinished queues are CANCELLED, also if other servers own them. A server with a
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

// SetPaused pauses or resumes an open run. A paused run is not opened, servers claim none of its queues, and they
// suspend its sweeps. Its deadline does not change. SetPaused returns ErrRunState if the run has ended.
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

// Rerun reopens a run that is FAILED, CANCELLED, DEPENDENT_FAILED or SKIPPED (R11). Its failed and cancelled queues
// start again, each at its cursor, and know which items have failed. Queues that are DONE stay so, unless the number of queues has changed. The run is
// opened like any other READY run, and gets a new deadline. Its dependants that failed or were skipped because of it
// wait again; a dependant that is RUNNING or has succeeded does not change. A SKIPPED root gets the dependants that it
// did not get before. If an upstream of the run itself has failed, the run fails again. A backfill that has ended goes
// on until the run has ended. Rerun returns ErrRunState if the run is in any other state.
func (rs *Runs) Rerun(ctx context.Context, runID, actor string) error {
	var taskType string
	err := rs.operate(ctx, runID, func(ctx context.Context, l *roster.LockTx) error {
		taskType = l.TaskType
		if ok, err := lockRun(ctx, l.Tx, runID, reopenable...); err != nil || !ok {
			return wrongState(ctx, l.Tx, runID, err)
		}
		if err := reopen(ctx, l, runID, true); err != nil {
			return err
		}
		if err := l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: "run " + runID + " was started again"}); err != nil {
			return err
		}
		return continueBackfills(ctx, l.Tx, runID)
	})
	if err == nil {
		err = rs.closer.resolveAll(ctx, []taskRun{{runID, taskType}})
	}
	if err != nil {
		return fmt.Errorf("rerun %s: %w", runID, err)
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
