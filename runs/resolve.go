package runs

import (
	"context"
	"fmt"
	"strings"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// upstreamState returns the state that follows from all upstreams of a run: DEPENDENT_FAILED or SKIPPED if any of them
// did not succeed, wherever it stands in the list; else WAITING if any has not ended; else READY. The cause names the
// failed upstream and its own cause. If the caller has locked the run's row by writing it, the result stays true until
// the commit, because a rerun of an upstream locks its dependants.
func upstreamState(ctx context.Context, t sqldb.Tx, runID string) (state, cause string, err error) {
	type upstream struct{ ID, Rule, Name, State, Message string }
	list, err := sqldb.Records[upstream](ctx, t, `SELECT d.upstream_run_id, d.rule, u.task_type,
			CASE WHEN u.run_id IS NULL AND `+toBeMade+` THEN '`+Waiting+`' ELSE u.state END, u.message
		FROM schedule_run_dep d LEFT JOIN schedule_run u ON u.run_id = d.upstream_run_id
		WHERE d.run_id = ? ORDER BY d.upstream_run_id`, runID)
	if err != nil {
		return "", "", fmt.Errorf("read the upstreams of run %s: %w", runID, err)
	}
	state = Ready
	rank := map[string]int{Ready: 0, Waiting: 1, Skipped: 2, DependentFailed: 3}
	for _, u := range list {
		next := stateAfter(u.State, u.Rule)
		if rank[next] <= rank[state] {
			continue
		}
		state = next
		cause = strings.TrimSuffix(fmt.Sprintf("%s (run %s) %s: %s", u.Name, u.ID, u.State, u.Message), ": ")
		if u.State == "" {
			cause = fmt.Sprintf("run %s is gone", u.ID)
		}
	}
	return state, cause, nil
}

// stateAfter returns the state of a dependant that has only this upstream.
func stateAfter(upstream, rule string) string {
	switch {
	case upstream == Waiting, upstream == Ready, upstream == Running:
		return Waiting
	case rule == RuleFinished && upstream != "", upstream == Success:
		return Ready
	case upstream == Skipped:
		return Skipped
	}
	return DependentFailed
}

// resolve moves a WAITING run to the state that follows from its upstreams: READY if they have succeeded, or an end
// state if one of them has not. It reports whether the run has ended.
func (c *closer) resolve(ctx context.Context, r taskRun) (ended bool, err error) {
	// Perhaps no server of the task type has started in this own_sign.
	if err := c.roster.InsertLockRow(ctx, r.TaskType); err != nil {
		return false, err
	}
	err = c.roster.UnderLock(ctx, r.TaskType, func(ctx context.Context, l *roster.LockTx) error {
		ended = false
		waits, err := lockRun(ctx, l.Tx, r.ID, Waiting)
		if err != nil || !waits {
			return err
		}
		state, cause, err := upstreamState(ctx, l.Tx, r.ID)
		if err == nil && state == Ready {
			state, cause, err = checkPileUp(ctx, l, r.ID)
		}
		if err != nil || state == Waiting {
			return err
		}
		ended = state != Ready
		return moveRun(ctx, l.Tx, r.ID, Waiting, state, cause)
	})
	return ended && err == nil, sqldb.Wrap(err, "resolve run %s", r.ID)
}

// checkPileUp keeps the runs of a trigger from piling up at a slow dependant whose setting coalesce is on (R4). It
// returns SKIPPED if another run of the same trigger is READY and not paused: that run has not started yet, and so it
// also does the work of the skipped one. A run of a backfill does the work of its own slot only (R20).
func checkPileUp(ctx context.Context, l *roster.LockTx, runID string) (state, cause string, err error) {
	other, found, err := sqldb.Record[string](ctx, l, `SELECT o.run_id FROM schedule_run r
		JOIN schedule_run o ON o.task_type = r.task_type AND o.own_sign = r.own_sign AND o.state = '`+Ready+`'
			AND o.trigger_name = r.trigger_name AND o.backfill_id IS NULL AND r.backfill_id IS NULL
			AND NOT o.paused AND NOT o.cancel_requested
		JOIN schedule_task_type t ON t.task_type = r.task_type AND t.coalesce_runs
		WHERE r.run_id = ? ORDER BY o.run_id LIMIT 1`, runID)
	if err != nil || !found {
		return Ready, "", err
	}
	return Skipped, fmt.Sprintf("run %s of the same trigger waits to begin", other), nil
}

// maxResolved bounds the runs that one call resolves. Later ticks resolve the others.
const maxResolved = 200

// resolveAll resolves runs. If a run ends by that, it resolves its dependants too, and so on.
func (c *closer) resolveAll(ctx context.Context, runs []taskRun) error {
	for n := 0; n < len(runs) && n < maxResolved; n++ {
		ended, err := c.resolve(ctx, runs[n])
		if err != nil {
			return err
		}
		if !ended {
			continue
		}
		c.ends.count(ctx, c.core, runs[n].ID)
		next, err := c.dependants(ctx, runs[n].ID)
		if err != nil {
			return err
		}
		runs = append(runs, next...)
	}
	return nil
}

// resolveDependants counts the end of a run and resolves its dependants.
func (c *closer) resolveDependants(ctx context.Context, runID string) error {
	c.ends.count(ctx, c.core, runID)
	runs, err := c.dependants(ctx, runID)
	if err != nil {
		return err
	}
	return c.resolveAll(ctx, runs)
}

// dependants returns the WAITING runs that have this run as an upstream. A run that is to be cancelled does not fail
// instead: its tick cancels it.
func (c *closer) dependants(ctx context.Context, runID string) (runs []taskRun, err error) {
	runs, err = sqldb.Records[taskRun](ctx, c.db, `SELECT w.run_id, w.task_type
		FROM schedule_run_dep d JOIN schedule_run w ON w.run_id = d.run_id
		WHERE d.upstream_run_id = ? AND w.own_sign = ? AND w.state = '`+Waiting+`' AND NOT w.cancel_requested
		ORDER BY w.run_id`, runID, c.ownSign)
	return runs, sqldb.Wrap(err, "read the dependants of run %s", runID)
}

// resolvable is the condition that the upstreams of a WAITING run w decide its next state. They do not decide that of a
// run that is to be cancelled: a tick cancels only some of these.
const resolvable = `NOT w.cancel_requested AND (EXISTS (SELECT 1 FROM schedule_run_dep d
		LEFT JOIN schedule_run u ON u.run_id = d.upstream_run_id
		WHERE d.run_id = w.run_id AND (u.run_id IS NULL AND NOT ` + toBeMade + ` OR d.rule = '` + RuleSuccess + `'
		AND u.state IN ('` + Failed + `', '` + DependentFailed + `', '` + Cancelled + `', '` + Skipped + `')))
	OR NOT EXISTS (SELECT 1 FROM schedule_run_dep d LEFT JOIN schedule_run u ON u.run_id = d.upstream_run_id
		WHERE d.run_id = w.run_id AND (u.state IN ` + openStates + ` OR u.run_id IS NULL AND ` + toBeMade + `)))`

// toBeMade is the condition that the upstream of an edge d was submitted in a transaction, and that a tick of its task
// type is still to make it (R21): its dependant may be made first.
const toBeMade = `EXISTS (SELECT 1 FROM schedule_submission b WHERE b.run_id = d.upstream_run_id)`
