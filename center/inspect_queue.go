package center

import (
	"context"
	"fmt"
	"slices"
)

// QueueRecord is a queue with its owner, as the view schedule_assignment tells it.
type QueueRecord struct {
	TaskType       string   `json:"task_type" db:"a.task_type"`
	OwnSign        string   `json:"own_sign" db:"a.own_sign"`
	QueueID        string   `json:"queue_id" db:"a.queue_id"`
	QueueIndex     int64    `json:"queue_index" db:"q.queue_index"`
	CurServer      *string  `json:"cur_server" db:"a.cur_server"`
	CurHost        *string  `json:"cur_host" db:"a.cur_host"`
	CurPID         *int64   `json:"cur_pid" db:"a.cur_pid"`
	CurState       *string  `json:"cur_state" db:"a.cur_state"`
	HeartbeatAge   *float64 `json:"cur_heartbeat_age_s" db:"a.cur_heartbeat_age_s"`
	ReqServer      *string  `json:"req_server" db:"a.req_server"`
	ReqHost        *string  `json:"req_host" db:"a.req_host"`
	Held           *float64 `json:"held_s" db:"a.held_s"`
	Requested      *float64 `json:"requested_s" db:"a.requested_s"`
	Epoch          int64    `json:"epoch" db:"a.epoch"`
	QueueParameter string   `json:"queue_parameter" db:"q.queue_parameter"`
	CursorValue    string   `json:"cursor_value" db:"a.cursor_value"`
	Status         string   `json:"status" db:"a.status"` // HELD, MOVING, OVERDUE, ORPHAN or UNASSIGNED
	Removing       bool     `json:"removing" db:"-"`      // it goes as soon as it is drained
}

// QueueFilter says which queues are asked for. Empty fields ask for all.
type QueueFilter struct {
	TaskType string
	Server   string // uuid of the owner, or of who is to have it next
	Host     string // the same, by the name of the host
	Status   string
}

// Queues lists the queues of this own_sign in natural order.
func (c *Center) Queues(ctx context.Context, f QueueFilter) ([]QueueRecord, error) {
	w := where{args: []any{c.ownSign}}
	w.equal("a.task_type", f.TaskType)
	w.equal("a.status", f.Status)
	if f.Server != "" {
		w.and("(a.cur_server = ? OR a.req_server = ?)", f.Server, f.Server)
	}
	if f.Host != "" {
		w.and("(a.cur_host = ? OR a.req_host = ?)", f.Host, f.Host)
	}
	list, err := records[QueueRecord](ctx, c, `SELECT {columns} FROM schedule_assignment a
		JOIN schedule_queue q ON q.task_type = a.task_type AND q.own_sign = a.own_sign AND q.queue_id = a.queue_id
		WHERE a.own_sign = ?`+w.text+` ORDER BY a.task_type, a.queue_id`, w.args...)
	if err != nil {
		return nil, fmt.Errorf("list the queues: %w", err)
	}
	sortQueues(list)
	return list, c.markRemoving(ctx, list)
}

// markRemoving marks the queues that the lock rows list.
func (c *Center) markRemoving(ctx context.Context, queues []QueueRecord) error {
	type record struct {
		TaskType string   `json:"task_type"`
		Removing []string `json:"removing"`
	}
	rows, err := records[record](ctx, c, `SELECT {columns} FROM schedule_task_running
		WHERE own_sign = ? AND removing IS NOT NULL ORDER BY task_type`, c.ownSign)
	if err != nil {
		return fmt.Errorf("list the queues that are to go: %w", err)
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
