package center

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Items lists, retries and drops the items that failed. Executors record failures through it.
type Items struct{ c *Center }

// Items returns the bundle of failed items.
func (c *Center) Items() *Items { return &Items{c} }

// The states of a failed item.
const (
	ItemRetry = "RETRY" // executed again after its pause
	ItemDead  = "DEAD"  // failed too often: not executed until an operator retries it
)

// ItemRecord is a row of schedule_failed_item.
type ItemRecord struct {
	TaskType      string     `json:"task_type"`
	OwnSign       string     `json:"own_sign"`
	ItemKey       string     `json:"item_key"`
	QueueID       string     `json:"queue_id"`
	State         string     `json:"state"` // RETRY or DEAD
	Attempts      int64      `json:"attempts"`
	LastError     string     `json:"last_error"`
	FirstFailedAt time.Time  `json:"first_failed_at"`
	NextAttemptAt *time.Time `json:"next_attempt_at"`
}

// ItemFilter selects failed items. Empty fields select all.
type ItemFilter struct {
	TaskType string
	QueueID  string
	State    string
}

// List lists the latest failed items of this own_sign that the filter selects, at most limit, the latest last.
func (it *Items) List(ctx context.Context, f ItemFilter, limit int) ([]ItemRecord, error) {
	w := sqldb.Where{Args: []any{it.c.ownSign}}
	w.Equal("task_type", f.TaskType)
	w.Equal("queue_id", f.QueueID)
	w.Equal("state", f.State)
	list, err := sqldb.Records[ItemRecord](ctx, it.c.db, latest(`schedule_failed_item WHERE own_sign = ?`+w.Text, "first_failed_at", "item_key", limit), w.Args...)
	if err != nil {
		return nil, fmt.Errorf("list the failed items: %w", err)
	}
	return list, nil
}

// Retry makes failed items due at once and resets their attempts; dead items are executed again. It returns the number of
// items. Workers read the items again after their next heartbeat. Without keys, Retry retries all items of the task type.
func (it *Items) Retry(ctx context.Context, taskType, actor string, keys ...string) (n int, err error) {
	n, err = it.changeItems(ctx, taskType, actor, "retried", keys, `UPDATE schedule_failed_item
		SET state = '`+ItemRetry+`', attempts = 0, next_attempt_at = {now}`)
	if err != nil {
		return 0, fmt.Errorf("retry items of %w", err)
	}
	return n, nil
}

// Drop deletes the records of failed items that were repaired or removed by hand, and returns their number. An item that
// is selected again starts with zero attempts. Without keys, Drop drops all items of the task type.
func (it *Items) Drop(ctx context.Context, taskType, actor string, keys ...string) (n int, err error) {
	n, err = it.changeItems(ctx, taskType, actor, "dropped", keys, `DELETE FROM schedule_failed_item`)
	if err != nil {
		return 0, fmt.Errorf("drop items of %w", err)
	}
	return n, nil
}

// changeItems runs a statement over the rows of items, and makes the workers read them again.
func (it *Items) changeItems(ctx context.Context, taskType, actor, what string, keys []string, statement string) (n int, err error) {
	parts := [][]string{nil}
	if len(keys) > 0 {
		parts = slices.Collect(slices.Chunk(keys, roster.InsertRows))
	}
	err = it.c.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) error {
		n = 0
		for _, part := range parts {
			query, args := statement+` WHERE task_type = ? AND own_sign = ?`, []any{l.TaskType, l.OwnSign}
			if part != nil {
				query, args = query+` AND item_key IN (`+sqldb.Marks(len(part))+`)`, append(args, sqldb.Args(part)...)
			}
			m, err := l.Exec(ctx, query, args...)
			if err != nil {
				return err
			}
			n += m
		}
		if n == 0 {
			return nil
		}
		if err := itemsChanged(ctx, l); err != nil {
			return err
		}
		return l.Record(ctx, roster.Event{Kind: EventItems, Actor: actor, Reason: fmt.Sprintf("failed items %s: %d", what, n)})
	})
	return n, err
}

// itemsChanged raises the version that makes workers read the failed items again.
func itemsChanged(ctx context.Context, l *roster.LockTx) error {
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET item_version = item_version + 1 WHERE task_type = ? AND own_sign = ?`, l.TaskType, l.OwnSign)
	return err
}
