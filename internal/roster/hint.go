package roster

import (
	"context"

	"github.com/dutyrota/rota/internal/sqldb"
)

// LeaveHint leaves a hint in the row of a task type whose writers all send hints (hinted), on a database without
// notifications (X9). The statement commits at once: a transaction that did it with its inserts would make all such
// transactions wait for each other. It is tried again while another transaction holds the row, or on SQLite the file.
func (r *Roster) LeaveHint(ctx context.Context, taskType string) error {
	_, err := r.DB.Repeat(ctx, `UPDATE schedule_task_type SET hint_version = hint_version + 1
		WHERE task_type = ? AND hinted`, taskType)
	return sqldb.Wrap(err, "leave a hint")
}

// HintVersions returns a number for each of the task types, which changes when a hint is left.
func (r *Roster) HintVersions(ctx context.Context, taskTypes []string) (map[string]int64, error) {
	rows, err := sqldb.RecordsIn[struct {
		TaskType string
		Version  int64
	}](ctx, r.DB, taskTypes, `SELECT task_type, hint_version FROM schedule_task_type WHERE task_type IN ({ids})`)
	if err != nil {
		return nil, sqldb.Wrap(err, "read hints")
	}
	versions := make(map[string]int64, len(rows))
	for _, row := range rows {
		versions[row.TaskType] = row.Version
	}
	return versions, nil
}
