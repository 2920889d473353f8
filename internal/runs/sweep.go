package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Sweep is a queue of a run that a server has claimed, with the progress of earlier sweeps.
type Sweep struct {
	RunID, Key, Params string
	TaskType           string
	QueueID            string
	QueueTotal         int    // of the run: an item belongs to the queue if mod(id, QueueTotal) is the queue's index, even after a repartition
	Server             string // the uuid of the server that claimed it
	Epoch              int64  // the queue's epoch at the claim

	MaxAttempts int // of the queue in this run; 0 is queue_max_attempts of the task type

	Attempt    int // 1 for the first
	Recoveries int // takeovers since the last progress: sweeps that did not record their end, because their processes died or lost the queue
	// Cursor, ItemsDone and ItemsFailed are what earlier sweeps of the queue in this run saved.
	Cursor                 string
	ItemsDone, ItemsFailed int64
	// FailedBefore are the keys of the items that failed in earlier sweeps of the queue in this run, also before a rerun,
	// and that no sweep has found in order since: at most 100, each cut to 255 characters.
	FailedBefore []string

	ScheduledAt time.Time
	StartedAt   time.Time // of the run: newer rows of the user belong to the next run
	DeadlineAt  time.Time
}

// Sweeps records the sweeps of the queues of the open run: a server claims a queue, saves its progress and ends the
// sweep.
type Sweeps struct {
	core
	closer   *closer
	log      *slog.Logger
	defaults Defaults
}

// Progress is the progress of the sweep of a queue.
type Progress struct {
	// Cursor is where the next sweep of the queue in this run begins; nil does not change it.
	Cursor *string
	// ItemsDone and ItemsFailed are totals of the queue in this run, including earlier sweeps.
	ItemsDone, ItemsFailed int64

	// Waits says for what the sweep waits; empty if it does not wait any more. Save records it as the last error of the
	// queue; nil does not change it.
	Waits *string

	// Failed are items that have failed under this claim, at least the new ones and at most the first 100. Whole says that
	// the sweep has been through the whole queue: items that failed in an earlier attempt, and are not in Failed, have
	// succeeded or are gone.
	Failed []ItemFailure
	Whole  bool
}

// ErrRunOver means that the queue of the run no longer belongs to this sweep: the run was cancelled, its deadline has
// passed, another sweep has claimed the queue, or the queue is finished. The caller ends the sweep and saves nothing.
var ErrRunOver = errors.New("the queue of the run no longer belongs to this sweep")

// Save saves the progress of a sweep in a transaction that fences the queue (R8). Progress resets the count of
// takeovers. Save returns ErrFenced if the server no longer owns the queue under that epoch, and ErrRunOver if the
// sweep is over for another reason.
func (sw *Sweeps) Save(ctx context.Context, s Sweep, p Progress) error {
	return sw.update(ctx, s, p, "save", RunQueueRunning, ``)
}

// Finish records that the queue is drained: the last select was empty and no item is in flight (R9). If it was the last
// queue, Finish closes the run; if that fails, a tick repeats it. The errors are those of Save. With an error the queue
// is not DONE.
func (sw *Sweeps) Finish(ctx context.Context, s Sweep, p Progress) error {
	p.Whole = true
	err := sw.update(ctx, s, p, "finish", RunQueueDone, `, finished_at = {now}, last_error = ''`)
	if err != nil {
		return err
	}
	sw.tryClose(ctx, s)
	return nil
}

// tryClose closes the run if no queue is left. It only logs an error, because the end of the queue is committed already
// and the next tick closes the run.
func (sw *Sweeps) tryClose(ctx context.Context, s Sweep) {
	var open int
	err := sw.db.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_run_queue WHERE run_id = ?
		AND state IN ('`+RunQueuePending+`', '`+RunQueueRunning+`')`, s.RunID).Scan(&open)
	if err == nil && open == 0 {
		err = sw.closer.closeRun(ctx, s.RunID)
	}
	if err != nil {
		sw.log.LogAttrs(ctx, slog.LevelDebug, "the next tick closes the run", slog.String("task_type", s.TaskType), slog.Any("error", err))
	}
}

// Suspend ends the sweep of a queue that is about to be handed over or is paused. The next sweep starts where this one
// has ended, and counts neither as an attempt nor as a takeover. The errors are those of Save.
func (sw *Sweeps) Suspend(ctx context.Context, s Sweep, p Progress) error {
	return sw.update(ctx, s, p, "suspend", RunQueuePending, `, attempt = attempt - 1`)
}

// Fail records that the sweep of a queue has failed. The queue is tried again after queue_retry, which doubles with
// each failure. After queue_max_attempts attempts, or at once if the failure is final, the queue has FAILED, and the
// run fails when its other queues are finished. Fail reports whether the queue has FAILED. The errors are those of
// Save.
func (sw *Sweeps) Fail(ctx context.Context, s Sweep, p Progress, cause string, final bool) (failed bool, err error) {
	var most int
	var retry time.Duration
	err = sw.db.Dealers.QueryRowContext(ctx, sw.db.SQL(`SELECT queue_max_attempts, queue_retry_ms FROM schedule_task_type WHERE task_type = ?`), s.TaskType).
		Scan(&most, (*sqldb.Millis)(&retry))
	if err != nil && !sqldb.NoRows(err) {
		return false, fmt.Errorf("fail queue %s of run %s: %w", s.QueueID, s.RunID, err)
	}
	most, retry = cmp.Or(s.MaxAttempts, most, sw.defaults.QueueMaxAttempts), cmp.Or(retry, sw.defaults.QueueRetry)
	if !final && s.Attempt < most {
		again := retryDelay(retry, s.Attempt)
		return false, sw.update(ctx, s, p, "fail", RunQueuePending, `, last_error = ?, next_attempt_at = {ago ?}`, sqldb.Clean(cause), -again.Milliseconds())
	}
	if err := sw.update(ctx, s, p, "fail", RunQueueFailed, `, last_error = ?, finished_at = {now}`, sqldb.Clean(cause)); err != nil {
		return false, err
	}
	sw.tryClose(ctx, s)
	return true, nil
}

// maxRetryDelay bounds the doubling.
const maxRetryDelay = 24 * time.Hour

// retryDelay returns the pause of a queue after its n-th failure.
func retryDelay(first time.Duration, n int) time.Duration {
	pause := first
	for ; n > 1 && pause < maxRetryDelay; n-- {
		pause *= 2
	}
	return max(first, min(pause, maxRetryDelay))
}

// Cursor returns the saved cursor of a queue in a run. It returns ErrFenced if the sweep no longer belongs to the
// server under that epoch.
func (sw *Sweeps) Cursor(ctx context.Context, runID, server string, q roster.QueueEpoch) (cursor string, err error) {
	err = sw.db.Dealers.QueryRowContext(ctx, sw.db.SQL(`SELECT cursor_value FROM schedule_run_queue
		WHERE run_id = ? AND queue_id = ? AND state = '`+RunQueueRunning+`' AND server = ? AND epoch = ?`), runID, q.ID, server, q.Epoch).Scan(&cursor)
	if sqldb.NoRows(err) {
		err = fmt.Errorf("%w: %w", roster.ErrFenced, ErrRunOver)
	}
	if err != nil {
		return "", fmt.Errorf("read the cursor of queue %s of run %s: %w", q.ID, runID, err)
	}
	return cursor, nil
}
