package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Items lists, retries and drops the items that failed.
type Items struct{ c *Client }

// Items returns the bundle of failed items.
func (c *Client) Items() *Items { return &Items{c} }

// The states of a failed item.
const (
	ItemRetry   = failures.Retry   // executed again after its pause
	ItemStarted = failures.Started // its owner executes it alone, because owners of its queue have crashed (S14)
	ItemDead    = failures.Dead    // failed too often: not executed until an operator retries it
)

// ItemRecord is a row of schedule_failed_item.
type ItemRecord struct {
	TaskType      string     `json:"task_type"`
	OwnSign       string     `json:"own_sign"`
	ItemKey       string     `json:"item_key"`
	QueueID       string     `json:"queue_id"`
	State         string     `json:"state"` // RETRY, STARTED or DEAD
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
	Key      string // the whole key of one item
}

// List lists the latest failed items of this own_sign that the filter selects, at most limit, the latest last.
func (it *Items) List(ctx context.Context, f ItemFilter, limit int) ([]ItemRecord, error) {
	w := sqldb.Where{Args: []any{it.c.ownSign}}
	w.Equal("task_type", f.TaskType)
	w.Equal("queue_id", f.QueueID)
	w.Equal("state", f.State)
	if f.Key != "" {
		w.Equal("item_hash", failures.Hash(f.Key))
	}
	list, err := sqldb.Records[ItemRecord](ctx, it.c.db, latest(`schedule_failed_item WHERE own_sign = ?`+w.Text, "first_failed_at", "item_key", limit), w.Args...)
	if err != nil {
		return nil, fmt.Errorf("list the failed items: %w", err)
	}
	return list, nil
}

// Retry makes failed items due at once and resets their attempts; dead items are executed again. It returns the number
// of items. Workers read the items again after their next heartbeat. Retry changes at most 1,000 items in each
// transaction. If it fails between two of them, it returns the number of items so far. Page has the keys of all items.
func (it *Items) Retry(ctx context.Context, taskType, actor string, keys ...string) (n int, err error) {
	n, err = it.change(ctx, taskType, keys, itemChange{actor: actor, what: "retried", statement: `UPDATE schedule_failed_item
		SET state = '` + ItemRetry + `', attempts = 0, next_attempt_at = {now}`})
	if err != nil {
		return n, fmt.Errorf("retry items of %w", err)
	}
	return n, nil
}

// Drop deletes the records of failed items that were repaired or removed by hand, and returns their number. An item
// that is selected again starts with zero attempts. Drop works in several transactions, as Retry does.
func (it *Items) Drop(ctx context.Context, taskType, actor string, keys ...string) (n int, err error) {
	n, err = it.change(ctx, taskType, keys, itemChange{actor: actor, what: "dropped", statement: deleteItems})
	if err != nil {
		return n, fmt.Errorf("drop items of %w", err)
	}
	return n, nil
}
