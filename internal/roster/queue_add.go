package roster

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// AddQueue adds a named queue, which the next plan assigns (N2), or withdraws its removal. Where queues have numbers,
// Repartition changes how many there are.
func (o Operator) AddQueue(ctx context.Context, taskType, queueID, parameter string) error {
	if err := ValidName("queue", queueID, 150); err != nil {
		return fmt.Errorf("add a queue to %s: %w", taskType, err)
	}
	err := o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		queues, err := l.NamedQueues(ctx)
		if err != nil {
			return err
		}
		if there := slices.IndexFunc(queues, func(q NamedQueue) bool { return q.ID == queueID }); there >= 0 {
			return keepQueue(ctx, l, queues[there], o.actor)
		}
		if len(queues) == MaxQueues {
			return fmt.Errorf("there are %d queues already, which is the maximum", MaxQueues)
		}
		return addQueue(ctx, l, QueueRow{ID: queueID, Index: queues[len(queues)-1].Index + 1, parameter: parameter}, o.actor)
	})
	if err != nil {
		return fmt.Errorf("add queue %q to %w", queueID, err)
	}
	return nil
}

// addQueue inserts the row of a queue.
func addQueue(ctx context.Context, l *LockTx, q QueueRow, actor string) error {
	cancelRemoval(l, q.ID) // the id is still listed, and has its pin, if the row was deleted by hand
	if err := deleteLostPins(ctx, l); err != nil {
		return err
	}
	if err := insertQueueRows(ctx, l, []QueueRow{q}, pastWindows(l)); err != nil {
		return err
	}
	if err := l.queuesChanged(ctx, 1); err != nil {
		return err
	}
	return l.Record(ctx, Event{Kind: EventAdded, queue: q.ID, epoch: l.EpochHigh + 1, Actor: actor})
}

// keepQueue withdraws the removal of a queue. An owner that has drained for the removal resumes, or retakes the
// queue.
func keepQueue(ctx context.Context, l *LockTx, q NamedQueue, actor string) error {
	if !q.Removing {
		return errors.New("there is a queue of that name")
	}
	cancelRemoval(l, q.ID)
	if err := l.queuesChanged(ctx, 0); err != nil {
		return err
	}
	return l.Record(ctx, Event{Kind: EventAdded, queue: q.ID, epoch: q.Epoch, Actor: actor, Reason: "the removal was withdrawn"})
}

// cancelRemoval takes the id off the list of queues to be removed.
func cancelRemoval(l *LockTx, queueID string) {
	l.removing = slices.DeleteFunc(l.removing, func(id string) bool { return id == queueID })
}
