package runs

import (
	"context"
	"fmt"
)

// Unfinished counts the queues of a run that are neither done nor failed nor cancelled. own counts the queues of the
// server, all the queues of all servers. A server's part of a shared rate is own divided by all (X4).
func (sw *Sweeps) Unfinished(ctx context.Context, runID, server string) (own, all int, err error) {
	err = sw.db.QueryRow(ctx, `SELECT COUNT(CASE WHEN o.cur_server = ? THEN 1 END), COUNT(*)
		FROM schedule_run_queue q JOIN schedule_run r ON r.run_id = q.run_id
		LEFT JOIN schedule_queue o ON o.task_type = r.task_type AND o.own_sign = r.own_sign AND o.queue_id = q.queue_id
		WHERE q.run_id = ? AND q.state IN ('`+RunQueuePending+`', '`+RunQueueRunning+`')`, server, runID).Scan(&own, &all)
	if err != nil {
		return 0, 0, fmt.Errorf("count the unfinished queues of run %s: %w", runID, err)
	}
	return own, all, nil
}
