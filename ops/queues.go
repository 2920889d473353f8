package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/plan"
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
	Pin            string     `json:"pin"`             // labels that a server must have to own the queue; empty: none
	FailingFor     *float64   `json:"failing_s"`       // for how long all calls of the queue have failed; nil: they have not
	WaitsFor       *string    `json:"waits_for"`       // why the queue has no owner: the rule that no server meets; nil: it has one, or no plan has said
	Status         string     `json:"status"`          // HELD, MOVING, OVERDUE, ORPHAN, RESERVED or UNASSIGNED
	Removing       bool       `json:"removing" db:"-"` // it is removed as soon as it is drained
	HungOn         []string   `json:"hung_on" db:"-"`  // uuids of the servers that do not get it, because calls of their processes' former sessions are in flight for it (P9)
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
		w.And("(cur_server IN ("+sqldb.Marks(len(f.Servers))+") OR req_server IN ("+sqldb.Marks(len(f.Servers))+"))", sqldb.Args(slices.Repeat(f.Servers, 2))...)
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
	if err := q.markHung(ctx, list); err != nil {
		return nil, err
	}
	return list, q.markRemoving(ctx, list)
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

// markRemoving marks the queues that the lock rows list.
func (q *Queues) markRemoving(ctx context.Context, queues []QueueRecord) error {
	type record struct {
		TaskType string   `json:"task_type"`
		Removing []string `json:"removing"`
	}
	rows, err := sqldb.Records[record](ctx, q.c.db, `SELECT {columns} FROM schedule_task_running
		WHERE own_sign = ? AND removing IS NOT NULL ORDER BY task_type`, q.c.ownSign)
	if err != nil {
		return fmt.Errorf("list the queues to be removed: %w", err)
	}
	for _, r := range rows {
		for i := range queues {
			if queues[i].TaskType == r.TaskType && slices.Contains(r.Removing, queues[i].QueueID) {
				queues[i].Removing = true
			}
		}
	}
	return nil
}

// markHung notes the servers that list a queue as hung.
func (q *Queues) markHung(ctx context.Context, queues []QueueRecord) error {
	type record struct {
		TaskType string   `json:"task_type"`
		UUID     string   `json:"uuid"`
		Hung     []string `json:"hung_queues"`
	}
	rows, err := sqldb.Records[record](ctx, q.c.db, `SELECT {columns} FROM schedule_server
		WHERE own_sign = ? AND hung_queues IS NOT NULL ORDER BY task_type, uuid`, q.c.ownSign)
	if err != nil {
		return fmt.Errorf("list the hung queues: %w", err)
	}
	for _, r := range rows {
		for i := range queues {
			if queues[i].TaskType == r.TaskType && slices.Contains(r.Hung, queues[i].QueueID) {
				queues[i].HungOn = append(queues[i].HungOn, r.UUID)
			}
		}
	}
	return nil
}
