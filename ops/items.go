package ops

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/roster"
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
	OrderKey      string     `json:"order_key"` // empty if the item has none
	QueueID       string     `json:"queue_id"`
	State         string     `json:"state"` // RETRY, STARTED or DEAD
	Attempts      int64      `json:"attempts"`
	LastError     string     `json:"last_error"`
	FirstFailedAt time.Time  `json:"first_failed_at"`
	NextAttemptAt *time.Time `json:"next_attempt_at"`
	// WaitsFor is what must happen before any item of its queue is executed, apart from single ones as samples: then
	// NextAttemptAt decides nothing. Empty: nothing.
	WaitsFor string `json:"waits_for"`

	Now time.Time `json:"-" db:"database_time"` // the database's time of the read
}

// Next says when the item is executed again where that is no time: "never", "when" with what it waits for, or "due" if
// its time has passed. It is empty if NextAttemptAt decides.
func (i ItemRecord) Next() string {
	switch {
	case i.State == ItemDead:
		return "never"
	case i.WaitsFor != "":
		return "when " + i.WaitsFor
	case i.NextAttemptAt == nil || !i.NextAttemptAt.After(i.Now):
		return "due"
	}
	return ""
}

// heldItems returns a query for failed items with what their queues wait for. While the calls of an owner do nothing
// but fail, it only samples them (X5).
func heldItems(items, order string) string {
	return `SELECT {columns} FROM (SELECT i.*, {now} AS database_time, CASE
			WHEN r.paused THEN 'the task type is resumed'
			WHEN q.cur_server IS NULL THEN 'its queue has an owner'
			WHEN s.failing_since IS NOT NULL THEN 'another item succeeds' END AS waits_for
		FROM (` + items + `) i
		LEFT JOIN schedule_queue q ON q.task_type = i.task_type AND q.own_sign = i.own_sign AND q.queue_id = i.queue_id
		LEFT JOIN schedule_server s ON s.uuid = q.cur_server
		LEFT JOIN schedule_task_running r ON r.task_type = i.task_type AND r.own_sign = i.own_sign) x ORDER BY ` + order
}

// ItemFilter selects failed items. Empty fields select all.
type ItemFilter struct {
	TaskType string
	QueueID  string
	State    string
	OrderKey string // of the items
	Key      string // the whole key of one item; for List only
	Text     string // in the key, the order key or the error of an item; for List only
}

// List lists the latest failed items of this own_sign that the filter selects, at most limit, the latest last.
func (it *Items) List(ctx context.Context, f ItemFilter, limit int) ([]ItemRecord, error) {
	w := sqldb.Where{Args: []any{it.c.ownSign}}
	w.Equal("task_type", f.TaskType)
	w.Equal("queue_id", f.QueueID)
	w.Equal("state", f.State)
	w.Equal("order_key", f.OrderKey)
	if f.Key != "" {
		w.Equal("item_hash", failures.Hash(f.Key))
	}
	w.Contains(f.Text, "item_key", "order_key", "last_error")
	list, err := sqldb.Records[ItemRecord](ctx, it.c.db, heldItems(fmt.Sprintf(`SELECT * FROM schedule_failed_item
		WHERE own_sign = ?%s ORDER BY first_failed_at DESC, item_key DESC LIMIT %d`, w.Text, limit),
		"first_failed_at, item_key"), w.Args...)
	return list, sqldb.Wrap(err, "list the failed items")
}

