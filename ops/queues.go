package ops

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Queues lists and previews queues.
type Queues struct{ c *Client }

// Queues returns the bundle of queues.
func (c *Client) Queues() *Queues { return &Queues{c} }

// QueueRecord is a row of the view schedule_assignment: a queue with its owner. Ages are in seconds.
type QueueRecord struct {
	TaskType       string     `json:"task_type"`
	OwnSign        string     `json:"own_sign"`
	QueueID        string     `json:"queue_id"`
	QueueIndex     int64      `json:"queue_index"`
	QueueTotal     *int64     `json:"queue_total"` // divides the items of a numbered queue; nil: it has a name
	CurServer      *string    `json:"cur_server"`
	CurHost        *string    `json:"cur_host"`
	CurPID         *int64     `json:"cur_pid"`
	CurState       *string    `json:"cur_state"`
	HeartbeatAge   *float64   `json:"cur_heartbeat_age_s"`
	ReqServer      *string    `json:"req_server"`
	ReqHost        *string    `json:"req_host"`
	OwnedFor       *float64   `json:"held_s"`
	Requested      *float64   `json:"requested_s"`
	Epoch          int64      `json:"epoch"`
	QueueParameter string     `json:"queue_parameter"`
	CursorValue    string     `json:"cursor_value"`
	BacklogItems   *int64     `json:"backlog_items"`    // as its owner last counted; nil if it does not count (Backlogger)
	BacklogOldest  *float64   `json:"backlog_oldest_s"` // age of the oldest of them
	BacklogAge     *float64   `json:"backlog_age_s"`    // when they were counted
	BacklogRate    *float64   `json:"backlog_rate"`     // items per second by which they become more
	BacklogTrend   *string    `json:"backlog_trend"`    // EMPTY, DRAINING, STEADY, GROWING, STUCK, or empty
	ReservedFor    *string    `json:"reserved_for"`     // the name of the process for which the queue waits; nil: none
	ReservedUntil  *time.Time `json:"reserved_until"`
	Pin            string     `json:"pin"` // labels that a server must have to own the queue; empty: none
	roster.QueueLimits
	// FailingFor is for how long all calls of the queue have failed; nil: they have not.
	FailingFor *float64 `json:"failing_s"`
	// WaitsFor is the rule that no server meets, so that the queue has no owner; nil: it has one, or no plan was made yet.
	WaitsFor *string `json:"waits_for"`
	Status   string  `json:"status"`          // HELD, MOVING, OVERDUE, ORPHAN, RESERVED or UNASSIGNED
	Removing bool    `json:"removing" db:"-"` // it is removed as soon as it is drained
	// Resizing is the total that the queue gets as soon as it is drained: it is to be split or merged; nil: it is not.
	Resizing *int64 `json:"resizing" db:"-"`
	// HungOn has the uuids of the servers that do not get it, because calls of their processes' former sessions are in
	// flight for it (P9).
	HungOn []string `json:"hung_on" db:"-"`
}

// Lost reports whether the queue has no live owner.
func (q QueueRecord) Lost() bool {
	switch q.Status {
	case "OVERDUE", "ORPHAN", "UNASSIGNED", "RESERVED":
		return true
	}
	return false
}

// QueueFilter selects queues. Empty fields select all.
type QueueFilter struct {
	TaskType string
	Servers  []string // uuids of the owner or of the requester
	Host     string   // host name of the owner or of the requester
	Status   string
}

// List lists the queues of this own_sign in natural order.
func (q *Queues) List(ctx context.Context, f QueueFilter) ([]QueueRecord, error) {
	w := sqldb.Where{Args: []any{q.c.ownSign}}
	w.Equal("task_type", f.TaskType)
	w.Equal("status", f.Status)
	if len(f.Servers) > 0 {
		w.And("(cur_server IN ("+sqldb.Marks(len(f.Servers))+") OR req_server IN ("+sqldb.Marks(len(f.Servers))+"))",
			sqldb.Args(slices.Repeat(f.Servers, 2))...)
	}
	if f.Host != "" {
		w.And("(cur_host = ? OR req_host = ?)", f.Host, f.Host)
	}
	list, err := sqldb.Records[QueueRecord](ctx, q.c.db, `SELECT {columns} FROM schedule_assignment
		WHERE own_sign = ?`+w.Text+` ORDER BY task_type, queue_id`, w.Args...)
	if err != nil {
		return nil, fmt.Errorf("list the queues: %w", err)
	}
	sortQueues(list)
	err = q.markListed(ctx, list, `SELECT task_type, uuid, hung_queues FROM schedule_server
		WHERE own_sign = ? AND hung_queues IS NOT NULL ORDER BY task_type, uuid`,
		func(queue *QueueRecord, server string) { queue.HungOn = append(queue.HungOn, server) })
	if err != nil {
		return nil, fmt.Errorf("list the hung queues: %w", err)
	}
	return list, q.markChanging(ctx, list)
}

