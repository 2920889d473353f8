package runs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// openTries bounds the READY runs that one call tries to open.
const openTries = 20

// openNext opens the READY run of the highest priority, the oldest of them first, unless a run is RUNNING, the task
// type is paused or a repartition is under way (R6). It returns the runs that ended because they could not be opened.
func (s *Scheduler) openNext(ctx context.Context, taskType string) (ended []string, err error) {
	err = s.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *roster.LockTx) error {
		ended = nil
		if busy, err := openingForbidden(ctx, l); err != nil || busy {
			return err
		}
		for range openTries {
			id, err := nextReady(ctx, l)
			if err != nil || id == "" {
				return err
			}
			state, err := openRun(ctx, l, id, s.runTimeout)
			if err != nil || state == RunRunning {
				return err
			}
			if state != RunWaiting {
				ended = append(ended, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open a run of %w", err)
	}
	return ended, nil
}

func openingForbidden(ctx context.Context, l *roster.LockTx) (bool, error) {
	var paused bool
	var running int
	err := l.QueryRow(ctx, `SELECT k.paused, (SELECT COUNT(*) FROM schedule_run r WHERE r.task_type = k.task_type AND r.own_sign = k.own_sign
		AND r.state = '`+RunRunning+`') FROM schedule_task_running k WHERE k.task_type = ? AND k.own_sign = ?`, l.TaskType, l.OwnSign).Scan((*sqldb.Flag)(&paused), &running)
	return paused || running > 0 || l.RequestedTotal > 0, err
}

// mayBegin is the condition that the time has come before which a run is not opened.
const mayBegin = `(not_before IS NULL OR not_before <= {now})`

// nextReady returns the READY run that is opened next, "" if there is none. The slots of a backfill are older than all
// others. In the order of slots, its runs would hold up the other runs of their priority for as long as the backfill
// lasts. So its runs stand in the order in which they were made.
func nextReady(ctx context.Context, l *roster.LockTx) (id string, err error) {
	err = l.QueryRow(ctx, `SELECT run_id FROM schedule_run WHERE task_type = ? AND own_sign = ? AND state = '`+RunReady+`'
		AND NOT paused AND NOT cancel_requested AND `+mayBegin+` ORDER BY priority DESC, CASE WHEN backfill_id IS NULL THEN scheduled_at ELSE created_at END, run_id LIMIT 1`, l.TaskType, l.OwnSign).Scan(&id)
	if sqldb.NoRows(err) {
		return "", nil
	}
	return id, err
}

// openRun opens a READY run and returns its new state. With the run's row locked it reads the upstreams again, because
// a rerun may have reopened one of them.
func openRun(ctx context.Context, l *roster.LockTx, runID string, defaultTimeout time.Duration) (state string, err error) {
	ready, err := lockRun(ctx, l.Tx, runID, RunReady)
	if err == nil && !ready {
		err = sqldb.ErrRaced
	}
	if err != nil {
		return "", err
	}
	state, cause, err := upstreamState(ctx, l.Tx, runID)
	if err != nil {
		return "", err
	}
	if state != RunReady {
		return state, moveRun(ctx, l.Tx, runID, RunReady, state, cause)
	}
	total, err := snapshotQueues(ctx, l, runID)
	if err != nil {
		return "", err
	}
	if total == 0 {
		return RunFailed, moveRun(ctx, l.Tx, runID, RunReady, RunFailed, "the task type has no queues")
	}
	timeout, err := runTimeout(ctx, l, defaultTimeout)
	if err != nil {
		return "", err
	}
	var r Run
	if err := l.QueryRow(ctx, `SELECT end_before FROM schedule_run WHERE run_id = ?`, runID).Scan((*sqldb.Instant)(&r.EndBefore)); err != nil {
		return "", err
	}
	_, err = l.Exec(ctx, `UPDATE schedule_run SET state = '`+RunRunning+`', message = '', queue_total = ?, started_at = COALESCE(started_at, {now}),
		deadline_at = ?, finished_at = NULL WHERE run_id = ?`, total, l.Dialect.Time(r.earlier(l.Now.Add(timeout))), runID)
	return RunRunning, err
}

// runTimeout returns the timeout of a run. It is never zero, even if the row of the task type was deleted.
func runTimeout(ctx context.Context, l *roster.LockTx, byDefault time.Duration) (time.Duration, error) {
	var timeout time.Duration
	err := l.QueryRow(ctx, `SELECT run_timeout_ms FROM schedule_task_type WHERE task_type = ?`, l.TaskType).Scan((*sqldb.Millis)(&timeout))
	if err != nil && !sqldb.NoRows(err) {
		return 0, fmt.Errorf("read run_timeout: %w", err)
	}
	return cmp.Or(timeout, byDefault), nil
}
