package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// ErrRunOver means that the queue of the run is not this sweep's any more: the run was cancelled, or its deadline has
// passed, or another sweep has claimed the queue, or it is finished. The sweep ends; nothing of it is to be saved.
var ErrRunOver = errors.New("the queue of the run is not this sweep's any more")

// Progress is how far the sweep of a queue has come.
type Progress struct {
	// Cursor is where the next sweep of the queue in this run would begin; nil leaves it as it is.
	Cursor *string
	// ItemsDone and ItemsFailed are totals of the queue in this run, those of earlier sweeps included.
	ItemsDone, ItemsFailed int64
}

// SaveSweep saves how far a sweep has come, in a transaction that fences the queue (R8). Progress makes the take-overs
// that came before it count no more. ErrFenced if the server does not own the queue under that epoch any more,
// ErrRunOver if the sweep is over for another reason.
func (e *Engine) SaveSweep(ctx context.Context, s Sweep, p Progress) error {
	return e.UpdateSweep(ctx, s, p, "save", RunQueueRunning, ``)
}

// FinishSweep notes that the queue is drained: an empty select and nothing in hand (R9). When it was the last, the run
// ends. Errors are those of SaveSweep, and then the queue is not done; what fails after that, a tick repeats.
func (e *Engine) FinishSweep(ctx context.Context, s Sweep, p Progress) error {
	err := e.UpdateSweep(ctx, s, p, "finish", RunQueueDone, `, finished_at = {now}, last_error = ''`)
	if err != nil {
		return err
	}
	e.tryClose(ctx, s)
	return nil
}

// SuspendSweep gives a queue up that is about to change hands, or is paused: whoever owns it next begins where this
// sweep has ended, and it counts neither as an attempt nor as a take-over. Errors are those of SaveSweep.
func (e *Engine) SuspendSweep(ctx context.Context, s Sweep, p Progress) error {
	return e.UpdateSweep(ctx, s, p, "suspend", RunQueuePending, `, attempt = attempt - 1`)
}

// FailSweep notes that the sweep of a queue has failed. The queue is tried again after queue_retry, which doubles each
// time, up to queue_max_attempts, and if the failure is final not at all: then the queue has failed, and with it the
// run, once its other queues are finished. It tells whether the queue has failed. Errors are those of SaveSweep.
func (e *Engine) FailSweep(ctx context.Context, s Sweep, p Progress, cause string, final bool) (failed bool, err error) {
	var most int
	var retry time.Duration
	err = e.db.Dealers.QueryRowContext(ctx, e.db.SQL(`SELECT queue_max_attempts, queue_retry_ms FROM schedule_task_type WHERE task_type = ?`), s.TaskType).
		Scan(&most, (*sqldb.Millis)(&retry))
	if err != nil && !sqldb.NoRows(err) {
		return false, fmt.Errorf("fail queue %s of run %s: %w", s.QueueID, s.RunID, err)
	}
	most, retry = cmp.Or(most, e.defaults.QueueMaxAttempts), cmp.Or(retry, e.defaults.QueueRetry)
	if !final && s.Attempt < most {
		again := retryDelay(retry, s.Attempt)
		return false, e.UpdateSweep(ctx, s, p, "fail", RunQueuePending, `, last_error = ?, next_attempt_at = {ago ?}`, sqldb.Clean(cause), -again.Milliseconds())
	}
	if err := e.UpdateSweep(ctx, s, p, "fail", RunQueueFailed, `, last_error = ?, finished_at = {now}`, sqldb.Clean(cause)); err != nil {
		return false, err
	}
	e.tryClose(ctx, s)
	return true, nil
}

// maxRetryDelay ends the doubling.
const maxRetryDelay = 24 * time.Hour

// retryDelay is how long a queue waits after its n-th failure.
func retryDelay(first time.Duration, n int) time.Duration {
	pause := first
	for ; n > 1 && pause < maxRetryDelay; n-- {
		pause *= 2
	}
	return max(first, min(pause, maxRetryDelay))
}

