package ops

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
)

// Clean deletes events, histories of servers, backlogs and ended runs of all own_signs that are older than the
// retention by the database's clock, and returns the number of deleted rows. One call deletes at most about 1,000 rows
// of each: call Clean periodically.
func (c *Client) Clean(ctx context.Context, retention time.Duration) (deleted int, err error) {
	deleted, err = cleanEvents(ctx, c.db, retention)
	if err != nil {
		return 0, fmt.Errorf("clean schedule_event: %w", err)
	}
	n, err := c.roster.CleanServers(ctx, retention, runs.CleanRows)
	if err != nil {
		return deleted, fmt.Errorf("clean schedule_server_history: %w", err)
	}
	deleted += n
	n, err = c.db.Exec(ctx, fmt.Sprintf(`DELETE FROM schedule_backlog WHERE measured_at < {ago %d}`,
		retention.Milliseconds()))
	if err != nil {
		return deleted, fmt.Errorf("clean schedule_backlog: %w", err)
	}
	deleted += n
	n, err = runs.Clean(ctx, c.db, retention)
	return deleted + n, sqldb.Wrap(err, "clean schedule_run")
}

// cleanEvents reads the keys first and deletes by key: a DELETE with a range locks the rows that it scans, and not
// every database supports LIMIT in it.
func cleanEvents(ctx context.Context, db *sqldb.DB, retention time.Duration) (int, error) {
	keys, err := sqldb.Records[any](ctx, db, fmt.Sprintf(`SELECT event_id FROM schedule_event
		WHERE event_time < {ago %d} ORDER BY event_time LIMIT %d`, retention.Milliseconds(), runs.CleanRows))
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	return db.Exec(ctx, `DELETE FROM schedule_event WHERE event_id IN (`+sqldb.Marks(len(keys))+`)`, keys...)
}

// Clean deletes failed items of all own_signs and task types that are past the retention by the database's clock: items
// that died before it, and items that have been due for as long and that no worker has selected since. It returns their
// number. One call deletes at most 1,000: call Clean periodically. If a select still returns an item that died, a
// worker executes it again as if it had never failed (X6).
func (it *Items) Clean(ctx context.Context, retention time.Duration) (deleted int, err error) {
	type place struct{ TaskType, OwnSign string }
	type key struct {
		place
		Hash string
	}
	due := fmt.Sprintf(`next_attempt_at < {ago %d}`, retention.Milliseconds())
	keys, err := sqldb.Records[key](ctx, it.c.db, fmt.Sprintf(`SELECT task_type, own_sign, item_hash
		FROM schedule_failed_item
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
		n, err = it.c.db.Exec(ctx, deleteItems+` WHERE task_type = ? AND own_sign = ? AND item_hash IN (`+
			sqldb.Marks(len(hashes[p]))+`) AND `+due,
			append([]any{p.TaskType, p.OwnSign}, hashes[p]...)...) // its time may have been changed meanwhile
		deleted += n
	}
	return deleted, sqldb.Wrap(err, "clean schedule_failed_item")
}

// ExpireOwnSigns deletes the environments of a task type that no server has served for its expire_own_sign_interval,
// and returns their names. It deletes their queues, failed items, rows of expired servers and the trigger of the
// settings, and cancels open runs. The next server of such an environment clones BASE under new epochs and defines the
// trigger again. A pause stays. BASE never expires. An environment whose queues have cursors, or that has other
// triggers, does not expire either: nothing would restore them. Of an environment with many failed items or open
// runs, each call deletes or cancels some thousand, before it expires.
//
// seen is the database's time of the actor's last heartbeat, and within the greatest age that it can have. If the
// database's clock has jumped since, ExpireOwnSigns deletes nothing: live environments would look abandoned (S7).
func (c *Client) ExpireOwnSigns(ctx context.Context, taskType, actor string, seen time.Time,
	within time.Duration,
) (expired []string, err error) {
	candidates, err := sqldb.Records[string](ctx, c.db, `SELECT r.own_sign FROM schedule_task_running r`+abandonedRosters+`
		AND r.task_type = ? AND r.own_sign NOT IN (?, ?) ORDER BY r.own_sign`, taskType, center.DefaultOwnSign, c.ownSign)
	if err != nil {
		return nil, fmt.Errorf("look for abandoned environments of %s: %w", taskType, err)
	}
	for _, sign := range candidates {
		gone, err := expireOwnSign(ctx, c.roster.In(sign), taskType, actor, seen, within)
		if err != nil {
			return expired, fmt.Errorf("expire %w", err)
		}
		if gone {
			expired = append(expired, sign)
		}
	}
	return expired, nil
}

// abandonedRosters selects rosters with queues that no server has served and no statement has changed for
// expire_own_sign_interval, without cursors and without an operator's triggers. An interval of the row that workers
// refuse selects none (S13): it would delete the queues of live servers.
var abandonedRosters = strings.ReplaceAll(` JOIN schedule_task_type t ON t.task_type = r.task_type
	WHERE r.queue_total > 0 AND {interval} >= t.judge_dead_interval_ms
	AND NOT EXISTS (SELECT 1 FROM schedule_server s WHERE s.task_type = r.task_type AND s.own_sign = r.own_sign
		AND (s.heartbeat_time >= {ago {interval}} OR s.heartbeat_time >= {ago s.judge_dead_interval_ms}))
	AND NOT EXISTS (SELECT 1 FROM schedule_queue q WHERE q.task_type = r.task_type AND q.own_sign = r.own_sign
		AND (q.gmt_modified >= {ago {interval}} OR q.cursor_value <> ''))
	AND NOT EXISTS (SELECT 1 FROM schedule_trigger g WHERE g.target = r.task_type AND g.own_sign = r.own_sign
	AND g.name <> r.task_type)`, "{interval}", expireInterval)

// expireInterval is the interval in milliseconds. A zero in the row means the default, as in code.
var expireInterval = fmt.Sprintf(`COALESCE(NULLIF(t.expire_own_sign_interval_ms, 0), %d)`,
	center.Settings{}.WithDefaults().ExpireOwnSignInterval.Milliseconds())

// expireOwnSign deletes one environment if it is still abandoned under the lock row.
func expireOwnSign(ctx context.Context, r *roster.Roster, taskType, actor string, seen time.Time,
	within time.Duration,
) (gone bool, err error) {
	err = r.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) error {
		gone = false
		still, err := sqldb.Value[int](ctx, l, `SELECT COUNT(*) FROM schedule_task_running r`+abandonedRosters+`
			AND r.task_type = ? AND r.own_sign = ?`, l.TaskType, l.OwnSign)
		if err != nil || still == 0 || l.Now.Sub(seen).Abs() > within {
			return err
		}
		if _, last, err := deleteSomeItems(ctx, l, ""); err != nil || last != "" {
			return err // a later call deletes the rest
		}
		if more, err := runs.CancelSome(ctx, l); err != nil || more {
			return err // likewise
		}
		gone = true
		return deleteRosterRows(ctx, l, actor, "no worker has served it for expire_own_sign_interval")
	})
	return gone, err
}

// OwnSigns lists the environments of the database by name.
func (c *Client) OwnSigns(ctx context.Context) (signs []string, err error) {
	signs, err = sqldb.Records[string](ctx, c.db, `SELECT DISTINCT own_sign FROM schedule_task_running ORDER BY own_sign`)
	return signs, sqldb.Wrap(err, "list the environments")
}
