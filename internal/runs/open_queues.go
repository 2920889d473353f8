package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// snapshotQueues inserts a row of the run for each queue (R6), and returns the number of queues. It leaves out queues
// that are being removed. A run that was rerun has rows already. It keeps them unless the number of queues has changed:
// then items have moved to other queues, and all queues are swept again.
func snapshotQueues(ctx context.Context, l *roster.LockTx, runID string) (total int, err error) {
	queues, err := l.NamedQueues(ctx)
	numbered := errors.Is(err, roster.ErrNumbered)
	if err != nil && !numbered {
		return 0, fmt.Errorf("read the queues: %w", err)
	}
	queues = slices.DeleteFunc(queues, func(q roster.NamedQueue) bool { return q.Removing })
	rows, err := runQueueIDs(ctx, l, runID)
	if err != nil {
		return 0, err
	}
	if len(rows) > 0 {
		var was int
		if err := l.QueryRow(ctx, `SELECT queue_total FROM schedule_run WHERE run_id = ?`, runID).Scan(&was); err != nil {
			return 0, err
		}
		if !numbered || was == len(queues) {
			return was, cancelRemovedQueues(ctx, l, runID, rows, queues)
		}
		for _, table := range []string{"schedule_run_item", "schedule_run_queue"} {
			if _, err := l.Exec(ctx, `DELETE FROM `+table+` WHERE run_id = ?`, runID); err != nil {
				return 0, err
			}
		}
	}
	return len(queues), insertRunQueues(ctx, l, runID, queues)
}

func runQueueIDs(ctx context.Context, l *roster.LockTx, runID string) ([]string, error) {
	return sqldb.Records[string](ctx, l, `SELECT queue_id FROM schedule_run_queue WHERE run_id = ? ORDER BY queue_id`, runID)
}

// cancelRemovedQueues cancels the rows of queues that were removed since the run was first opened.
func cancelRemovedQueues(ctx context.Context, l *roster.LockTx, runID string, rows []string, queues []roster.NamedQueue) error {
	gone := slices.DeleteFunc(rows, func(id string) bool {
		return slices.ContainsFunc(queues, func(q roster.NamedQueue) bool { return q.ID == id })
	})
	return endRunQueues(ctx, l.Tx, RunQueueCancelled, queueRemoved, gone, `run_id = ?`, runID)
}

const queueRemoved = "the queue was removed"

func insertRunQueues(ctx context.Context, l *roster.LockTx, runID string, queues []roster.NamedQueue) error {
	for part := range slices.Chunk(queues, roster.InsertRows) {
		args := make([]any, 0, 2*len(part))
		for _, q := range part {
			args = append(args, runID, q.ID)
		}
		_, err := l.Exec(ctx, `INSERT INTO schedule_run_queue (run_id, queue_id) VALUES `+
			strings.TrimSuffix(strings.Repeat("(?, ?), ", len(part)), ", "), args...)
		if err != nil {
			return fmt.Errorf("insert the queues of run %s: %w", runID, err)
		}
	}
	return nil
}

// endRunQueues ends the unfinished rows of the queues in the runs that the condition where selects.
func endRunQueues(ctx context.Context, t sqldb.Tx, state, why string, queues []string, where string, args ...any) error {
	for part := range slices.Chunk(queues, roster.InsertRows) {
		all := append([]any{state, why}, args...)
		_, err := t.Exec(ctx, `UPDATE schedule_run_queue SET `+lowerBound+`, state = ?, last_error = ?, next_attempt_at = NULL, finished_at = {now} WHERE `+where+
			` AND state IN ('`+RunQueuePending+`', '`+RunQueueRunning+`') AND queue_id IN (`+sqldb.Marks(len(part))+`)`, append(all, sqldb.Args(part)...)...)
		if err != nil {
			return fmt.Errorf("end queues of runs: %w", err)
		}
	}
	return nil
}

// endQueuesOfOpenRun ends the unfinished rows of the open run for queues that this transaction deletes (N1, N2).
func endQueuesOfOpenRun(ctx context.Context, l *roster.LockTx, state, why string, queues []string) error {
	open, err := sqldb.Records[string](ctx, l, `SELECT run_id FROM schedule_run WHERE task_type = ? AND own_sign = ? AND state = '`+RunRunning+`' ORDER BY run_id`, l.TaskType, l.OwnSign)
	if err != nil {
		return fmt.Errorf("read the open run: %w", err)
	}
	for _, id := range open {
		if err := endRunQueues(ctx, l.Tx, state, why, queues, `run_id = ?`, id); err != nil {
			return err
		}
	}
	return nil
}
