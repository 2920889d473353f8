package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
)

// Clean deletes events, histories of servers, backlogs and ended runs that are older than the retention by the database's clock,
// and returns the number of deleted rows. One call deletes at most about 1,000 rows of each: call Clean periodically.
func (c *Client) Clean(ctx context.Context, retention time.Duration) (deleted int, err error) {
	for _, t := range []struct{ table, key, time string }{
		{"schedule_event", "event_id", "event_time"},
		{"schedule_server_history", "uuid", "left_time"},
	} {
		n, err := cleanTable(ctx, c.db, t.table, t.key, t.time, retention)
		if err != nil {
			return deleted, fmt.Errorf("clean %s: %w", t.table, err)
		}
		deleted += n
	}
	n, err := c.db.Exec(ctx, fmt.Sprintf(`DELETE FROM schedule_backlog WHERE measured_at < {ago %d}`, retention.Milliseconds()))
	if err != nil {
		return deleted, fmt.Errorf("clean schedule_backlog: %w", err)
	}
	deleted += n
	n, err = runs.Clean(ctx, c.db, retention)
	if err != nil {
		return deleted, fmt.Errorf("clean schedule_run: %w", err)
	}
	return deleted + n, nil
}

// cleanTable reads the keys first and deletes by key: a DELETE with a range locks the rows that it scans, and not every
// database supports LIMIT in it.
func cleanTable(ctx context.Context, db *sqldb.DB, table, key, column string, retention time.Duration) (int, error) {
	keys, err := sqldb.Records[any](ctx, db, fmt.Sprintf(`SELECT %s FROM %s WHERE %s < {ago %d} ORDER BY %s LIMIT %d`,
		key, table, column, retention.Milliseconds(), column, runs.CleanRows))
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	return db.Exec(ctx, fmt.Sprintf(`DELETE FROM %s WHERE %s IN (%s)`, table, key, sqldb.Marks(len(keys))), keys...)
}

// Clean deletes failed items of all own_signs and task types that are past the retention by the database's clock: items
// that died before it, and items that have been due for as long and that no worker has selected since. It returns their
// number. One call deletes at most 1,000: call Clean periodically. If a select still returns an item that died, a
// worker executes it again as if it had never failed.
func (it *Items) Clean(ctx context.Context, retention time.Duration) (deleted int, err error) {
	type place struct{ TaskType, OwnSign string }
	type key struct {
		place
		Hash string
	}
	due := fmt.Sprintf(`next_attempt_at < {ago %d}`, retention.Milliseconds())
	keys, err := sqldb.Records[key](ctx, it.c.db, fmt.Sprintf(`SELECT task_type, own_sign, item_hash FROM schedule_failed_item
		WHERE %s ORDER BY next_attempt_at LIMIT %d`, due, runs.CleanRows))
	var places []place
	hashes := map[place][]any{}
	for _, k := range keys {
		if hashes[k.place] == nil {
			places = append(places, k.place)
		}
		hashes[k.place] = append(hashes[k.place], k.Hash)
	}
	for _, p := range places {
		if err != nil {
			break
		}
		var n int
		n, err = it.c.db.Exec(ctx, deleteItems+` WHERE task_type = ? AND own_sign = ? AND item_hash IN (`+sqldb.Marks(len(hashes[p]))+`) AND `+due,
			append([]any{p.TaskType, p.OwnSign}, hashes[p]...)...) // its time may have been changed meanwhile
		deleted += n
	}
	if err != nil {
		return deleted, fmt.Errorf("clean schedule_failed_item: %w", err)
	}
	return deleted, nil
}
