package ops

import (
	"context"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/plural"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// itemsAtOnce is how many failed items one transaction deletes at most. Other transactions of the roster wait for it.
const itemsAtOnce = 5_000

// deleteItems is the beginning of a statement that deletes failed items.
const deleteItems = `DELETE FROM schedule_failed_item`

// itemChange is what an operator does to failed items. The statement ends before its WHERE.
type itemChange struct{ actor, what, statement string }

// change changes the items with the given keys.
func (it *Items) change(ctx context.Context, taskType string, keys []string, c itemChange) (n int, err error) {
	for part := range slices.Chunk(keys, itemsPerPage) {
		var changed int
		err := it.c.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) (err error) {
			changed, err = c.apply(ctx, l, part)
			return err
		})
		if err != nil {
			return n, err
		}
		n += changed
	}
	return n, nil
}

// apply runs the statement for some items. It makes the workers read their items again, and records an event.
func (c itemChange) apply(ctx context.Context, l *roster.LockTx, keys []string) (n int, err error) {
	n, err = l.Exec(ctx, c.statement+` WHERE task_type = ? AND own_sign = ? AND item_hash IN (`+sqldb.Marks(len(keys))+`)`,
		append([]any{l.TaskType, l.OwnSign}, failures.Hashes(keys)...)...)
	if err != nil || n == 0 {
		return n, err
	}
	if err := itemsChanged(ctx, l); err != nil {
		return n, err
	}
	return n, l.Record(ctx, roster.Event{Kind: EventItems, Actor: c.actor, Reason: fmt.Sprintf("%s %s", plural.Of(n, "failed item was", "failed items were"), c.what)})
}

// lastOfChunk returns the hash of the last item that one transaction deletes, from the items behind a hash. It returns
// false if the transaction can delete all of them.
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
