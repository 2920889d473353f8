package roster

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
)

func (l *LockTx) InsertQueues(ctx context.Context, queues []QueueRow) error {
	base, err := l.baseQueues(ctx)
	if err != nil {
		return err
	}
	if len(base) > 0 {
		queues = base
	}
	if err := l.insertQueueRows(ctx, queues, l.pastWindows()); err != nil {
		return err
	}
	_, err = l.Exec(ctx, `UPDATE schedule_task_running SET queue_total = ?, membership_version = membership_version + 1
		WHERE task_type = ? AND own_sign = ?`, len(queues), l.TaskType, l.OwnSign)
	if err != nil {
		return fmt.Errorf("set the number of queues: %w", err)
	}
	return nil
}

// queueRow is a queue that is not there yet.
type QueueRow struct {
	ID        string
	Index     int
	parameter string
}

// numberedQueues are the queues with the numbers from first on, below total.
func NumberedQueues(first, total int) (queues []QueueRow) {
	for i := first; i < total; i++ {
		queues = append(queues, QueueRow{ID: fmt.Sprint(i), Index: i})
	}
	return queues
}

// baseQueues returns the queues to clone. How far BASE has read its sources is its own affair: cursors are
// not cloned.
func (l *LockTx) baseQueues(ctx context.Context) (queues []QueueRow, err error) {
	if l.OwnSign == DefaultOwnSign {
		return nil, nil
	}
	base := Reader{DB: l.Raw, Dialect: l.Dialect, TaskType: l.TaskType, OwnSign: DefaultOwnSign}
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

// pastWindows says of a new queue that it is done in all permit windows that began before now: what they would
// have done is not made up for.
func (l *LockTx) pastWindows() any { return l.Dialect.Time(l.Now.Add(-time.Microsecond)) }

// insertQueueRows inserts queues that count as done in the permit windows up to windowDone. It starts epochs above every one that was ever used in this roster (H6).
func (l *LockTx) insertQueueRows(ctx context.Context, queues []QueueRow, windowDone any) error {
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

// raiseEpochHigh keeps in mind the highest epoch of the queues that are there.
func (l *LockTx) RaiseEpochHigh(ctx context.Context) error {
	var top int64
	err := l.QueryRow(ctx, `SELECT COALESCE(MAX(epoch), 0) FROM schedule_queue WHERE task_type = ? AND own_sign = ?`, l.TaskType, l.OwnSign).Scan(&top)
	l.EpochHigh = max(l.EpochHigh, top)
	return err
}

// maxQueues keeps a typing error from filling the database.
const MaxQueues = 100_000
