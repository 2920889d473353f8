package center

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// Repartition asks for another number of numbered queues. With the number, items change their queue:
// mod(id, total). So nothing changes at once: the servers learn of it with their next heartbeats,
// drain everything, and say so; when all have, one of them changes the number (N1). Asking for the
// number that there is withdraws what was asked for.
func (c *Center) Repartition(ctx context.Context, taskType string, total int, actor string) error {
	if total < 1 || total > maxQueues {
		return fmt.Errorf("repartition %s: queues (%d) must be between 1 and %d", taskType, total, maxQueues)
	}
	err := c.underLock(ctx, taskType, func(ctx context.Context, l *locked) error {
		if _, err := l.namedQueues(ctx); !errors.Is(err, errNumbered) {
			return cmp.Or(err, errNamed)
		}
		var requested any = total
		if total == l.queueTotal {
			requested = nil
		}
		// Each request is a version of its own: what a server drained for another one does not count.
		_, err := l.exec(ctx, `UPDATE schedule_task_running SET requested_total = ?, partition_version = partition_version + 1
			WHERE task_type = ? AND own_sign = ?`, requested, l.taskType, l.ownSign)
		if err != nil {
			return err
		}
		return l.record(ctx, event{kind: EventRepartition, actor: actor, reason: fmt.Sprintf("%d queues, %d wanted", l.queueTotal, total)})
	})
	if err != nil {
		return fmt.Errorf("repartition %w", err)
	}
	return nil
}

// FinishRepartition changes the number of queues if that is asked for and every server has drained
// for it, and tells whether it did. A server that is dead but not expired yet is waited for.
func (c *Center) FinishRepartition(ctx context.Context, taskType, actor string) (done bool, err error) {
	err = c.underLock(ctx, taskType, func(ctx context.Context, l *locked) error {
		done = false
		var busy int
		err := l.queryRow(ctx, `SELECT COUNT(*) FROM schedule_server WHERE task_type = ? AND own_sign = ? AND drained_partition <> ?`,
			l.taskType, l.ownSign, l.partitionVersion).Scan(&busy)
		if err != nil || busy > 0 || l.requestedTotal == 0 {
			return err
		}
		done = true
		return l.repartition(ctx, actor)
	})
	if err != nil {
		return false, fmt.Errorf("repartition %w", err)
	}
	return done, nil
}

// repartition gives every queue a new epoch, so that whatever was selected under the old number is
// void, removes the queues that are too many and inserts those that are missing.
func (l *locked) repartition(ctx context.Context, actor string) error {
	if err := l.raiseEpochHigh(ctx); err != nil {
		return err
	}
	l.epochHigh++ // every queue gets one more
	for _, s := range []string{
		`DELETE FROM schedule_queue WHERE task_type = ? AND own_sign = ? AND queue_index >= ` + fmt.Sprint(l.requestedTotal),
		`UPDATE schedule_queue SET epoch = epoch + 1, req_server = NULL, req_since = NULL, gmt_modified = {now} WHERE task_type = ? AND own_sign = ?`,
	} {
		if _, err := l.exec(ctx, s, l.taskType, l.ownSign); err != nil {
			return err
		}
	}
	if err := l.insertQueueRows(ctx, numberedQueues(l.queueTotal, l.requestedTotal)); err != nil {
		return err
	}
	_, err := l.exec(ctx, `UPDATE schedule_task_running SET queue_total = requested_total, requested_total = NULL, epoch_high = ?,
		partition_version = partition_version + 1, membership_version = membership_version + 1, plan_version = plan_version + 1
		WHERE task_type = ? AND own_sign = ?`, l.epochHigh, l.taskType, l.ownSign)
	if err != nil {
		return err
	}
	return l.record(ctx, event{kind: EventRepartitioned, actor: actor, reason: fmt.Sprintf("%d queues instead of %d", l.requestedTotal, l.queueTotal)})
}

// errNamed: where items are divided by a name, their number means nothing.
var errNamed = errors.New("the queues have names: add or remove one instead")
