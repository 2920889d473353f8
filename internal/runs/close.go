package runs

import (
	"context"
	"fmt"

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
	var ended bool
	err := c.db.Transact(ctx, c.db.Store, func(ctx context.Context, t sqldb.Tx) error {
		ended = false
		running, err := lockRun(ctx, t, runID, RunRunning)
		if err != nil || !running {
			return err
		}
		sum, err := countQueues(ctx, t, runID)
		if err != nil || sum.open > 0 {
			return err
		}
		ended = true
		return endRun(ctx, t, runID, RunRunning, sum)
	})
	return c.afterEnd(ctx, runID, ended, err)
}

// endRun ends a run whose row is locked in the state that follows from its queues.
func endRun(ctx context.Context, t sqldb.Tx, runID, from string, sum queueCounts) error {
	state, message := sum.outcome()
	return endRunAs(ctx, t, runID, from, state, message, sum)
}

func endRunAs(ctx context.Context, t sqldb.Tx, runID, from, state, message string, sum queueCounts) error {
	if err := moveRun(ctx, t, runID, from, state, message); err != nil {
		return err
	}
	_, err := t.Exec(ctx, `UPDATE schedule_run SET items_done = ?, items_failed = ?, items_at_least = ? WHERE run_id = ?`,
		sum.itemsDone, sum.itemsFailed, sum.atLeast, runID)
	return err
}

// afterEnd resolves the dependants of a run once its end is committed.
func (c *closer) afterEnd(ctx context.Context, runID string, ended bool, err error) error {
	if err == nil && ended {
		err = c.resolveDependants(ctx, runID)
	}
	if err != nil {
		return fmt.Errorf("close run %s: %w", runID, err)
	}
	return nil
}
