package center

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// FailedItem is an item that has failed. Its row stays until the item succeeds or an operator drops it.
type FailedItem struct {
	Key       string // as the dealer returns it; at most 255 bytes
	QueueID   string
	State     string // RETRY, STARTED or DEAD
	Attempts  int
	LastError string
	RetryIn   time.Duration // the time until it may be executed again; negative if it may be executed now

	FirstFailed time.Time // by the database's clock; set when it is read
}

// maxItemKey is the length in bytes that every database can index.
const maxItemKey = 255

// Load returns the failed items of a queue, the latest first. An empty queueID means all queues of the task type; limit 0
// means no limit.
func (it *Items) Load(ctx context.Context, taskType, queueID string, limit int) (items []FailedItem, err error) {
	query := `SELECT item_key, queue_id, state, attempts, last_error, first_failed_at, next_attempt_at, {now}
		FROM schedule_failed_item WHERE task_type = ? AND own_sign = ?`
	args := []any{taskType, it.c.ownSign}
	if queueID != "" {
		query, args = query+` AND queue_id = ?`, append(args, queueID)
	}
	query += ` ORDER BY first_failed_at DESC, item_key`
	if limit > 0 {
		query += fmt.Sprintf(` LIMIT %d`, limit)
	}
	err = it.c.db.Each(ctx, func(rows *sql.Rows) error {
		var i FailedItem
		var next, now time.Time
		err := rows.Scan(&i.Key, &i.QueueID, &i.State, &i.Attempts, &i.LastError, (*sqldb.Instant)(&i.FirstFailed), (*sqldb.Instant)(&next), (*sqldb.Instant)(&now))
		if !next.IsZero() {
			i.RetryIn = next.Sub(now)
		}
		items = append(items, i)
		return err
	}, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read the failed items of %s$%s: %w", taskType, it.c.ownSign, err)
	}
	return items, nil
}

// Save records items that have failed, or failed again.
func (it *Items) Save(ctx context.Context, taskType string, items []FailedItem) error {
	for _, i := range items {
		if i.Key == "" || len(i.Key) > maxItemKey {
			return fmt.Errorf("item %.40q...: a key must have 1 to %d bytes, not %d", i.Key, maxItemKey, len(i.Key))
		}
	}
	for part := range slices.Chunk(items, roster.InsertRows) {
		args := make([]any, 0, 8*len(part))
		for _, i := range part {
			args = append(args, taskType, it.c.ownSign, i.Key, i.QueueID, i.State, i.Attempts, sqldb.Clean(i.LastError), -i.RetryIn.Milliseconds())
		}
		values := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, {ago ?}, {now}), ", len(part)), ", ")
		err := it.write(ctx, `INSERT INTO schedule_failed_item
			(task_type, own_sign, item_key, queue_id, state, attempts, last_error, next_attempt_at, first_failed_at)
			VALUES `+values+it.c.db.UpsertItem, args...)
		if err != nil {
			return fmt.Errorf("record the failed items of %s$%s: %w", taskType, it.c.ownSign, err)
		}
	}
	return nil
}

// Forget deletes the rows of items that have succeeded.
func (it *Items) Forget(ctx context.Context, taskType string, keys []string) error {
	for part := range slices.Chunk(keys, roster.InsertRows) {
		args := append([]any{taskType, it.c.ownSign}, sqldb.Args(part)...)
		err := it.write(ctx, `DELETE FROM schedule_failed_item WHERE task_type = ? AND own_sign = ? AND item_key IN (`+sqldb.Marks(len(part))+`)`, args...)
		if err != nil {
			return fmt.Errorf("delete failed items of %s$%s: %w", taskType, it.c.ownSign, err)
		}
	}
	return nil
}

// write runs one idempotent statement on the dealers' pool: all executors write failures at the same time, and would
// exhaust the few connections of the roster.
func (it *Items) write(ctx context.Context, query string, args ...any) error {
	return it.c.db.Retry(ctx, func() (bool, error) {
		_, err := it.c.db.Dealers.ExecContext(ctx, it.c.db.SQL(query), args...)
		return true, err
	})
}