// Retry makes failed items due at once and resets their attempts; dead items are executed again. It returns the number
// of items. Workers read the items again after their next heartbeat. Retry changes at most 1,000 items in each
// transaction. If it fails between two of them, it returns the number of items so far. Page has the keys of all items.
func (it *Items) Retry(ctx context.Context, taskType, actor string, keys ...string) (n int, err error) {
	n, err = it.change(ctx, taskType, keys,
		itemChange{actor: actor, what: "retried", statement: `UPDATE schedule_failed_item
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

// itemsPerPage is how many failed items a page has at most.
const itemsPerPage = 1_000

// Page returns the failed items of a task type that the filter selects, at most 1,000, behind the position that the
// page before has returned. The position before the first page is empty, and next is empty after the last one. The
// order has no meaning. A caller may change the items of a page before it asks for the next one. An item that fails
// for the first time meanwhile may be left out.
func (it *Items) Page(ctx context.Context, f ItemFilter, after string) (page []ItemRecord, next string, err error) {
	if f.TaskType == "" {
		return nil, "", errors.New("read a page of failed items: the filter needs a task type")
	}
	w := sqldb.Where{Args: []any{f.TaskType, it.c.ownSign, after}}
	w.Equal("queue_id", f.QueueID)
	w.Equal("state", f.State)
	w.Equal("order_key", f.OrderKey)
	page, err = sqldb.Records[ItemRecord](ctx, it.c.db, heldItems(fmt.Sprintf(`SELECT * FROM schedule_failed_item
		WHERE task_type = ? AND own_sign = ? AND item_hash > ?%s ORDER BY item_hash LIMIT %d`, w.Text,
		itemsPerPage), "item_hash"), w.Args...)
	if err != nil {
		return nil, "", fmt.Errorf("read a page of failed items of %s: %w", f.TaskType, err)
	}
	if len(page) == itemsPerPage {
		next = failures.Hash(page[len(page)-1].ItemKey)
	}
	return page, next, nil
}

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

// apply runs the statement for some items. It makes the workers select soon, and records an event.
func (c itemChange) apply(ctx context.Context, l *roster.LockTx, keys []string) (n int, err error) {
	n, err = l.Exec(ctx, c.statement+` WHERE task_type = ? AND own_sign = ? AND item_hash IN (`+sqldb.Marks(len(keys))+`)`,
		append([]any{l.TaskType, l.OwnSign}, failures.Hashes(keys)...)...)
	if err != nil || n == 0 {
		return n, err
	}
	if err := itemsChanged(ctx, l); err != nil {
		return n, err
	}
	return n, l.Record(ctx, roster.Event{
		Kind: EventItems, Actor: c.actor,
		Reason: fmt.Sprintf("%s %s", human.Count(n, "failed item was", "failed items were"), c.what),
	})
}

// lastOfChunk returns the hash of the last item that one transaction deletes, from the items behind a hash. It returns
// false if the transaction can delete all of them.
func lastOfChunk(ctx context.Context, l *roster.LockTx, after string) (hash string, more bool, err error) {
	return sqldb.Record[string](ctx, l, fmt.Sprintf(`SELECT item_hash FROM schedule_failed_item
		WHERE task_type = ? AND own_sign = ? AND item_hash > ? ORDER BY item_hash LIMIT 1 OFFSET %d`, itemsAtOnce-1),
		l.TaskType, l.OwnSign, after)
}

// itemsChanged raises the version that makes workers select soon, from the start of their sources.
func itemsChanged(ctx context.Context, l *roster.LockTx) error {
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET item_version = item_version + 1 WHERE task_type = ?
		AND own_sign = ?`, l.TaskType, l.OwnSign)
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

// varying are the parts of an error in which errors of one kind differ: quoted texts and figures.
var varying = regexp.MustCompile(`"[^"]*"|'[^']*'|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[0-9]+`)

// ErrorKind returns the first line of an error with … for its varying parts, which are figures and quoted texts.
func ErrorKind(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return varying.ReplaceAllString(line, "…")
}

// StatisticsEvery is the shortest pause between two writes of the counters of a worker.
const StatisticsEvery = 10 * time.Second

// ItemRates computes the items that servers have done per second, from successive readings of their counters. Items
// that failed do not count: in an outage the rate is 0. The zero value has no earlier reading. It must not be used
// concurrently.
type ItemRates struct {
	servers map[string]itemRate // by uuid
}

// itemRate is the rate of a server since its counter has changed.
type itemRate struct {
	done  int64     // items that had succeeded
	at    time.Time // the database's time of the reading that first found so many
	rate  float64
	known bool
}

// Update returns the items per second of each server, by uuid. The rate of a server is that of the time between its
// last two writes of its counters, and 0 if it has written nothing new for twice that time. A server has no entry
// before one of both was seen.
func (r *ItemRates) Update(servers []ServerRecord) map[string]float64 {
	rates, now := map[string]float64{}, map[string]itemRate{}
	for _, s := range servers {
		of, seen := r.servers[s.UUID]
		switch since := s.Now.Sub(of.at); {
		case !seen:
			of = itemRate{done: s.SuccessCount, at: s.Now}
		case s.SuccessCount != of.done:
			took := max(since, StatisticsEvery).Seconds() // the first reading may be long after the write
			of = itemRate{s.SuccessCount, s.Now, float64(s.SuccessCount-of.done) / took, true}
		case since < 0:
			of.at = s.Now // the database's clock was set back
		case since > 2*StatisticsEvery:
			of.rate, of.known = 0, true
		}
		if now[s.UUID] = of; of.known {
			rates[s.UUID] = of.rate
		}
	}
	r.servers = now
	return rates
}
