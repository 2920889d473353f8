package roster

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Unserved returns the task types of the environment that have queues, are not paused, and that no server has served
// for their judge_dead_interval. They have no server of their own that could raise an alert. Unserved leaves out a task
// type whose queues have changed within that time: a server is about to serve it, or served it until now.
//
// After an outage of the database all servers look silent: the caller must have watched for long enough (S7).
func (r *Roster) Unserved(ctx context.Context) (taskTypes []string, err error) {
	taskTypes, err = sqldb.Records[string](ctx, r.DB, `SELECT r.task_type FROM schedule_task_running r JOIN schedule_task_type t ON t.task_type = r.task_type
		WHERE r.own_sign = ? AND r.queue_total > 0 AND NOT r.paused
		AND NOT EXISTS (SELECT 1 FROM schedule_server s WHERE s.task_type = r.task_type AND s.own_sign = r.own_sign
			AND s.heartbeat_time >= {ago s.judge_dead_interval_ms})
		AND NOT EXISTS (SELECT 1 FROM schedule_queue q WHERE q.task_type = r.task_type AND q.own_sign = r.own_sign
			AND q.gmt_modified >= {ago t.judge_dead_interval_ms})
		ORDER BY r.task_type`, r.OwnSign)
	if err != nil {
		return nil, fmt.Errorf("look for task types without servers in %s: %w", r.OwnSign, err)
	}
	return taskTypes, nil
}
