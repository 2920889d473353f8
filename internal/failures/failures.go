// Package failures stores the items that have failed: the workers of a task type write them, and read them again
// after a restart or a hand-over. What operators do to them is in packages ops and verbs.
package failures

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// The states of a failed item.
const (
	Retry = "RETRY" // executed again after its pause
	// Started is the state of an item that its owner executes alone, because owners of its queue have crashed (S14).
	Started = "STARTED"
	Dead    = "DEAD" // failed too often: not executed until an operator retries it
)

// Log has the failed items of the task types of one environment. All its methods may be called concurrently.
type Log struct {
	db      *sqldb.DB
	ownSign string
}

// Of returns the log of a roster.
func Of(r *roster.Roster) Log { return Log{r.DB, r.OwnSign} }

// Item is an item that has failed. Its row stays until the item succeeds, an operator drops it, or Clean deletes
// it.
type Item struct {
	Key       string // as the dealer returns it, of any length
	OrderKey  string // of an Ordered dealer, for people: the source keeps the order
	QueueID   string // the queue that had the item when it last failed
	Partition int64  // partition_version of the roster when that queue was granted
	State     string // RETRY, STARTED or DEAD
	Attempts  int
	LastError string
	RetryIn   time.Duration `db:"-"` // the time until it may be executed again; negative if it may be executed now

	FirstFailed time.Time // by the database's clock; set when it is read
}

// Hash returns the hash by which the database finds an item. A key may have any length, and an index of MySQL has a
// limit.
func Hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Hashes returns the hashes of the keys, as arguments of a statement.
func Hashes(keys []string) []any {
	hashes := make([]any, len(keys))
	for i, key := range keys {
		hashes[i] = Hash(key)
	}
	return hashes
}

// Any reports whether an item of a queue may have a record: the queue has records, or the task type has some from
// before its queues last changed (X6). Few queues have, and a process that starts asks for all of its queues.
func (l Log) Any(ctx context.Context, taskType, queueID string) (bool, error) {
	const ofTask = ` FROM schedule_failed_item f WHERE f.task_type = r.task_type AND f.own_sign = r.own_sign`
	has, err := sqldb.One[bool](ctx, sqldb.Strict{Eacher: l.db}, roster.ErrUnknownTask, `SELECT CASE
		WHEN (SELECT MIN(f.partition_version)`+ofTask+`) < r.partition_version THEN 1
		WHEN EXISTS (SELECT 1`+ofTask+` AND f.partition_version = r.partition_version AND f.queue_id = ?) THEN 1 ELSE 0 END
		FROM schedule_task_running r WHERE r.task_type = ? AND r.own_sign = ?`, queueID, taskType, l.ownSign)
	return has, sqldb.Wrap(err, "look for failed items of queue %s of %s$%s", queueID, taskType, l.ownSign)
}

// Started returns the items of a queue in state STARTED.
func (l Log) Started(ctx context.Context, taskType, queueID string) ([]Item, error) {
	items, err := l.read(ctx, ` AND queue_id = ? AND state = ? AND partition_version = (SELECT r.partition_version
		FROM schedule_task_running r WHERE r.task_type = ? AND r.own_sign = ?) ORDER BY item_hash`,
		taskType, queueID, Started, taskType, l.ownSign)
	return items, sqldb.Wrap(err, "read the started items of queue %s of %s$%s", queueID, taskType, l.ownSign)
}

// Find returns the failed items with these keys, whatever their queue is. The text of its statement does not grow with
// their number: on PostgreSQL, a list of 500 marks took longer than to look for the items.
func (l Log) Find(ctx context.Context, taskType string, keys []string) (items []Item, err error) {
	type row struct {
		Hash sqldb.Key `db:"hash"`
	}
	for part := range slices.Chunk(keys, roster.InsertRows) {
		rows := make([]row, len(part))
		for i, key := range part {
			rows[i].Hash = sqldb.Key(Hash(key))
		}
		values, args, err := sqldb.Values(l.db.Dialect, rows)
		if err != nil {
			return nil, err
		}
		found, err := l.readFrom(ctx, values+l.db.JoinInOrder+`schedule_failed_item f ON f.task_type = ? AND f.own_sign = ?
			AND f.item_hash = v.hash ORDER BY f.item_hash`, append(args, taskType, l.ownSign)...)
		if err != nil {
			return nil, fmt.Errorf("find failed items of %s$%s: %w", taskType, l.ownSign, err)
		}
		items = append(items, found...)
	}
	return items, nil
}

// fewItems is how many records of a queue OfPage reads, rather than to ask for each key of the page.
const fewItems = 50

