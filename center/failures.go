package center

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// FailedItem is an item that has failed. Its row stays until the item succeeds, an operator drops it, or Clean deletes
// it.
type FailedItem struct {
	Key       string // as the dealer returns it, of any length
	QueueID   string // the queue that had the item when it last failed
	Partition int64  // partition_version of the roster when that queue was granted
	State     string // RETRY, STARTED or DEAD
	Attempts  int
	LastError string
	RetryIn   time.Duration // the time until it may be executed again; negative if it may be executed now

	FirstFailed time.Time // by the database's clock; set when it is read
}

// hashOf returns the hash by which the database finds an item. A key may have any length, and an index of MySQL has a
// limit.
func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

func hashesOf(keys []string) []any {
	hashes := make([]any, len(keys))
	for i, key := range keys {
		hashes[i] = hashOf(key)
	}
	return hashes
}

// KeyDigest stands for the key of a dead item: the first 16 bytes of its SHA-256.
type KeyDigest = [16]byte

// LoadedItems are the failed items of a queue that Load returns.
type LoadedItems struct {
	Items []FailedItem // in state RETRY or STARTED
	Dead  []KeyDigest  // of the items in state DEAD, in any order

	// More reports whether an item of the queue may have a record that is in neither: the queue has more records, or the
	// task type has records from before its queues last changed (X6). Find finds these.
	More bool
}

// Load returns failed items of a queue: at most most that are not dead, of which all that are STARTED come first, and
// the keys of at most mostDead that are dead.
func (it *Items) Load(ctx context.Context, taskType, queueID string, most, mostDead int) (LoadedItems, error) {
	var l LoadedItems
	partition, moved, err := it.partition(ctx, taskType)
	if err == nil { // RETRY and STARTED sort behind DEAD, so that the index yields them in this order
		l.Items, err = it.read(ctx, fmt.Sprintf(` AND partition_version = ? AND queue_id = ? AND state > ? ORDER BY state DESC LIMIT %d`, most+1),
			taskType, partition, queueID, ItemDead)
	}
	if err == nil {
		l.Dead, err = it.readDead(ctx, taskType, partition, queueID, mostDead+1)
	}
	if err != nil {
		return LoadedItems{}, fmt.Errorf("read the failed items of queue %s of %s$%s: %w", queueID, taskType, it.c.ownSign, err)
	}
	l.More = moved || len(l.Items) > most || len(l.Dead) > mostDead
	l.Items, l.Dead = l.Items[:min(most, len(l.Items))], l.Dead[:min(mostDead, len(l.Dead))]
	return l, nil
}

// readDead reads the digests of at most limit dead items of a queue. They have no order: a sort of a million takes longer
// than reading them.
func (it *Items) readDead(ctx context.Context, taskType string, partition int64, queueID string, limit int) (digests []KeyDigest, err error) {
	var hash sql.RawBytes
	err = it.c.db.Each(ctx, func(rows *sql.Rows) error {
		if err := rows.Scan(&hash); err != nil {
			return err
		}
		var d KeyDigest
		if len(hash) < hex.EncodedLen(len(d)) {
			return fmt.Errorf("item_hash %q is no SHA-256", hash)
		}
		_, err := hex.Decode(d[:], hash[:hex.EncodedLen(len(d))])
		digests = append(digests, d)
		return err
	}, fmt.Sprintf(`SELECT item_hash FROM schedule_failed_item
		WHERE task_type = ? AND own_sign = ? AND partition_version = ? AND queue_id = ? AND state = ? LIMIT %d`, limit),
		taskType, it.c.ownSign, partition, queueID, ItemDead)
	return digests, err
}

// partition returns the partition_version of the roster, and whether there are failed items of an earlier one: their
// queue may be another one now.
func (it *Items) partition(ctx context.Context, taskType string) (version int64, moved bool, err error) {
	err = it.c.db.QueryRow(ctx, `SELECT r.partition_version, CASE WHEN EXISTS (SELECT 1 FROM schedule_failed_item f
		WHERE f.task_type = r.task_type AND f.own_sign = r.own_sign AND f.partition_version < r.partition_version) THEN 1 ELSE 0 END
		FROM schedule_task_running r WHERE r.task_type = ? AND r.own_sign = ?`, taskType, it.c.ownSign).Scan(&version, &moved)
	if sqldb.NoRows(err) {
		return 0, false, ErrUnknownTask
	}
	return version, moved, err
}

// Find returns the failed items with these keys, whatever their queue is.
func (it *Items) Find(ctx context.Context, taskType string, keys []string) (items []FailedItem, err error) {
	for part := range slices.Chunk(keys, roster.InsertRows) {
		found, err := it.read(ctx, ` AND item_hash IN (`+sqldb.Marks(len(part))+`) ORDER BY item_hash`, taskType, hashesOf(part)...)
		if err != nil {
			return nil, fmt.Errorf("find failed items of %s$%s: %w", taskType, it.c.ownSign, err)
		}
		items = append(items, found...)
	}
	return items, nil
}

// read reads the items of a task type under a condition.
func (it *Items) read(ctx context.Context, condition, taskType string, args ...any) (items []FailedItem, err error) {
	err = it.c.db.Each(ctx, func(rows *sql.Rows) error {
		var i FailedItem
		var next, now time.Time
		err := rows.Scan(&i.Key, &i.QueueID, &i.Partition, &i.State, &i.Attempts, &i.LastError,
			(*sqldb.Instant)(&i.FirstFailed), (*sqldb.Instant)(&next), (*sqldb.Instant)(&now))
		if !next.IsZero() {
			i.RetryIn = next.Sub(now)
		}
		items = append(items, i)
		return err
	}, `SELECT item_key, queue_id, partition_version, state, attempts, last_error, first_failed_at, next_attempt_at, {now}
		FROM schedule_failed_item WHERE task_type = ? AND own_sign = ?`+condition, append([]any{taskType, it.c.ownSign}, args...)...)
	return items, err
}

// Save records items that have failed, or failed again.
func (it *Items) Save(ctx context.Context, taskType string, items []FailedItem) error {
	if slices.ContainsFunc(items, func(i FailedItem) bool { return i.Key == "" }) {
		return fmt.Errorf("record the failed items of %s$%s: the key of an item is empty", taskType, it.c.ownSign)
	}
	for part := range slices.Chunk(items, roster.InsertRows) {
		args := make([]any, 0, 10*len(part))
		for _, i := range part {
			args = append(args, taskType, it.c.ownSign, hashOf(i.Key), i.Key, i.QueueID, i.Partition, i.State, i.Attempts,
				sqldb.Clean(i.LastError), -i.RetryIn.Milliseconds())
		}
		values := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, ?, ?, {ago ?}, {now}), ", len(part)), ", ")
		err := it.write(ctx, `INSERT INTO schedule_failed_item
			(task_type, own_sign, item_hash, item_key, queue_id, partition_version, state, attempts, last_error, next_attempt_at, first_failed_at)
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
		args := append([]any{taskType, it.c.ownSign}, hashesOf(part)...)
		err := it.write(ctx, `DELETE FROM schedule_failed_item WHERE task_type = ? AND own_sign = ? AND item_hash IN (`+sqldb.Marks(len(part))+`)`, args...)
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
