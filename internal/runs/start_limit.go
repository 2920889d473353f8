package runs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// startLimits returns how long new runs of the task types may wait until they are opened (R13). A task type without a
// limit is not in the map.
func startLimits(ctx context.Context, l *roster.LockTx, runs []Run) (map[string]time.Duration, error) {
	type taskLimit struct {
		Name  string
		Limit time.Duration
	}
	limits := map[string]time.Duration{}
	var names []string
	for _, r := range runs {
		names = append(names, r.TaskType)
	}
	slices.Sort(names)
	for part := range slices.Chunk(slices.Compact(names), roster.InsertRows) {
		list, err := sqldb.Records[taskLimit](ctx, l, `SELECT task_type, run_start_timeout_ms FROM schedule_task_type WHERE run_start_timeout_ms > 0
			AND task_type IN (`+sqldb.Marks(len(part))+`) ORDER BY task_type`, sqldb.Args(part)...)
		if err != nil {
			return nil, fmt.Errorf("read run_start_timeout: %w", err)
		}
		for _, t := range list {
			limits[t.Name] = t.Limit
		}
	}
	return limits, nil
}

// startDeadline returns until when the run must be opened: for run_start_timeout from now on, or from the time before
// which it is not opened, and not after it must have ended. It is zero if there is no limit.
func (r Run) startDeadline(now time.Time, limit time.Duration) time.Time {
	if limit == 0 {
		return r.EndBefore
	}
	from := now
	if r.NotBefore.After(now) {
		from = r.NotBefore
	}
	return r.earlier(from.Add(limit))
}

// earlier returns the instant, or the one by which the run must have ended if that is earlier.
func (r Run) earlier(at time.Time) time.Time {
	if !r.EndBefore.IsZero() && r.EndBefore.Before(at) {
		return r.EndBefore
	}
	return at
}

// restartLimit begins the wait of a run anew, after it was reopened. An EndBefore that has passed does not count any
// more: otherwise no run that failed because of it could be rerun.
func restartLimit(ctx context.Context, t sqldb.Tx, runID string) error {
	if _, err := t.Exec(ctx, `UPDATE schedule_run SET end_before = NULL WHERE run_id = ? AND end_before <= {now}`, runID); err != nil {
		return err
	}
	var r Run
	var limit time.Duration
	var now sqldb.Instant
	err := t.QueryRow(ctx, `SELECT {now}, r.not_before, r.end_before, COALESCE(t.run_start_timeout_ms, 0) FROM schedule_run r
		LEFT JOIN schedule_task_type t ON t.task_type = r.task_type WHERE r.run_id = ?`, runID).
		Scan(&now, (*sqldb.Instant)(&r.NotBefore), (*sqldb.Instant)(&r.EndBefore), (*sqldb.Millis)(&limit))
	if err != nil {
		return fmt.Errorf("read run_start_timeout: %w", err)
	}
	_, err = t.Exec(ctx, `UPDATE schedule_run SET deadline_at = ? WHERE run_id = ?`, t.Dialect.TimeOrNull(r.startDeadline(time.Time(now), limit)), runID)
	return err
}
