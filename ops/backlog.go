package ops

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// QueueBacklog is how much work a queue has left, as its owner has counted it: a row of schedule_backlog.
type QueueBacklog struct {
	QueueID string
	Epoch   int64 // of the owner
	Items   int64
	Oldest  time.Time     // of the oldest of them; zero if unknown
	Age     time.Duration // since the count
	Took    time.Duration // the count
	Rate    *float64      // items per second by which they become more; nil if unknown
	Trend   string        // one of the constants below, or empty
	Demand  *float64      // executors that the queue needs to keep up with what arrives; nil keeps what the row has
}

// The trends of a backlog, by its last ten counts or fewer.
const (
	BacklogEmpty    = "EMPTY"    // nothing is left
	BacklogDraining = "DRAINING" // there are fewer items than there were
	BacklogSteady   = "STEADY"   // about as many items come as are done
	BacklogGrowing  = "GROWING"  // no count was less than the one before, and the last one is more
	BacklogStuck    = "STUCK"    // no count was less than the one before, and the oldest item is the same
)

// FreshBacklog is how old a count may be that an autoscaler uses. An owner counts each of its queues about every 10 s.
const FreshBacklog = time.Minute

// EstimateBacklog returns how many items a number of queues have left, if those of them that were counted have a number of
// items: it takes the others for as full as these, and never for empty. It knows nothing if fewer than half were counted.
func EstimateBacklog(items, counted, queues int64) (estimate int64, known bool) {
	if counted == 0 || 2*counted < queues {
		return 0, false
	}
	return extrapolate(items, counted, queues), true
}

// extrapolate returns the items of all queues by those of the counted ones.
func extrapolate(items, counted, queues int64) int64 {
	if counted == 0 || counted >= queues {
		return items
	}
	return int64(min(math.Ceil(float64(items)*float64(queues)/float64(counted)), math.MaxInt64/2))
}

// SaveBacklogs records what the owners of queues have counted. It locks no row of the roster, and waits for no fence. A
// row of a later epoch stays as it is. It is called by managers.
func (q *Queues) SaveBacklogs(ctx context.Context, taskType string, list []QueueBacklog) error {
	for part := range slices.Chunk(list, roster.InsertRows) {
		var values []string
		var args []any
		for _, b := range part {
			var oldest any
			if !b.Oldest.IsZero() {
				oldest = q.c.db.Time(b.Oldest)
			}
			values = append(values, "(?, ?, ?, ?, ?, ?, {ago ?}, ?, ?, ?, ?)")
			args = append(args, taskType, q.c.ownSign, b.QueueID, b.Epoch, max(0, b.Items), oldest, b.Age.Milliseconds(), b.Took.Milliseconds(), b.Rate, b.Trend, b.Demand)
		}
		err := q.c.db.Retry(ctx, func() (bool, error) {
			_, err := q.c.db.Exec(ctx, `INSERT INTO schedule_backlog
				(task_type, own_sign, queue_id, epoch, items, oldest_at, measured_at, took_ms, rate, trend, demand)
				VALUES `+strings.Join(values, ", ")+q.c.db.UpsertBacklog, args...)
			return true, err
		})
		if err != nil {
			return fmt.Errorf("record the backlogs of %s$%s: %w", taskType, q.c.ownSign, err)
		}
	}
	return nil
}

// BacklogETA returns in how many seconds the backlog will be done at its present rate, or nil if it does not become
// less.
func (q QueueRecord) BacklogETA() *float64 { return backlogETA(q.BacklogItems, q.BacklogRate) }

// BacklogPartial reports whether some queues have never been counted, so that more is left than BacklogItems.
func (t TaskRecord) BacklogPartial() bool {
	return t.BacklogQueues != nil && *t.BacklogQueues < t.QueueTotal
}

// BacklogETA returns in how many seconds the backlogs of all queues will be done at their present rate together, or nil
// if they do not become less.
func (t TaskRecord) BacklogETA() *float64 { return backlogETA(t.BacklogItems, t.BacklogRate) }

func backlogETA(items *int64, rate *float64) *float64 {
	if items == nil || rate == nil || *rate >= 0 {
		return nil
	}
	eta := float64(*items) / -*rate
	return &eta
}
