package roster

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
)

// InsertQueues inserts the queues of a new roster. The queues of the same task type in BASE replace them, if there are
// any.
func InsertQueues(ctx context.Context, l *LockTx, queues []QueueRow) error {
	base, err := baseQueues(ctx, l)
	if err != nil {
		return err
	}
	if len(base) > 0 {
		queues = base
	}
	if err := insertQueueRows(ctx, l, queues, pastWindows(l)); err != nil {
		return err
	}
	if err := clonePins(ctx, l); err != nil {
		return err
	}
	_, err = l.Exec(ctx, `UPDATE schedule_task_running SET queue_total = ?, membership_version = membership_version + 1
		WHERE task_type = ? AND own_sign = ?`, len(queues), l.TaskType, l.OwnSign)
	if err != nil {
		return fmt.Errorf("set the number of queues: %w", err)
	}
	return nil
}

// QueueRow is a queue to be inserted.
type QueueRow struct {
	ID        string
	Index     int
	parameter string
}

// NumberedQueues returns the queues with the numbers from first to total - 1.
func NumberedQueues(first, total int) (queues []QueueRow) {
	for i := first; i < total; i++ {
		queues = append(queues, QueueRow{ID: fmt.Sprint(i), Index: i})
	}
	return queues
}

// baseQueues returns the queues of BASE to clone. Cursors are not cloned: each environment reads its sources by
// itself.
func baseQueues(ctx context.Context, l *LockTx) (queues []QueueRow, err error) {
	if l.OwnSign == DefaultOwnSign {
		return nil, nil
	}
	base := l.Reader()
	base.ownSign, base.locked = DefaultOwnSign, nil // its lock row is another
	removing, err := base.Removing(ctx)
	if err != nil {
		return nil, err
	}
	err = l.Each(ctx, func(rows *sql.Rows) error {
		var q QueueRow
		err := rows.Scan(&q.ID, &q.Index, &q.parameter)
		if !slices.Contains(removing, q.ID) {
			queues = append(queues, q)
		}
		return err
	}, `SELECT queue_id, queue_index, queue_parameter FROM schedule_queue
		WHERE task_type = ? AND own_sign = ? ORDER BY queue_index, queue_id`, l.TaskType, DefaultOwnSign)
	if err != nil {
		return nil, fmt.Errorf("read the queues of %s: %w", DefaultOwnSign, err)
	}
	return queues, nil
}

// pastWindows returns the window_done_at of a new queue: it counts as done in each permit window that began before now,
// because a queue does not repeat a window that it missed.
func pastWindows(l *LockTx) any { return l.Dialect.Time(l.Now.Add(-time.Microsecond)) }

// insertQueueRows inserts queues that count as done in the permit windows up to windowDone. Their epochs start above
// each epoch that this roster has used (H6).
func insertQueueRows(ctx context.Context, l *LockTx, queues []QueueRow, windowDone any) error {
	for part := range slices.Chunk(queues, InsertRows) {
		args := make([]any, 0, 7*len(part))
		for _, q := range part {
			args = append(args, l.TaskType, l.OwnSign, q.ID, q.Index, q.parameter, l.EpochHigh+1, windowDone)
		}
		values := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, {now}, {now}), ", len(part)), ", ")
		_, err := l.Exec(ctx, `INSERT INTO schedule_queue
			(task_type, own_sign, queue_id, queue_index, queue_parameter, epoch, window_done_at, gmt_created, gmt_modified) VALUES `+values, args...)
		if err != nil {
			return fmt.Errorf("insert the queues: %w", err)
		}
	}
	return nil
}

// RaiseEpochHigh raises EpochHigh to the highest epoch of the present queues.
func RaiseEpochHigh(ctx context.Context, l *LockTx) error {
	var top int64
	err := l.QueryRow(ctx, `SELECT COALESCE(MAX(epoch), 0) FROM schedule_queue WHERE task_type = ? AND own_sign = ? AND `+validEpoch, l.TaskType, l.OwnSign).Scan(&top)
	l.EpochHigh = max(l.EpochHigh, top)
	return err
}

// MaxQueues is the most queues that a task type may have. It keeps a typing error from filling the database.
const MaxQueues = 100_000
