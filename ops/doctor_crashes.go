package ops

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/sqldb"
)

// crashes reports queues whose owners were expired one after the other before they had executed a page (S14).
func (d queueCheck) crashes(ctx context.Context, taskType string, most int) error {
	type queue struct {
		ID      string
		Crashes int64
	}
	queues, err := sqldb.Records[queue](ctx, d.c.db, `SELECT queue_id, crash_count FROM schedule_queue WHERE task_type = ? AND own_sign = ? AND crash_count > ? ORDER BY queue_id`,
		taskType, d.c.ownSign, most)
	if err == nil && len(queues) > 0 {
		var list []string
		for _, q := range queues {
			list = append(list, fmt.Sprintf("%s (%d)", q.ID, q.Crashes))
		}
		d.add(condition.Crashes, "queues whose owners have died one after the other: %s", firstFive(list))
	}
	return err
}
