package runs

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// startLimits returns how long new runs of the task types may wait until they are opened (R13). A task type without a
// limit is not in the map.
func startLimits(ctx context.Context, l *roster.LockTx, runs []Run) (map[string]time.Duration, error) {
	limits := map[string]time.Duration{}
	var names []string
	for _, r := range runs {
		names = append(names, r.TaskType)
	}
	slices.Sort(names)
	for part := range slices.Chunk(slices.Compact(names), roster.InsertRows) {
		err := l.Each(ctx, func(rows *sql.Rows) error {
			var name string
			var limit time.Duration
			err := rows.Scan(&name, (*sqldb.Millis)(&limit))
			limits[name] = limit
			return err
		}, `SELECT task_type, run_start_timeout_ms FROM schedule_task_type WHERE run_start_timeout_ms > 0
			AND task_type IN (`+sqldb.Marks(len(part))+`) ORDER BY task_type`, sqldb.Args(part)...)
		if err != nil {
			return nil, fmt.Errorf("read run_start_timeout: %w", err)
		}
	}
	return limits, nil
}

// startDeadline returns the deadline of a new run, nil if it has none. A run that has ended has none.
func startDeadline(l *roster.LockTx, r Run, limits map[string]time.Duration) any {
	if limits[r.TaskType] == 0 || r.Ended() {
		return nil
	}
	return l.Dialect.Time(l.Now.Add(limits[r.TaskType]))
}

// restartLimit begins the wait of a run anew, after it was reopened.
func restartLimit(ctx context.Context, t sqldb.Tx, runID string) error {
	var limit time.Duration
	err := t.QueryRow(ctx, `SELECT t.run_start_timeout_ms FROM schedule_run r JOIN schedule_task_type t ON t.task_type = r.task_type
		WHERE r.run_id = ?`, runID).Scan((*sqldb.Millis)(&limit))
	if err != nil && !sqldb.NoRows(err) {
		return fmt.Errorf("read run_start_timeout: %w", err)
	}
	set, args := `NULL`, []any{runID}
	if limit > 0 {
		set, args = `{ago ?}`, []any{-limit.Milliseconds(), runID}
	}
	_, err = t.Exec(ctx, `UPDATE schedule_run SET deadline_at = `+set+` WHERE run_id = ?`, args...)
	return err
}
