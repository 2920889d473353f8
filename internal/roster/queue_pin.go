package roster

import (
	"context"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// PinQueue says which labels a server must have to own the queue (P14): a list such as "zone=b" or "host=web1|web2". The empty
// list says that any server may. The servers plan with their next heartbeats. A live owner that lacks a label hands the queue
// over when another server may have it, and keeps it until then (P7).
//
// The pin is not in the row of the queue. PostgreSQL lets each new batch share the lock on that row while a writer waits for
// it, so that a pin in the row would wait for as long as the owner's batches overlap.
func (o Operator) PinQueue(ctx context.Context, taskType, queueID, labels string) error {
	if _, err := plan.ParseSelector(labels); err != nil {
		return fmt.Errorf("pin queue %q of %s: labels (%s) %w", queueID, taskType, labels, err)
	}
	err := o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		pin, err := readPin(ctx, l, queueID)
		if err != nil || pin == labels {
			return err
		}
		if err := l.membershipChanged(ctx); err != nil {
			return err
		}
		reason := "any server may own it"
		if labels != "" {
			reason = "to " + labels
		}
		if err := l.Record(ctx, Event{Kind: EventPinned, queue: queueID, Actor: o.actor, Reason: reason}); err != nil {
			return err
		}
		return writePin(ctx, l, queueID, labels)
	})
	if err != nil {
		return fmt.Errorf("pin queue %q of %w", queueID, err)
	}
	return nil
}

// readPin returns the pin of a queue.
func readPin(ctx context.Context, l *LockTx, queueID string) (pin string, err error) {
	err = l.QueryRow(ctx, `SELECT COALESCE(labels, '') FROM schedule_queue LEFT JOIN schedule_pin USING (task_type, own_sign, queue_id)
		WHERE task_type = ? AND own_sign = ? AND queue_id = ?`, l.TaskType, l.OwnSign, queueID).Scan(&pin)
	if sqldb.NoRows(err) {
		err = errors.New("there is no queue of that name")
	}
	return pin, err
}

// writePin replaces the pin of a queue. A queue without one has no row.
func writePin(ctx context.Context, l *LockTx, queueID, labels string) error {
	_, err := l.Exec(ctx, `DELETE FROM schedule_pin WHERE task_type = ? AND own_sign = ? AND queue_id = ?`, l.TaskType, l.OwnSign, queueID)
	if err != nil || labels == "" {
		return err
	}
	_, err = l.Exec(ctx, `INSERT INTO schedule_pin (task_type, own_sign, queue_id, labels) VALUES (?, ?, ?, ?)`, l.TaskType, l.OwnSign, queueID, labels)
	return err
}

// clonePins gives the queues of a new roster the pins of BASE, whose queues they are copies of. It deletes those of queues
// that were deleted by hand.
func clonePins(ctx context.Context, l *LockTx) error {
	_, err := l.Exec(ctx, `DELETE FROM schedule_pin WHERE task_type = ? AND own_sign = ?`, l.TaskType, l.OwnSign)
	if err != nil || l.OwnSign == DefaultOwnSign {
		return err
	}
	_, err = l.Exec(ctx, `INSERT INTO schedule_pin (task_type, own_sign, queue_id, labels)
		SELECT task_type, ?, queue_id, labels FROM schedule_pin WHERE task_type = ? AND own_sign = ?`, l.OwnSign, l.TaskType, DefaultOwnSign)
	if err != nil {
		return fmt.Errorf("copy the pins of %s: %w", DefaultOwnSign, err)
	}
	return deleteLostPins(ctx, l)
}

// deleteLostPins deletes the pins of queues that do not exist any more. A new queue of the same name does not inherit them.
func deleteLostPins(ctx context.Context, l *LockTx) error {
	_, err := l.Exec(ctx, `DELETE FROM schedule_pin WHERE task_type = ? AND own_sign = ? AND NOT EXISTS (SELECT 1 FROM schedule_queue q
		WHERE q.task_type = schedule_pin.task_type AND q.own_sign = schedule_pin.own_sign AND q.queue_id = schedule_pin.queue_id)`, l.TaskType, l.OwnSign)
	return err
}
