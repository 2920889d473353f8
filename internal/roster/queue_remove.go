package roster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/sqldb"
)

// RemoveQueue removes a named queue (N2). Its owner first drains it; then the row is deleted. Without an owner it is
// deleted at once. Items of that name are not processed any more. The last queue cannot be removed: a task type
// without queues has nothing to do.
func (o Operator) RemoveQueue(ctx context.Context, taskType, queueID string) error {
	err := o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		queues, err := l.NamedQueues(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(queues, func(q NamedQueue) bool { return q.ID == queueID })
		staying := slices.ContainsFunc(queues, func(q NamedQueue) bool { return !q.Removing && q.ID != queueID })
		switch {
		case at < 0:
			return errors.New("there is no queue of that name")
		case queues[at].Removing:
			return nil
		case !staying:
			return errors.New("it is the last one")
		}
		return removeQueue(ctx, l, queues[at], o.actor)
	})
	if err != nil {
		return fmt.Errorf("remove queue %q of %w", queueID, err)
	}
	return nil
}

// removeQueue adds the id to the list of queues to be removed.
func removeQueue(ctx context.Context, l *LockTx, q NamedQueue, actor string) error {
	l.removing = append(l.removing, q.ID)
	if err := l.queuesChanged(ctx, 0); err != nil {
		return err
	}
	if err := l.Record(ctx, Event{Kind: EventRemoving, queue: q.ID, from: q.Owner, epoch: q.Epoch, Actor: actor}); err != nil {
		return err
	}
	return deleteRemovedQueues(ctx, l, actor)
}

// FinishRemoval gives up a queue that is being removed and that this server has drained, and deletes its row. It
// reports whether it did: it does not if the removal was withdrawn. Whatever the reply, the server must not work the
// queue again under the old epoch: to keep it, it calls Retake (H3).
func (s Server) FinishRemoval(ctx context.Context, queueID string, epoch int64) (done bool, err error) {
	err = s.roster.UnderLock(ctx, s.taskType, func(ctx context.Context, l *LockTx) error {
		done = false
		if !slices.Contains(l.removing, queueID) {
			return nil
		}
		if free, err := lockQueueRows(ctx, l, []string{queueID}); err != nil || !free[queueID] {
			return err
		}
		n, err := l.Exec(ctx, `UPDATE schedule_queue SET cur_server = NULL, cur_since = NULL, epoch = epoch + 1, gmt_modified = {now}
			WHERE task_type = ? AND own_sign = ? AND queue_id = ? AND cur_server = ? AND epoch = ?`,
			l.TaskType, l.OwnSign, queueID, s.uuid, epoch)
		if done = n > 0; err != nil || !done {
			return err
		}
		return deleteRemovedQueues(ctx, l, s.uuid)
	})
	if err != nil {
		return false, fmt.Errorf("remove queue %q of %w", queueID, err)
	}
	return done, nil
}

// deleteRemovedQueues deletes the queues that are to be removed and have no owner. It records how high their epochs
// were: a queue that is added again under the same name starts above them (H6).
func deleteRemovedQueues(ctx context.Context, l *LockTx, actor string) error {
	var gone []Event
	for _, id := range l.removing {
		e := Event{Kind: EventRemoved, queue: id, Actor: actor}
		err := l.QueryRow(ctx, `SELECT epoch FROM schedule_queue WHERE task_type = ? AND own_sign = ? AND queue_id = ? AND cur_server IS NULL`,
			l.TaskType, l.OwnSign, id).Scan(&e.epoch)
		if sqldb.NoRows(err) {
			continue // its owner still drains it
		}
		if err != nil {
			return err
		}
		_, err = l.Exec(ctx, `DELETE FROM schedule_queue WHERE task_type = ? AND own_sign = ? AND queue_id = ?`, l.TaskType, l.OwnSign, id)
		if err != nil {
			return err
		}
		_, err = l.Exec(ctx, `DELETE FROM schedule_backlog WHERE task_type = ? AND own_sign = ? AND queue_id = ?`, l.TaskType, l.OwnSign, id)
		if err != nil {
			return err
		}
		gone = append(gone, e)
		l.EpochHigh = max(l.EpochHigh, e.epoch)
	}
	if len(gone) == 0 {
		return nil
	}
	l.removing = slices.DeleteFunc(l.removing, func(id string) bool {
		return slices.ContainsFunc(gone, func(e Event) bool { return e.queue == id })
	})
	if err := l.queuesChanged(ctx, -len(gone)); err != nil {
		return err
	}
	if err := deleteLostPins(ctx, l); err != nil {
		return err
	}
	for _, e := range gone {
		if err := l.queuesRemoved(ctx, l, "CANCELLED", "the queue was removed", []string{e.queue}); err != nil {
			return err
		}
	}
	return l.Record(ctx, gone...)
}
