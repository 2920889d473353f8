package runs

import (
	"context"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// reopenable are the states of the runs that a rerun reopens.
var reopenable = []string{RunFailed, RunCancelled, RunDependentFailed, RunSkipped}

// reopen reopens a run whose row is locked and, with dependants, lets its dependants wait again. A SKIPPED root has
// none yet: it gets them now.
func reopen(ctx context.Context, l *roster.LockTx, runID string, dependants bool) error {
	r := Run{ID: runID, TaskType: l.TaskType, OwnSign: l.OwnSign}
	err := l.QueryRow(ctx, `SELECT state, run_key, root_run_id, trigger_name, backfill_id, scheduled_at, priority, params FROM schedule_run WHERE run_id = ?`, runID).
		Scan(&r.State, &r.Key, &r.RootID, (*sqldb.Text)(&r.Trigger), (*sqldb.Text)(&r.Backfill), (*sqldb.Instant)(&r.ScheduledAt), &r.Priority, &r.Params)
	if err != nil {
		return err
	}
	wasSkipped := r.State == RunSkipped
	if wasSkipped && r.RootID == runID {
		if _, err := forgetSkipped(ctx, l, r.Trigger); err != nil {
			return err
		}
	}
	if err := reopenQueues(ctx, l.Tx, runID); err != nil {
		return err
	}
	if r.State, err = reopenRun(ctx, l.Tx, runID); err != nil {
		return err
	}
	switch {
	case !dependants:
		return nil
	case wasSkipped && r.RootID == runID:
		return insertDependants(ctx, l, r)
	}
	return resetDependants(ctx, l.Tx, runID)
}

// reopenQueues lets the queues begin again that failed or were cancelled. Their failed items and the
// number of these stay until a sweep has been through the whole queue: the next sweep need not find out again which items
// fail.
func reopenQueues(ctx context.Context, t sqldb.Tx, runID string) error {
	_, err := t.Exec(ctx, `UPDATE schedule_run_queue SET state = '`+RunQueuePending+`', attempt = 0, recoveries = 0, next_attempt_at = NULL,
		last_error = '', finished_at = NULL WHERE run_id = ? AND state IN ('`+RunQueueFailed+`', '`+RunQueueCancelled+`')`, runID)
	return err
}

// reopenRun makes a run that has ended READY, or WAITING if not all of its upstreams have succeeded.
func reopenRun(ctx context.Context, t sqldb.Tx, runID string) (state string, err error) {
	if state, _, err = upstreamState(ctx, t, runID); err != nil {
		return "", err
	}
	if state != RunReady {
		state = RunWaiting
	}
	_, err = t.Exec(ctx, `UPDATE schedule_run SET state = ?, message = '', cancel_requested = FALSE, paused = FALSE, finished_at = NULL,
		acked_at = NULL, acked_by = '' WHERE run_id = ?`, state, runID)
	if err != nil {
		return "", err
	}
	return state, restartLimit(ctx, t, runID)
}

// resetDependants makes the DEPENDENT_FAILED and SKIPPED runs among the direct and indirect dependants of a run WAITING
// again. It locks each dependant before it reads the state: if another transaction is resolving the dependant, its
// commit comes first.
func resetDependants(ctx context.Context, t sqldb.Tx, runID string) error {
	dependants, err := allDependants(ctx, t, runID)
	if err != nil {
		return err
	}
	for _, id := range dependants {
		if err := resetDependant(ctx, t, id); err != nil {
			return fmt.Errorf("let run %s wait again: %w", id, err)
		}
	}
	return nil
}

// allDependants returns the direct and indirect dependants of a run, in the order in which every transaction locks
// runs.
func allDependants(ctx context.Context, t sqldb.Tx, runID string) ([]string, error) {
	seen := []string{runID}
	for i := 0; i < len(seen) && len(seen) < maxGraphRuns; i++ {
		ids, err := sqldb.Records[string](ctx, t, `SELECT run_id FROM schedule_run_dep WHERE upstream_run_id = ? ORDER BY run_id`, seen[i])
		if err != nil {
			return nil, fmt.Errorf("read the dependants: %w", err)
		}
		for _, id := range ids {
			if !slices.Contains(seen, id) {
				seen = append(seen, id)
			}
		}
	}
	dependants := seen[1:]
	slices.Sort(dependants)
	return dependants, nil
}

func resetDependant(ctx context.Context, t sqldb.Tx, runID string) error {
	if _, err := t.Exec(ctx, `UPDATE schedule_run SET version = version + 1 WHERE run_id = ?`, runID); err != nil {
		return err
	}
	n, err := t.Exec(ctx, `UPDATE schedule_run SET state = '`+RunWaiting+`', message = '', finished_at = NULL, acked_at = NULL, acked_by = ''
		WHERE run_id = ? AND state IN ('`+RunDependentFailed+`', '`+RunSkipped+`')`, runID)
	if err != nil || n == 0 {
		return err
	}
	return restartLimit(ctx, t, runID)
}