// markChanging notes which queues are to be removed, split or merged.
func (q *Queues) markChanging(ctx context.Context, queues []QueueRecord) error {
	type row struct {
		TaskType string
		Changes  roster.Changes
	}
	rows, err := sqldb.Records[row](ctx, q.c.db, `SELECT task_type, queue_changes FROM schedule_task_running
		WHERE own_sign = ? AND queue_changes IS NOT NULL ORDER BY task_type`, q.c.ownSign)
	for _, r := range rows {
		for i := range queues {
			if queues[i].TaskType != r.TaskType {
				continue
			}
			queues[i].Removing = r.Changes.Removes(queues[i].QueueID)
			if total := int64(r.Changes.Total(queues[i].QueueID)); total > 0 {
				queues[i].Resizing = &total
			}
		}
	}
	return sqldb.Wrap(err, "list the queues to be removed, split or merged")
}

// sortQueues sorts naturally, queue 2 before queue 10.
func sortQueues(queues []QueueRecord) {
	slices.SortStableFunc(queues, func(a, b QueueRecord) int {
		if c := strings.Compare(a.TaskType, b.TaskType); c != 0 {
			return c
		}
		return plan.CompareIDs(a.QueueID, b.QueueID)
	})
}

// markListed passes each of the queues that a row lists to mark, with the server of the row. The query selects the
// task type, the server and the list.
func (q *Queues) markListed(ctx context.Context, queues []QueueRecord, query string,
	mark func(queue *QueueRecord, server string),
) error {
	type row struct {
		TaskType, Server string
		Queues           []string
	}
	rows, err := sqldb.Records[row](ctx, q.c.db, query, q.c.ownSign)
	for _, r := range rows {
		for i := range queues {
			if queues[i].TaskType == r.TaskType && slices.Contains(r.Queues, queues[i].QueueID) {
				mark(&queues[i], r.Server)
			}
		}
	}
	return err
}

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
	BacklogDraining = "DRAINING" // there are fewer items than there were, and the last four counts still became less
	BacklogSteady   = "STEADY"   // the number stays about the same
	BacklogGrowing  = "GROWING"  // no count was less than the one before, and the last one is more
	BacklogStuck    = "STUCK"    // no count was less than the one before, and the oldest item is the same
)

// FreshBacklog is how old a count may be that an autoscaler uses. An owner counts each of its queues about every 10 s.
const FreshBacklog = time.Minute

// EstimateBacklog returns how many items a number of queues have left. items is the sum over the counted queues. The
// others are taken for as full as these, and never for empty: with 60 items in 6 counted queues of 10, the estimate is
// 100. It is not known if fewer than half were counted.
func EstimateBacklog(items, counted, queues int64) (estimate int64, known bool) {
	if counted == 0 || 2*counted < queues {
		return 0, false
	}
	return extrapolate(items, counted, queues), true
}

// extrapolate estimates the items of all queues from the items of the counted ones.
func extrapolate(items, counted, queues int64) int64 {
	if counted == 0 || counted >= queues {
		return items
	}
	return int64(min(math.Ceil(float64(items)*float64(queues)/float64(counted)), math.MaxInt64/2))
}

// SaveBacklogs records what the owners of queues have counted. Of several counts of a queue, such as before and after a
// split, it records the last. It locks no row of the roster, and waits for no fence. A row of a later epoch stays as it
// is. A time that no column holds, as of an item with a mistyped year, counts as the bound: the counts of the other
// queues are in the same statement. It is called by managers.
func (q *Queues) SaveBacklogs(ctx context.Context, taskType string, list []QueueBacklog) error {
	list = sqldb.LastOfEach(list, func(b QueueBacklog) string { return b.QueueID })
	for part := range slices.Chunk(list, roster.InsertRows) {
		var values []string
		var args []any
		for _, b := range part {
			var oldest any
			if !b.Oldest.IsZero() {
				oldest = q.c.db.Time(sqldb.ClampTime(b.Oldest))
			}
			values = append(values, "(?, ?, ?, ?, ?, ?, {ago ?}, ?, ?, ?, ?)")
			args = append(args, taskType, q.c.ownSign, b.QueueID, b.Epoch, max(0, b.Items), oldest, b.Age.Milliseconds(),
				b.Took.Milliseconds(), b.Rate, b.Trend, b.Demand)
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

// BacklogETA returns in how many seconds the backlog will be done at its present rate, or nil if it is not draining.
func (q QueueRecord) BacklogETA() *float64 {
	if q.BacklogTrend == nil || *q.BacklogTrend != BacklogDraining {
		return nil
	}
	return backlogETA(q.BacklogItems, q.BacklogRate)
}

// BacklogPartial reports whether some queues have never been counted, so that more is left than BacklogItems.
func (t TaskRecord) BacklogPartial() bool {
	return t.BacklogQueues != nil && *t.BacklogQueues < t.QueueTotal
}

// BacklogETA returns in how many seconds the backlogs of all queues will be done at their present rate together, or nil
// if they do not become less, if dead items are all that is left, or if no server executes any: the rate is that of
// counts before.
func (t TaskRecord) BacklogETA() *float64 {
	if t.BacklogItems != nil && *t.BacklogItems <= t.DeadItems || t.FailingServers >= t.Servers {
		return nil
	}
	return backlogETA(t.BacklogItems, t.BacklogRate)
}

func backlogETA(items *int64, rate *float64) *float64 {
	if items == nil || rate == nil || *rate >= 0 {
		return nil
	}
	eta := float64(*items) / -*rate
	return &eta
}
