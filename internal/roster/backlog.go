package roster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// backlogRow is a row of schedule_backlog.
type backlogRow struct {
	TaskType string        `db:"task_type"`
	OwnSign  string        `db:"own_sign"`
	QueueID  string        `db:"queue_id"`
	Epoch    int64         `db:"epoch"`
	Items    int64         `db:"items"`
	Oldest   time.Time     `db:"oldest_at"`
	Measured time.Time     `db:"measured_at"`
	Took     time.Duration `db:"took_ms"`
	Rate     *float64      `db:"rate"`
	Trend    string        `db:"trend"`
	Demand   *float64      `db:"demand"`
}

// shareBacklog replaces the counts of the queues by equal parts of their sum for other queues, until these are counted
// themselves: a plan by load (P16) waits for no count, and an autoscaler sees no gap. Without a count of each queue
// there is none.
func (l *LockTx) shareBacklog(ctx context.Context, from, to []sizedQueue) error {
	counts, err := sqldb.RecordsIn[backlogRow](ctx, l, allIDs(from), `SELECT {columns} FROM schedule_backlog
		WHERE `+ofTask+` AND queue_id IN ({ids}) ORDER BY queue_id`, l.TaskType, l.OwnSign)
	if err != nil {
		return fmt.Errorf("read the backlogs of the queues %s: %w", idsOf(from), err)
	}
	var sum backlogRow
	for i, row := range counts {
		sum = sum.plus(row, i == 0)
	}
	both := slices.Concat(from, to) // a part may have a count that was recorded after it had merged
	if err := l.deleteQueueRows(ctx, "schedule_backlog", both); err != nil {
		return err
	}
	if len(counts) < len(from) {
		return nil
	}
	parts := make([]backlogRow, len(to))
	for i, q := range to {
		parts[i] = sum.part(q.ID, len(to))
	}
	return sqldb.Insert(ctx, l.Tx, "schedule_backlog", parts...)
}

// plus returns the sum of two counts; of one, if it is the first.
func (b backlogRow) plus(other backlogRow, first bool) backlogRow {
	if first {
		return other
	}
	b.Items += other.Items
	if b.Oldest.IsZero() || !other.Oldest.IsZero() && other.Oldest.Before(b.Oldest) {
		b.Oldest = other.Oldest
	}
	if other.Measured.Before(b.Measured) {
		b.Measured = other.Measured
	}
	b.Took += other.Took
	b.Rate, b.Demand = sumOf(b.Rate, other.Rate), sumOf(b.Demand, other.Demand)
	return b
}

// sumOf returns nil if one of the two is unknown.
func sumOf(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}

// part returns one of n equal parts, for a queue. Any count of the queue replaces it.
func (b backlogRow) part(queueID string, n int) backlogRow {
	divide := func(value *float64) *float64 {
		if value == nil {
			return nil
		}
		part := *value / float64(n)
		return &part
	}
	b.QueueID, b.Epoch, b.Items, b.Trend = queueID, 0, b.Items/int64(n), ""
	b.Rate, b.Demand = divide(b.Rate), divide(b.Demand)
	return b
}
