package roster

import (
	"context"

	"github.com/dutyrota/rota/internal/sqldb"
)

// versions are the counters in the lock row. A server learns them with its heartbeat. It reads or plans only if one of
// them has changed (S2, S3).
type versions struct {
	partition  int64 // rises when an operator adds or removes queues, or requests another number of them (X6)
	membership int64 // rises when a server or queue comes, goes or changes its state: a plan is due
	planned    int64 // the membership of the last plan
	plan       int64 // rises with each change of an owner or requester
	item       int64 // rises when an operator changes failed items
	planner    int   // the rules by which the planner divides the queues (P11)

	planDue bool       // when the row was read
	skipped bool       // the last plan skipped changes, because other transactions held their rows (L5)
	toMove  sqldb.List // the queues among them that are to move

	reserved bool // queues are reserved, or were at the last plan (P13)
}

// membershipChanged makes the servers plan again (S3).
func (l *LockTx) membershipChanged(ctx context.Context) error {
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET membership_version = membership_version + 1
		WHERE task_type = ? AND own_sign = ?`, l.TaskType, l.OwnSign)
	l.versions.membership++
	return err
}

// planChanged makes the servers read their queues again.
func (l *LockTx) planChanged(ctx context.Context) error {
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET plan_version = plan_version + 1
		WHERE task_type = ? AND own_sign = ?`, l.TaskType, l.OwnSign)
	l.versions.plan++
	return err
}

// queuesChanged writes the list of queues to the lock row, with more queues than before, and makes the servers read
// their queues and plan again. If there are more or fewer, an item may have another queue than before (X6).
func (l *LockTx) queuesChanged(ctx context.Context, more int) error {
	l.QueueTotal += more
	l.versions.plan++
	l.versions.membership++
	if more != 0 {
		l.versions.partition++
	}
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET queue_total = ?, epoch_high = ?, removing = ?, partition_version = ?,
		plan_version = plan_version + 1, membership_version = membership_version + 1 WHERE task_type = ? AND own_sign = ?`,
		l.QueueTotal, l.EpochHigh, l.removing, l.versions.partition, l.TaskType, l.OwnSign)
	return err
}
