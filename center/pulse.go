package center

import (
	"context"
	"fmt"
)

// Pulse differs from the Pulse before if the roster of this own_sign has changed: a queue has moved, a server has joined,
// left or fallen silent, a run has begun or ended, an operator has done something, there is an alert. Heartbeats, the
// progress of work and items that fail do not change it. It tells programs that watch a roster when it is worthwhile to
// read all of it.
type Pulse struct {
	Events     int64  // the sum of the last event ids, in all environments: an event can be committed after one with a higher id
	Run        string // the newest run, in all environments
	RunChanges int64  // the versions of the newest hundred runs
	Membership int64  // the versions of the lock rows
	Items      int64
	Overdue    int64 // servers that have been silent for longer than their judge_dead_interval
}

// Pulse reads the Pulse in one statement, which does not grow with the number of queues or of runs.
func (c *Center) Pulse(ctx context.Context) (p Pulse, err error) {
	err = c.db.QueryRow(ctx, `SELECT (SELECT COALESCE(SUM(event_id), 0) FROM (SELECT event_id FROM schedule_event ORDER BY event_id DESC LIMIT 20) e),
		(SELECT COALESCE(MAX(run_id), '') FROM schedule_run),
		(SELECT COALESCE(SUM(version), 0) FROM (SELECT version FROM schedule_run ORDER BY run_id DESC LIMIT 100) r),
		COALESCE(SUM(membership_version), 0), COALESCE(SUM(item_version), 0), (SELECT COUNT(*) FROM schedule_server WHERE own_sign = ? AND heartbeat_time < {ago judge_dead_interval_ms})
		FROM schedule_task_running WHERE own_sign = ?`, c.ownSign, c.ownSign).Scan(&p.Events, &p.Run, &p.RunChanges, &p.Membership, &p.Items, &p.Overdue)
	if err != nil {
		return p, fmt.Errorf("read the pulse of the roster: %w", err)
	}
	return p, nil
}
