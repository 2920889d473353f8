package center

import (
	"context"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/plural"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// itemsAtOnce is how many failed items one transaction changes at most. Other transactions of the roster wait for it.
const itemsAtOnce = 5_000

// deleteItems is the beginning of a statement that deletes failed items.
const deleteItems = `DELETE FROM schedule_failed_item`

// itemChange is what an operator does to failed items. The statement ends before its WHERE.
type itemChange struct{ actor, what, statement string }

// changeKeys changes the items with the given keys.
func (it *Items) changeKeys(ctx context.Context, taskType string, keys []string, c itemChange) (n int, err error) {
	for part := range slices.Chunk(keys, roster.InsertRows) {
		if n > 0 {
			it.progress(n)
		}
		var changed int
		err := it.c.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) (err error) {
			changed, err = c.apply(ctx, l, ` AND item_hash IN (`+sqldb.Marks(len(part))+`)`, hashesOf(part)...)
			return err
		})
		if err != nil {
			return n, err
		}
		n += changed
	}
	return n, nil
}

// changeAll changes all items of the task type, in the order of their hashes.
func (it *Items) changeAll(ctx context.Context, taskType string, c itemChange) (n int, err error) {
	for after, more := "", true; more; {
		if n > 0 {
			it.progress(n)
		}
		var changed int
		var last string
		err := it.c.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) (err error) {
			if last, more, err = lastOfChunk(ctx, l, after); err != nil {
				return err
			}
			condition, args := ` AND item_hash > ?`, []any{after}
			if more {
				condition, args = condition+` AND item_hash <= ?`, append(args, last)
			}
			changed, err = c.apply(ctx, l, condition, args...)
			return err
		})
		if err != nil {
			return n, err
		}
		n, after = n+changed, last
	}
	return n, nil
}

// apply runs the statement for the items under a condition. It makes the workers read their items again, and records
// an event.
func (c itemChange) apply(ctx context.Context, l *roster.LockTx, condition string, args ...any) (n int, err error) {
	n, err = l.Exec(ctx, c.statement+` WHERE task_type = ? AND own_sign = ?`+condition, append([]any{l.TaskType, l.OwnSign}, args...)...)
	if err != nil || n == 0 {
		return n, err
	}
	if err := itemsChanged(ctx, l); err != nil {
		return n, err
	}
	return n, l.Record(ctx, roster.Event{Kind: EventItems, Actor: c.actor, Reason: fmt.Sprintf("%s %s", plural.Of(n, "failed item was", "failed items were"), c.what)})
}

// lastOfChunk returns the hash of the last item that one transaction changes, from the items behind a hash. It returns
// false if the transaction can change all of them.
func lastOfChunk(ctx context.Context, l *roster.LockTx, after string) (hash string, more bool, err error) {
	err = l.QueryRow(ctx, fmt.Sprintf(`SELECT item_hash FROM schedule_failed_item WHERE task_type = ? AND own_sign = ? AND item_hash > ?
		ORDER BY item_hash LIMIT 1 OFFSET %d`, itemsAtOnce-1), l.TaskType, l.OwnSign, after).Scan(&hash)
	if sqldb.NoRows(err) {
		return "", false, nil
	}
	return hash, err == nil, err
}

// itemsChanged raises the version that makes workers read the failed items again.
func itemsChanged(ctx context.Context, l *roster.LockTx) error {
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET item_version = item_version + 1 WHERE task_type = ? AND own_sign = ?`, l.TaskType, l.OwnSign)
	return err
}

// deleteSomeItems deletes as many failed items behind a hash as one transaction may. It returns their number and the
// hash of the last one, which is empty if there are no more. The next call begins there: a database passes over deleted
// rows one by one.
func deleteSomeItems(ctx context.Context, l *roster.LockTx, after string) (n int, last string, err error) {
	last, more, err := lastOfChunk(ctx, l, after)
	if err != nil {
		return 0, "", err
	}
	query, args := deleteItems+` WHERE task_type = ? AND own_sign = ?`, []any{l.TaskType, l.OwnSign}
	if more {
		query, args = query+` AND item_hash > ? AND item_hash <= ?`, append(args, after, last)
	}
	if n, err = l.Exec(ctx, query, args...); err != nil {
		return 0, "", fmt.Errorf("delete the failed items: %w", err)
	}
	return n, last, nil
}
