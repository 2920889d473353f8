package runs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// FailedItem is an item that failed in the sweep of a queue of a run, a row of schedule_run_item.
type FailedItem struct {
	RunID     string    `json:"run_id"`
	QueueID   string    `json:"queue_id"`
	No        int64     `json:"item_no"`  // order of the failures of the queue
	Key       string    `json:"item_key"` // cut to 255 characters
	Attempt   int       `json:"attempt"`  // of the queue, in which the item failed last
	LastError string    `json:"last_error"`
	FailedAt  time.Time `json:"failed_at"`
}

// FailedItemFilter selects failed items of a run. An empty QueueID selects all queues.
type FailedItemFilter struct {
	RunID   string
	QueueID string
}

// ItemFailure is an item that failed in a sweep.
type ItemFailure struct {
	Key, Error string
	At         time.Time // by the local clock; only its age is recorded
}

const (
	// maxRunItems is the number of failed items that a run records per queue. The counts of the queue include the others.
	maxRunItems = 100

	// maxItemKey is the length of item_key in characters.
	maxItemKey = 255
)

// FailedItems lists the failed items of a run by queue, each queue's in the order of their failures, at most limit.
func (rs *Runs) FailedItems(ctx context.Context, f FailedItemFilter, limit int) ([]FailedItem, error) {
	w := sqldb.Where{Args: []any{f.RunID}}
	w.Equal("queue_id", f.QueueID)
	list, err := sqldb.Records[FailedItem](ctx, rs.db, fmt.Sprintf(`SELECT {columns} FROM schedule_run_item
		WHERE run_id = ?%s
		ORDER BY queue_id, item_no LIMIT %d`, w.Text, max(limit, 1)), w.Args...)
	slices.SortStableFunc(list, func(a, b FailedItem) int { return plan.CompareIDs(a.QueueID, b.QueueID) })
	return list, sqldb.Wrap(err, "read the failed items of run %s", f.RunID)
}

// saveItems records the failed items of a sweep. The caller has fenced the queue and written its row in this
// transaction, so that no other sweep of the queue writes meanwhile (R8).
func saveItems(ctx context.Context, t sqldb.Tx, s Sweep, p Progress) error {
	if len(p.Failed) == 0 && !p.Whole {
		return nil
	}
	rows, err := sqldb.Records[FailedItem](ctx, t, `SELECT {columns} FROM schedule_run_item
		WHERE run_id = ? AND queue_id = ? ORDER BY item_no`, s.RunID, s.QueueID)
	if err != nil {
		return fmt.Errorf("read the failed items: %w", err)
	}
	gone, added := mergeItems(rows, p.Failed, s.Attempt, p.Whole)
	if len(gone) > 0 {
		args := []any{s.RunID, s.QueueID}
		for _, no := range gone {
			args = append(args, no)
		}
		_, err := t.Exec(ctx, `DELETE FROM schedule_run_item
			WHERE run_id = ? AND queue_id = ? AND item_no IN (`+sqldb.Marks(len(gone))+`)`, args...)
		if err != nil {
			return fmt.Errorf("delete failed items: %w", err)
		}
	}
	last := int64(0)
	if len(rows) > 0 {
		last = rows[len(rows)-1].No
	}
	return insertItems(ctx, t, s, last, added)
}

func insertItems(ctx context.Context, t sqldb.Tx, s Sweep, last int64, added []ItemFailure) error {
	if len(added) == 0 {
		return nil
	}
	var args []any
	for n, f := range added {
		no, age := last+int64(n)+1, time.Since(f.At).Milliseconds()
		args = append(args, s.RunID, s.QueueID, no, f.Key, s.Attempt, f.Error, age)
	}
	_, err := t.Exec(ctx, `INSERT INTO schedule_run_item
		(run_id, queue_id, item_no, item_key, attempt, last_error, failed_at) VALUES `+
		strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, {ago ?}), ", len(added)), ", "), args...)
	return sqldb.Wrap(err, "insert failed items")
}

// mergeItems returns the rows to delete and the failures to insert. An item that failed in an earlier attempt keeps its
// row until it fails again, or until the sweep has been through the whole queue without a failure of the item. At most
// maxRunItems rows stay. A failure that is recorded already changes nothing.
func mergeItems(rows []FailedItem, failed []ItemFailure, attempt int, whole bool) (gone []int64, added []ItemFailure) {
	failures := map[string]ItemFailure{}
	var keys []string
	for _, f := range failed {
		f.Key, f.Error = cut(sqldb.Clean(f.Key), maxItemKey), sqldb.Clean(f.Error)
		if _, ok := failures[f.Key]; !ok {
			keys = append(keys, f.Key)
		}
		failures[f.Key] = f
	}
	kept := 0
	for _, r := range rows {
		f, again := failures[r.Key]
		switch {
		case again && r.Attempt == attempt && r.LastError == f.Error:
			delete(failures, r.Key)
			kept++
		case again, whole:
			gone = append(gone, r.No)
		default:
			kept++
		}
	}
	for _, key := range keys {
		if f, ok := failures[key]; ok && kept < maxRunItems {
			added = append(added, f)
			kept++
		}
	}
	return gone, added
}

func cut(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most])
	}
	return s
}
