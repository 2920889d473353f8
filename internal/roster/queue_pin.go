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
func (o Operator) PinQueue(ctx context.Context, taskType, queueID, labels string) error {
	if _, err := plan.ParseSelector(labels); err != nil {
		return fmt.Errorf("pin queue %q of %s: labels (%s) %w", queueID, taskType, labels, err)
	}
	err := o.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		var pin string
		err := l.QueryRow(ctx, `SELECT pin FROM schedule_queue WHERE task_type = ? AND own_sign = ? AND queue_id = ?`, l.TaskType, l.OwnSign, queueID).Scan(&pin)
		if sqldb.NoRows(err) {
			return errors.New("there is no queue of that name")
		}
		if err != nil || pin == labels {
			return err
		}
		free, err := lockQueueRows(ctx, l, []string{queueID})
		if err != nil {
			return err
		}
		if !free[queueID] {
			return errors.New("a transaction of its owner holds its row: try again")
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
		_, err = l.Exec(ctx, `UPDATE schedule_queue SET pin = ?, gmt_modified = {now} WHERE task_type = ? AND own_sign = ? AND queue_id = ?`, labels, l.TaskType, l.OwnSign, queueID)
		return err
	})
	if err != nil {
		return fmt.Errorf("pin queue %q of %w", queueID, err)
	}
	return nil
}