// tryClose closes the run if the sweep was the last. That the queue is done is committed: an error here changes
// nothing of that, and the next tick closes the run.
func (e *Engine) tryClose(ctx context.Context, s Sweep) {
	var open int
	err := e.db.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_run_queue WHERE run_id = ?
		AND state IN ('`+RunQueuePending+`', '`+RunQueueRunning+`')`, s.RunID).Scan(&open)
	if err == nil && open == 0 {
		err = e.CloseRun(ctx, s.RunID)
	}
	if err != nil {
		e.log.WithError(err).WithField("task_type", s.TaskType).Debug("the next tick closes the run")
	}
}

// saveSweep writes the row of a sweep, in a transaction of the dealers' pool that fences the queue. What surely or
// perhaps has been written before, by a try whose reply was lost, is found by the state that it leads to.
func (e *Engine) UpdateSweep(ctx context.Context, s Sweep, p Progress, what, state, set string, args ...any) error {
	tried := false
	err := e.db.Transact(ctx, e.db.Dealers, func(ctx context.Context, t sqldb.Tx) error {
		if err := e.fenceSweep(ctx, t, s); err != nil {
			return err
		}
		n, err := writeSweep(ctx, t, s, p, state, set, args...)
		if err == nil && n == 0 && tried {
			n, err = sweepWasSaved(ctx, t, s, state)
		}
		if err == nil && n == 0 {
			err = ErrRunOver
		}
		tried = true
		return err
	})
	if err != nil {
		return fmt.Errorf("%s queue %s of run %s: %w", what, s.QueueID, s.RunID, err)
	}
	return nil
}

func writeSweep(ctx context.Context, t sqldb.Tx, s Sweep, p Progress, state, set string, args ...any) (int, error) {
	all := []any{p.ItemsDone, p.ItemsFailed}
	progress := `items_done <> ? OR items_failed <> ?`
	if p.Cursor != nil {
		progress, set = progress+` OR cursor_value <> ?`, `, cursor_value = ?`+set
		all, args = append(all, *p.Cursor), append([]any{*p.Cursor}, args...)
	}
	all = append(append(all, state, p.ItemsDone, p.ItemsFailed), args...)
	// recoveries and progress_at before what they compare with is overwritten: MySQL goes from left to right (L6).
	return t.Exec(ctx, `UPDATE schedule_run_queue SET recoveries = CASE WHEN `+progress+` THEN 0 ELSE recoveries END,
		progress_at = {now}, state = ?, items_done = ?, items_failed = ?`+set+`
		WHERE run_id = ? AND queue_id = ? AND state = '`+RunQueueRunning+`' AND server = ? AND epoch = ?`,
		append(all, s.RunID, s.QueueID, s.Server, s.Epoch)...)
}

func sweepWasSaved(ctx context.Context, t sqldb.Tx, s Sweep, state string) (n int, err error) {
	err = t.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_run_queue WHERE run_id = ? AND queue_id = ? AND state = ? AND server = ? AND epoch = ?`,
		s.RunID, s.QueueID, state, s.Server, s.Epoch).Scan(&n)
	return n, err
}

// SweepCursor reads how far a queue was read in a run. ErrFenced if its sweep is not that of the server and the epoch
// any more.
func (e *Engine) SweepCursor(ctx context.Context, runID, server string, q roster.QueueEpoch) (cursor string, err error) {
	err = e.db.Dealers.QueryRowContext(ctx, e.db.SQL(`SELECT cursor_value FROM schedule_run_queue
		WHERE run_id = ? AND queue_id = ? AND state = '`+RunQueueRunning+`' AND server = ? AND epoch = ?`), runID, q.ID, server, q.Epoch).Scan(&cursor)
	if sqldb.NoRows(err) {
		err = fmt.Errorf("%w: %w", roster.ErrFenced, ErrRunOver)
	}
	if err != nil {
		return "", fmt.Errorf("read the cursor of queue %s of run %s: %w", q.ID, runID, err)
	}
	return cursor, nil
}
