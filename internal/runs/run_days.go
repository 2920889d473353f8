package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// RunDay counts the runs of a task type in one state that were scheduled on one day.
type RunDay struct {
	TaskType string `json:"task_type"`
	Day      string `json:"day"` // of UTC: 2026-11-22
	State    string `json:"state"`
	Runs     int64  `json:"runs"`
}

// Days counts the runs of the last days by task type, day and state: those of today and of so many days before it.
func (rs *Runs) Days(ctx context.Context, days int) ([]RunDay, error) {
	now, err := rs.db.Clock(ctx)
	if err != nil {
		return nil, err
	}
	first := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -days)
	list, err := sqldb.Records[RunDay](ctx, rs.db, `SELECT {columns} FROM (
		SELECT task_type, `+rs.db.ScheduledDay+` AS day, state, COUNT(*) AS runs FROM schedule_run WHERE own_sign = ? AND scheduled_at >= ?
		GROUP BY task_type, `+rs.db.ScheduledDay+`, state) x ORDER BY task_type, day, state`, rs.ownSign, rs.db.Time(first))
	if err != nil {
		return nil, fmt.Errorf("count the runs by day: %w", err)
	}
	return list, nil
}
