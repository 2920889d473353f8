package roster

import (
	"context"
	"fmt"
)

// RebuildLockRow fills in a new lock row from the queues, if there are any, and reports whether it did. The old row was
// deleted by hand. Epochs (H6), plan versions (S2) and partition versions (N1, X6) go on above all that the tables
// still have. A pause, a removal that was under way and a request for another number of queues are lost.
func RebuildLockRow(ctx context.Context, l *LockTx) (rebuilt bool, err error) {
	var queues int
	var plan int64
	err = l.QueryRow(ctx, `SELECT COUNT(*), COALESCE(MAX(plan_version), 0) FROM schedule_queue WHERE task_type = ? AND own_sign = ?`,
		l.TaskType, l.OwnSign).Scan(&queues, &plan)
	if err != nil || queues == 0 {
		return false, err
	}
	if err := RaiseEpochHigh(ctx, l); err != nil {
		return false, fmt.Errorf("rebuild the lock row: %w", err)
	}
	var recorded, partition, ofItems int64
	err = l.QueryRow(ctx, `SELECT (SELECT COALESCE(MAX(epoch), 0) FROM schedule_event WHERE task_type = ? AND own_sign = ?),
		(SELECT COALESCE(MAX(drained_partition), 0) FROM schedule_server WHERE task_type = ? AND own_sign = ?),
		(SELECT COALESCE(MAX(partition_version) + 1, 0) FROM schedule_failed_item WHERE task_type = ? AND own_sign = ?)`,
		l.TaskType, l.OwnSign, l.TaskType, l.OwnSign, l.TaskType, l.OwnSign).Scan(&recorded, &partition, &ofItems)
	if err != nil {
		return false, fmt.Errorf("rebuild the lock row: read the epochs of the events: %w", err)
	}
	l.EpochHigh = max(l.EpochHigh, recorded)
	l.QueueTotal, l.versions.plan, l.versions.partition = queues, max(l.versions.plan, plan), max(l.versions.partition, partition, ofItems)
	_, err = l.Exec(ctx, `UPDATE schedule_task_running SET queue_total = ?, epoch_high = ?, plan_version = ?, partition_version = ?,
		membership_version = membership_version + 1 WHERE task_type = ? AND own_sign = ?`,
		l.QueueTotal, l.EpochHigh, l.versions.plan, l.versions.partition, l.TaskType, l.OwnSign)
	if err != nil {
		return false, fmt.Errorf("rebuild the lock row: %w", err)
	}
	return true, nil
}
