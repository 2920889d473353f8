package center

import (
	"context"
	"fmt"
)

// Pulse differs from the Pulse before if the roster of this own_sign has changed: a queue has moved, a server has joined,
// left or fallen silent, an operator has done something, there is an alert. Heartbeats, the progress of work and items that
// fail do not change it. It tells programs that watch a roster when it is worthwhile to read all of it.
type Pulse struct {
	Event      int64 // the number of the last event, in all environments
	Membership int64 // the versions of the lock rows
	Items      int64
	Overdue    int64 // servers that have been silent for longer than their judge_dead_interval
}

// Pulse reads the Pulse in one statement, which does not grow with the number of queues.
func (c *Center) Pulse(ctx context.Context) (p Pulse, err error) {
	err = c.db.QueryRow(ctx, `SELECT (SELECT COALESCE(MAX(event_id), 0) FROM schedule_event), COALESCE(SUM(membership_version), 0), COALESCE(SUM(item_version), 0),
		(SELECT COUNT(*) FROM schedule_server WHERE own_sign = ? AND heartbeat_time < {ago judge_dead_interval_ms})
		FROM schedule_task_running WHERE own_sign = ?`, c.ownSign, c.ownSign).Scan(&p.Event, &p.Membership, &p.Items, &p.Overdue)
	if err != nil {
		return p, fmt.Errorf("read the pulse of the roster: %w", err)
	}
	return p, nil
}
