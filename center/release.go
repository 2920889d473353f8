package center

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Handover is a queue that its owner has drained for a requester.
type Handover struct {
	QueueID string
	Epoch   int64  // under which it was drained
	To      string // the requester it was drained for
}

// Release hands the queues over, in one transaction under the lock row (H2). A queue goes over
// only if this server still owns it under that epoch and the requester is still the same and
// eligible, and no transaction holds its row; the others stay as they are, and the caller reads its
// rows again. Whatever the reply,
// a queue that was sent here is never worked again under the old epoch: to keep it, Retake it (H3).
func (c *Center) Release(ctx context.Context, taskType, uuid string, queues []Handover) (released []string, err error) {
	slices.SortFunc(queues, func(a, b Handover) int { return cmp.Compare(a.QueueID, b.QueueID) })
	err = c.underLock(ctx, taskType, func(ctx context.Context, l *locked) error {
		released = nil
		var events []event
		free, err := l.lockQueues(ctx, handoverIDs(queues))
		if err != nil {
			return err
		}
		for _, q := range queues {
			if !free[q.QueueID] {
				continue // a stalled transaction holds it: nobody else shall wait for that
			}
			went, err := l.release(ctx, uuid, q)
			if err != nil {
				return fmt.Errorf("queue %s: %w", q.QueueID, err)
			}
			if went {
				released = append(released, q.QueueID)
				events = append(events, event{kind: EventReleased, queue: q.QueueID, from: uuid, to: q.To, epoch: q.Epoch + 1, actor: uuid})
			}
		}
		if len(released) == 0 {
			return nil
		}
		if err := l.planChanged(ctx); err != nil {
			return err
		}
		return l.record(ctx, events...)
	})
	if err != nil {
		return nil, fmt.Errorf("release %w", err)
	}
	return released, nil
}

func handoverIDs(queues []Handover) []string {
	list := make([]string, len(queues))
	for i, q := range queues {
		list[i] = q.QueueID
	}
	return list
}

// release reads the requester's state apart from the update: in MySQL a subquery would lock its
// row and hold up its heartbeat. The lock row keeps others from removing the requester meanwhile.
func (l *locked) release(ctx context.Context, uuid string, q Handover) (bool, error) {
	var state string
	err := l.queryRow(ctx, `SELECT state FROM schedule_server WHERE uuid = ?`, q.To).Scan(&state)
	if noRows(err) || err == nil && state != StateServing && state != StateStandby {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	n, err := l.exec(ctx, `UPDATE schedule_queue SET cur_server = req_server, req_server = NULL, req_since = NULL,
		cur_since = {now}, gmt_modified = {now}, epoch = epoch + 1
		WHERE task_type = ? AND own_sign = ? AND queue_id = ? AND cur_server = ? AND epoch = ? AND req_server = ?`,
		l.taskType, l.ownSign, q.QueueID, uuid, q.Epoch, q.To)
	return n > 0, err
}

// Retake keeps a queue that this server had been about to release: under a new epoch, so that a
// release that is perhaps still under way finds nothing (H3). It tells whether the queue was
// still there to keep, and its row free.
func (c *Center) Retake(ctx context.Context, taskType, uuid, queueID string, epoch int64) (kept bool, err error) {
	err = c.underLock(ctx, taskType, func(ctx context.Context, l *locked) error {
		kept = false
		if free, err := l.lockQueues(ctx, []string{queueID}); err != nil || !free[queueID] {
			return err
		}
		n, err := l.exec(ctx, `UPDATE schedule_queue SET epoch = epoch + 1, cur_since = {now}, gmt_modified = {now}
			WHERE task_type = ? AND own_sign = ? AND queue_id = ? AND cur_server = ? AND epoch = ?`,
			l.taskType, l.ownSign, queueID, uuid, epoch)
		kept = n > 0
		if err != nil || !kept {
			return err
		}
		if err := l.planChanged(ctx); err != nil {
			return err
		}
		return l.record(ctx, event{kind: EventRetaken, queue: queueID, from: uuid, to: uuid, epoch: epoch + 1, actor: uuid})
	})
	if err != nil {
		return false, fmt.Errorf("retake queue %s of %w", queueID, err)
	}
	return kept, nil
}
