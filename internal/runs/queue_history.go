package runs

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// QueueRun is a queue in one of the runs of its task type.
type QueueRun struct {
	RunID string `json:"run_id"`
	RunQueue
}

// OfQueue returns what a queue did in the latest runs of its task type, the newest first. Runs that were not opened, or
// that had no such queue, are left out.
func (rs *Runs) OfQueue(ctx context.Context, taskType, queueID string, limit int) ([]QueueRun, error) {
	list, err := sqldb.Records[QueueRun](ctx, rs.db, fmt.Sprintf(`SELECT {columns} FROM (SELECT q.* FROM
		(SELECT run_id FROM schedule_run WHERE own_sign = ? AND task_type = ? ORDER BY run_id DESC LIMIT %d) r
		JOIN schedule_run_queue q ON q.run_id = r.run_id WHERE q.queue_id = ?) x ORDER BY run_id DESC`, max(limit, 1)), rs.ownSign, taskType, queueID)
	if err != nil {
		return nil, fmt.Errorf("read the runs of queue %s of %s: %w", queueID, taskType, err)
	}
	return list, nil
}
