package roster

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/sqldb"
)

// AddQueue adds a named queue, which is dealt at once (N2), or keeps one that is being removed. Where
// queues have numbers, Repartition changes how many there are.
func (r *Roster) AddQueue(ctx context.Context, taskType, queueID, parameter, actor string) error {
	if err := ValidName("queue", queueID, 150); err != nil {
		return fmt.Errorf("add a queue to %s: %w", taskType, err)
	}
	err := r.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		queues, err := l.NamedQueues(ctx)
		if err != nil {
			return err
		}
		if there := slices.IndexFunc(queues, func(q NamedQueue) bool { return q.ID == queueID }); there >= 0 {
			return l.keepQueue(ctx, queues[there], actor)
		}
		if len(queues) == MaxQueues {
			return fmt.Errorf("there are %d queues, the most that there may be", MaxQueues)
		}
		return l.addQueue(ctx, QueueRow{queueID, queues[len(queues)-1].index + 1, parameter}, actor)
	})
	if err != nil {
		return fmt.Errorf("add queue %q to %w", queueID, err)
	}
	return nil
}

func (l *LockTx) addQueue(ctx context.Context, q QueueRow, actor string) error {
	l.cancelRemoval(q.ID) // its row may have been deleted by hand meanwhile
	if err := l.insertQueueRows(ctx, []QueueRow{q}, l.pastWindows()); err != nil {
		return err
	}
	if err := l.queuesChanged(ctx, 1); err != nil {
		return err
	}
	return l.Record(ctx, Event{Kind: EventAdded, queue: q.ID, epoch: l.EpochHigh + 1, Actor: actor})
}

// keepQueue withdraws a removal. The owner that has drained for it resumes, or takes the queue back.
func (l *LockTx) keepQueue(ctx context.Context, q NamedQueue, actor string) error {
	if !q.Removing {
		return errors.New("there is a queue of that name")
	}
	l.cancelRemoval(q.ID)
	if err := l.queuesChanged(ctx, 0); err != nil {
		return err
	}
	return l.Record(ctx, Event{Kind: EventAdded, queue: q.ID, epoch: q.epoch, Actor: actor, Reason: "before it was removed"})
}

func (l *LockTx) cancelRemoval(queueID string) {
	l.removing = slices.DeleteFunc(l.removing, func(id string) bool { return id == queueID })
}

// RemoveQueue removes a named queue (N2). Its owner drains it first; whoever has something of it in hand
// finishes that, and then the row goes, or at once when there is no owner. Items of that name are not
// processed any more. The last queue stays: a task type without queues has nothing to do.
func (r *Roster) RemoveQueue(ctx context.Context, taskType, queueID, actor string) error {
	err := r.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
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
		return l.removeQueue(ctx, queues[at], actor)
	})
	if err != nil {
		return fmt.Errorf("remove queue %q of %w", queueID, err)
	}
	return nil
}

func (l *LockTx) removeQueue(ctx context.Context, q NamedQueue, actor string) error {
	l.removing = append(l.removing, q.ID)
	if err := l.queuesChanged(ctx, 0); err != nil {
		return err
	}
	if err := l.Record(ctx, Event{Kind: EventRemoving, queue: q.ID, from: q.owner, epoch: q.epoch, Actor: actor}); err != nil {
		return err
	}
	return l.deleteRemovedQueues(ctx, actor)
}

// FinishRemoval gives up a queue that is being removed and that this server has drained, and deletes it.
// It tells whether it did: not if somebody wants to keep the queue meanwhile. Whatever the reply, the queue
// is never worked again under the old epoch: to keep it, Retake it (H3).
func (r *Roster) FinishRemoval(ctx context.Context, taskType, uuid, queueID string, epoch int64) (done bool, err error) {
	err = r.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		done = false
		if !slices.Contains(l.removing, queueID) {
			return nil
		}
		if free, err := l.lockQueueRows(ctx, []string{queueID}); err != nil || !free[queueID] {
			return err
		}
		n, err := l.Exec(ctx, `UPDATE schedule_queue SET cur_server = NULL, cur_since = NULL, epoch = epoch + 1, gmt_modified = {now}
			WHERE task_type = ? AND own_sign = ? AND queue_id = ? AND cur_server = ? AND epoch = ?`,
			l.TaskType, l.OwnSign, queueID, uuid, epoch)
		if done = n > 0; err != nil || !done {
			return err
		}
		return l.deleteRemovedQueues(ctx, uuid)
	})
	if err != nil {
		return false, fmt.Errorf("remove queue %q of %w", queueID, err)
	}
	return done, nil
}

// deleteRemovedQueues deletes the queues that are to be removed and have no owner, and keeps in mind how high their
// epochs were: one that is added again under the same name starts above (H6).
func (l *LockTx) deleteRemovedQueues(ctx context.Context, actor string) error {
	var gone []Event
	for _, id := range l.removing {
		e := Event{Kind: EventRemoved, queue: id, Actor: actor}
		err := l.QueryRow(ctx, `SELECT epoch FROM schedule_queue WHERE task_type = ? AND own_sign = ? AND queue_id = ? AND cur_server IS NULL`,
			l.TaskType, l.OwnSign, id).Scan(&e.epoch)
		if sqldb.NoRows(err) {
			continue // its owner drains it
		}
		if err != nil {
			return err
		}
		_, err = l.Exec(ctx, `DELETE FROM schedule_queue WHERE task_type = ? AND own_sign = ? AND queue_id = ?`, l.TaskType, l.OwnSign, id)
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
	for _, e := range gone {
		if err := l.QueuesRemoved(ctx, l, "CANCELLED", "the queue was removed", []string{e.queue}); err != nil {
			return err
		}
	}
	return l.Record(ctx, gone...)
}

// queuesChanged makes everybody read its queues and plan anew.
func (l *LockTx) queuesChanged(ctx context.Context, more int) error {
	l.QueueTotal += more
	l.planVersion++
	l.membershipVersion++
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET queue_total = ?, epoch_high = ?, removing = ?, plan_version = plan_version + 1,
		membership_version = membership_version + 1 WHERE task_type = ? AND own_sign = ?`, l.QueueTotal, l.EpochHigh, l.removing, l.TaskType, l.OwnSign)
	return err
}

// namedQueue is a queue as adding and removing see it.
type NamedQueue struct {
	ID       string
	index    int
	owner    string
	epoch    int64
	Removing bool
}

var ErrNumbered = errors.New("the queues have numbers: change how many there are instead")

// namedQueues returns the queues in the order of their index, or errNumbered.
func (l *LockTx) NamedQueues(ctx context.Context) (queues []NamedQueue, err error) {
	numbered := true
	err = l.Each(ctx, func(rows *sql.Rows) error {
		var q NamedQueue
		err := rows.Scan(&q.ID, &q.index, (*sqldb.Text)(&q.owner), &q.epoch)
		q.Removing = slices.Contains(l.removing, q.ID)
		numbered = numbered && q.ID == fmt.Sprint(len(queues))
		queues = append(queues, q)
		return err
	}, `SELECT queue_id, queue_index, cur_server, epoch FROM schedule_queue
		WHERE task_type = ? AND own_sign = ? ORDER BY queue_index, queue_id`, l.TaskType, l.OwnSign)
	if err == nil && numbered {
		err = ErrNumbered
	}
	return queues, err
}