// OfPage returns the failed items with these keys, which are those of a page of a queue. Most queues have few records,
// if any: then a statement that reads them all costs less than one that asks for 500 keys. As Any, OfPage takes an item
// of another queue for one of this queue only if the record is from before the queues last changed.
func (l Log) OfPage(ctx context.Context, taskType, queueID string, keys []string) ([]Item, error) {
	if len(keys) <= fewItems {
		return l.Find(ctx, taskType, keys)
	}
	// With the order, PostgreSQL finds the end of the index; without it, it reads all records for a few that it expects.
	const some = `SELECT * FROM (SELECT * FROM schedule_failed_item WHERE task_type = ? AND own_sign = ?
		AND partition_version %s (SELECT r.partition_version FROM schedule_task_running r WHERE r.task_type = ?
		AND r.own_sign = ?) %s ORDER BY partition_version LIMIT %d) `
	one := []any{taskType, l.ownSign, taskType, l.ownSign}
	items, err := l.readFrom(ctx, `(`+fmt.Sprintf(some, "<", "", fewItems+1)+`moved UNION ALL `+
		fmt.Sprintf(some, "=", "AND queue_id = ?", fewItems+1)+`own) q`, slices.Concat(one, one, []any{queueID})...)
	switch {
	case err != nil:
		return nil, fmt.Errorf("find failed items of queue %s of %s$%s: %w", queueID, taskType, l.ownSign, err)
	case len(items) > fewItems:
		return l.Find(ctx, taskType, keys)
	case len(items) == 0:
		return nil, nil
	}
	of := make(map[string]bool, len(keys))
	for _, key := range keys {
		of[key] = true
	}
	return slices.DeleteFunc(items, func(i Item) bool { return !of[i.Key] }), nil
}

// read reads the items of a task type under a condition.
func (l Log) read(ctx context.Context, condition, taskType string, args ...any) (items []Item, err error) {
	return l.readFrom(ctx, `schedule_failed_item WHERE task_type = ? AND own_sign = ?`+condition,
		append([]any{taskType, l.ownSign}, args...)...)
}

// readFrom reads the items of what follows FROM in a statement.
func (l Log) readFrom(ctx context.Context, source string, args ...any) (items []Item, err error) {
	type row struct {
		Item
		Next, Now time.Time
	}
	rows, err := sqldb.Records[row](ctx, sqldb.Strict{Eacher: l.db}, `SELECT item_key, order_key, queue_id,
		partition_version, state, attempts, last_error, first_failed_at, next_attempt_at, {now} FROM `+source, args...)
	for _, r := range rows {
		if !r.Next.IsZero() {
			r.RetryIn = r.Next.Sub(r.Now)
		}
		items = append(items, r.Item)
	}
	return items, err
}

// maxKey is the length of the longest key that is recorded (X12), in bytes. It fits into the column of every database,
// and into one statement with the default limits of their servers.
const maxKey = 12_000_000

// Save records items that have failed, or failed again.
func (l Log) Save(ctx context.Context, taskType string, items []Item) error {
	for _, i := range items {
		err := sqldb.CheckText(fmt.Sprintf("the key (%.60q) of an item", i.Key), i.Key, maxKey)
		if i.Key == "" {
			err = errors.New("the key of an item is empty")
		}
		if err != nil {
			return fmt.Errorf("record the failed items of %s$%s: %w", taskType, l.ownSign, err)
		}
	}
	items = sqldb.LastOfEach(items, func(i Item) string { return i.Key }) // a select may have returned an item twice
	for part := range slices.Chunk(items, roster.InsertRows) {
		args := make([]any, 0, 11*len(part))
		for _, i := range part {
			args = append(args, taskType, l.ownSign, Hash(i.Key), i.Key, sqldb.Clean(i.OrderKey), i.QueueID, i.Partition,
				i.State, i.Attempts, sqldb.Clean(i.LastError), -i.RetryIn.Milliseconds())
		}
		values := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {ago ?}, {now}), ", len(part)), ", ")
		err := l.write(ctx, `INSERT INTO schedule_failed_item
			(task_type, own_sign, item_hash, item_key, order_key, queue_id, partition_version, state, attempts, last_error,
			next_attempt_at, first_failed_at)
			VALUES `+values+l.db.UpsertItem, args...)
		if err != nil {
			return fmt.Errorf("record the failed items of %s$%s: %w", taskType, l.ownSign, err)
		}
	}
	return nil
}

// Forget deletes the rows of items that have succeeded.
func (l Log) Forget(ctx context.Context, taskType string, keys []string) error {
	for part := range slices.Chunk(keys, roster.InsertRows) {
		args := append([]any{taskType, l.ownSign}, Hashes(part)...)
		err := l.write(ctx, `DELETE FROM schedule_failed_item WHERE task_type = ? AND own_sign = ? AND item_hash IN (`+
			sqldb.Marks(len(part))+`)`, args...)
		if err != nil {
			return fmt.Errorf("delete failed items of %s$%s: %w", taskType, l.ownSign, err)
		}
	}
	return nil
}

// write runs one idempotent statement on the dealers' pool: all executors write failures at the same time, and would
// exhaust the few connections of the roster.
func (l Log) write(ctx context.Context, query string, args ...any) error {
	return l.db.Retry(ctx, func() (bool, error) {
		_, err := l.db.Dealers.ExecContext(ctx, l.db.SQL(query), args...)
		return true, err
	})
}
