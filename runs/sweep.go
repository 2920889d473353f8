package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Sweep is a queue of a run that a server has claimed, with the progress of earlier sweeps. Claim reads its fields in
// this order.
type Sweep struct {
	RunID, Key, Params, TraceParent string
	TaskType                        string
	QueueID                         string
	// QueueTotal is the queue's total when the run was opened: an item belongs to the queue if mod(id, QueueTotal) is the
	// queue's index, even after a repartition. For a name it is the number of queues.
	QueueTotal int
	Server     string // the uuid of the server that claimed it
	Epoch      int64  // the queue's epoch at the claim

	MaxAttempts int // of the queue in this run; 0 is queue_max_attempts of the task type

	Attempt int // 1 for the first
	// Recoveries counts the takeovers since the last progress: sweeps that did not record their end, because their
	// processes died or lost the queue.
	Recoveries int
	// Cursor, ItemsDone and ItemsFailed are what earlier sweeps of the queue in this run saved.
	Cursor                 string
	ItemsDone, ItemsFailed int64
	// FailedBefore are the keys of the items that failed in earlier sweeps of the queue in this run, also before a rerun,
	// and that no sweep has found in order since: at most 100, each cut to 255 characters.
	FailedBefore []string `db:"-"`

	ScheduledAt time.Time
	SlotEnd     time.Time
	TimeZone    string
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

// claimCandidate is a queue of the open run that the server may try to claim.
type claimCandidate struct {
	Run, Queue    string
	State         string
	Epoch         int64
	MaxRecoveries int
	ProgressAt    time.Time // of its last sweep
}

// Claim claims queues of the open run for a server, at most limit, and returns their sweeps (R7). The argument queues
// lists the queues that the server owns, with their epochs, in which it has no item in flight and no sweep. Therefore
// Claim also claims a row that is RUNNING under the server's own epoch: its sweep has ended and did not record its end.
// Claim skips rows that wait for their next attempt, and all rows while the run is paused. A queue that was taken over
// more than max_recoveries times without progress fails, unless an item is known to have ended the process.
func (sw *Sweeps) Claim(ctx context.Context, taskType, server string, queues []roster.QueueEpoch,
	limit int,
) (sweeps []Sweep, err error) {
	for part := range slices.Chunk(queues, roster.InsertRows) {
		list, err := sw.candidates(ctx, taskType, part)
		if err != nil {
			return sweeps, fmt.Errorf("claim queues of %s$%s: %w", taskType, sw.ownSign, err)
		}
		for _, q := range list {
			if len(sweeps) >= limit {
				return sweeps, nil
			}
			s, ok, err := sw.claimOne(ctx, taskType, server, q, part)
			if err != nil {
				return sweeps, fmt.Errorf("claim queue %s of run %s of %s$%s: %w",
					q.Queue, q.Run, taskType, sw.ownSign, err)
			}
			if ok {
				sweeps = append(sweeps, s)
			}
		}
	}
	return sweeps, nil
}

// candidates returns the given queues that are in the open run and that their owner may claim.
func (sw *Sweeps) candidates(ctx context.Context, taskType string,
	queues []roster.QueueEpoch,
) (list []claimCandidate, err error) {
	epochs := make(map[string]int64, len(queues))
	args := []any{taskType, sw.ownSign}
	for _, q := range queues {
		epochs[q.ID] = q.Epoch
		args = append(args, q.ID)
	}
	list, err = sqldb.Records[claimCandidate](ctx, sw.db, `SELECT
			q.run_id, q.queue_id, q.state, q.epoch, COALESCE(t.max_recoveries, 0), q.progress_at
		FROM schedule_run r JOIN schedule_run_queue q ON q.run_id = r.run_id
		LEFT JOIN schedule_task_type t ON t.task_type = r.task_type
		WHERE r.task_type = ? AND r.own_sign = ? AND r.state = '`+Running+`'
		AND NOT r.paused AND NOT r.cancel_requested AND r.deadline_at > {now}
		AND q.queue_id IN (`+sqldb.Marks(len(queues))+`)
		AND (q.state = '`+QueueRunning+`' OR q.state = '`+QueuePending+`' AND `+retryDue+`)
		ORDER BY q.queue_id`, args...)
	return slices.DeleteFunc(list, func(q claimCandidate) bool {
		return q.State != QueuePending && q.Epoch > epochs[q.Queue]
	}), err
}

// retryDue is the condition that the pause after a failed attempt is over.
const retryDue = `(next_attempt_at IS NULL OR next_attempt_at <= {now})`

// claimOne claims one queue in a transaction that fences it, and reports whether it did.
func (sw *Sweeps) claimOne(ctx context.Context, taskType, server string, q claimCandidate,
	held []roster.QueueEpoch,
) (s Sweep, ok bool, err error) {
	own := held[slices.IndexFunc(held, func(h roster.QueueEpoch) bool { return h.ID == q.Queue })]
	s = Sweep{RunID: q.Run, TaskType: taskType, QueueID: q.Queue, Server: server, Epoch: own.Epoch}
	limit := cmp.Or(q.MaxRecoveries, sw.defaults.MaxRecoveries)
	failed := false
	err = sw.db.Transact(ctx, sw.db.Store, func(ctx context.Context, t sqldb.Tx) (err error) {
		ok, failed = false, false
		if err := sw.fence(ctx, t, s); err != nil {
			return err
		}
		if running, err := lockRunning(ctx, t, q.Run); err != nil || !running {
			return err
		}
		// MySQL evaluates SET from left to right (L6): expressions that read the old state come before its assignment.
		n, err := t.Exec(ctx, `UPDATE schedule_run_queue SET
			attempt = CASE WHEN state = '`+QueuePending+`' THEN attempt + 1 ELSE attempt END,
			recoveries = CASE WHEN state = '`+QueueRunning+`' THEN recoveries + 1 ELSE recoveries END, `+lowerBound+`,
			last_error = CASE WHEN state = '`+QueueRunning+`' THEN '' ELSE last_error END,
			state = '`+QueueRunning+`', server = ?, epoch = ?, next_attempt_at = NULL,
			started_at = COALESCE(started_at, {now}), progress_at = {now}
			WHERE run_id = ? AND queue_id = ?
			AND (state = '`+QueueRunning+`' AND epoch <= ? OR state = '`+QueuePending+`' AND `+retryDue+`)`,
			server, own.Epoch, q.Run, q.Queue, own.Epoch)
		if err != nil || n == 0 {
			return err
		}
		claimed, err := sqldb.One[Sweep](ctx, t, ErrRunOver, `SELECT q.run_id, r.run_key, r.params, r.trace_parent,
				r.task_type, q.queue_id, COALESCE(q.queue_total, r.queue_total), q.server, q.epoch, r.max_attempts,
				q.attempt, q.recoveries,
				q.cursor_value, q.items_done, q.items_failed, r.scheduled_at, r.slot_end_at, r.time_zone,
				r.started_at, r.deadline_at
			FROM schedule_run_queue q JOIN schedule_run r ON r.run_id = q.run_id
			WHERE q.run_id = ? AND q.queue_id = ?`, q.Run, q.Queue)
		if err != nil {
			return err
		}
		s = claimed
		if ok = s.Recoveries <= limit; !ok {
			if ok, err = sw.killerKnown(ctx, t, s, q.ProgressAt); err != nil {
				return err
			}
		}
		if failed = !ok; failed {
			return failAfterTakeovers(ctx, t, s, limit)
		}
		return readFailedBefore(ctx, t, &s)
	})
	switch {
	case errors.Is(err, roster.ErrFenced):
		return Sweep{}, false, nil // the server learns with its next heartbeat that it no longer owns the queue
	case err == nil && failed:
		err = sw.closer.closeRun(ctx, q.Run)
	}
	return s, ok && err == nil, err
}

// readFailedBefore reads the items that failed in earlier sweeps. The attempts of a rerun begin at 1 again: the items
// of before get attempt 0, so that a failure in the new attempt is recorded as new.
func readFailedBefore(ctx context.Context, t sqldb.Tx, s *Sweep) (err error) {
	s.FailedBefore, err = sqldb.Records[string](ctx, t, `SELECT item_key FROM schedule_run_item
		WHERE run_id = ? AND queue_id = ? ORDER BY item_no`, s.RunID, s.QueueID)
	if err == nil && s.Attempt == 1 && s.Recoveries == 0 && len(s.FailedBefore) > 0 {
		_, err = t.Exec(ctx, `UPDATE schedule_run_item SET attempt = 0 WHERE run_id = ? AND queue_id = ?`, s.RunID, s.QueueID)
	}
	return err
}

// killerKnown reports whether an item explains why the process of an earlier sweep has ended (S14): an owner has
// executed it alone and not recorded its end, or has declared it dead since the last sweep of the queue began. The
// item may be of another queue. The next sweep then goes on without the item.
func (sw *Sweeps) killerKnown(ctx context.Context, t sqldb.Tx, s Sweep, since time.Time) (bool, error) {
	_, known, err := sqldb.Record[int](ctx, t, `SELECT 1 FROM schedule_failed_item f JOIN schedule_task_running r
		ON r.task_type = f.task_type AND r.own_sign = f.own_sign AND r.partition_version = f.partition_version
		WHERE f.task_type = ? AND f.own_sign = ?
		AND (f.state = 'STARTED' OR f.state = 'DEAD' AND f.next_attempt_at >= ?) LIMIT 1`,
		s.TaskType, sw.ownSign, sw.db.TimeOrNull(since))
	return known, err
}

func failAfterTakeovers(ctx context.Context, t sqldb.Tx, s Sweep, limit int) error {
	cause := fmt.Sprintf("taken over more than %d times without progress", limit)
	_, err := t.Exec(ctx, `UPDATE schedule_run_queue SET state = '`+QueueFailed+`', last_error = ?, finished_at = {now}
		WHERE run_id = ? AND queue_id = ?`, cause, s.RunID, s.QueueID)
	return err
}

// Save saves the progress of a sweep in a transaction that fences the queue (R8). Progress resets the count of
// takeovers. Save returns ErrFenced if the server no longer owns the queue under that epoch, and ErrRunOver if the
// sweep is over for another reason.
func (sw *Sweeps) Save(ctx context.Context, s Sweep, p Progress) error {
	return sw.update(ctx, s, p, "save", QueueRunning, ``)
}

// Finish records that the queue is drained: the last select was empty and no item is in flight (R9). If it was the last
// queue, Finish closes the run; if that fails, a tick repeats it. The errors are those of Save. With an error the queue
// is not DONE.
func (sw *Sweeps) Finish(ctx context.Context, s Sweep, p Progress) error {
	p.Whole = true
	err := sw.update(ctx, s, p, "finish", QueueDone, `, finished_at = {now}, last_error = ''`)
	if err == nil {
		sw.tryClose(ctx, s)
	}
	return err
}

// tryClose closes the run if no queue is left. It only logs an error, because the end of the queue is committed already
// and the next tick closes the run.
func (sw *Sweeps) tryClose(ctx context.Context, s Sweep) {
	_, open, err := sqldb.Record[int](ctx, sw.db, `SELECT 1 FROM schedule_run_queue
		WHERE run_id = ? AND state IN `+unfinished+` LIMIT 1`, s.RunID)
	if err == nil && !open {
		err = sw.closer.closeRun(ctx, s.RunID)
	}
	if err != nil {
		sw.log.LogAttrs(ctx, slog.LevelDebug, "the next tick closes the run",
			slog.String("task_type", s.TaskType), slog.Any("error", err))
	}
}

// Suspend ends the sweep of a queue that is about to be handed over or is paused. The next sweep starts where this one
// has ended, and counts neither as an attempt nor as a takeover. The errors are those of Save.
func (sw *Sweeps) Suspend(ctx context.Context, s Sweep, p Progress) error {
	return sw.update(ctx, s, p, "suspend", QueuePending, `, attempt = attempt - 1`)
}

// Fail records that the sweep of a queue has failed. The queue is tried again after queue_retry, which doubles with
// each failure. After queue_max_attempts attempts, or at once if the failure is final, the queue has FAILED, and the
// run fails when its other queues are finished. Fail reports whether the queue has FAILED. The errors are those of
// Save.
func (sw *Sweeps) Fail(ctx context.Context, s Sweep, p Progress, cause string, final bool) (failed bool, err error) {
	type settings struct {
		MaxAttempts int
		Retry       time.Duration
	}
	set, err := sqldb.Value[settings](ctx, sw.db.On(sw.db.Dealers), `SELECT queue_max_attempts, queue_retry_ms
		FROM schedule_task_type WHERE task_type = ?`, s.TaskType)
	if err != nil {
		return false, fmt.Errorf("fail queue %s of run %s: %w", s.QueueID, s.RunID, err)
	}
	if !final && s.Attempt < cmp.Or(s.MaxAttempts, set.MaxAttempts, sw.defaults.QueueMaxAttempts) {
		again := retryDelay(cmp.Or(set.Retry, sw.defaults.QueueRetry), s.Attempt)
		return false, sw.update(ctx, s, p, "fail", QueuePending, `, last_error = ?, next_attempt_at = {ago ?}`,
			sqldb.Clean(cause), -again.Milliseconds())
	}
	err = sw.update(ctx, s, p, "fail", QueueFailed, `, last_error = ?, finished_at = {now}`, sqldb.Clean(cause))
	if err == nil {
		sw.tryClose(ctx, s)
	}
	return err == nil, err
}

// retryDelay returns the pause of a queue after its n-th failure.
func retryDelay(first time.Duration, n int) time.Duration {
	pause := first
	for ; n > 1 && pause < roster.LongestQueuePause; n-- {
		pause *= 2
	}
	return max(first, min(pause, roster.LongestQueuePause))
}

// Cursor returns the saved cursor of a queue in a run. It returns ErrFenced if the sweep no longer belongs to the
// server under that epoch.
func (sw *Sweeps) Cursor(ctx context.Context, runID, server string, q roster.QueueEpoch) (cursor string, err error) {
	missing := fmt.Errorf("%w: %w", roster.ErrFenced, ErrRunOver)
	cursor, err = sqldb.One[string](ctx, sw.db.On(sw.db.Dealers), missing, `SELECT cursor_value FROM schedule_run_queue
		WHERE run_id = ? AND queue_id = ? AND state = '`+QueueRunning+`' AND server = ? AND epoch = ?`,
		runID, q.ID, server, q.Epoch)
	return cursor, sqldb.Wrap(err, "read the cursor of queue %s of run %s", q.ID, runID)
}

// update writes the row of a sweep, and its failed items, in a transaction of the dealers' pool that fences the queue.
// If the reply of an earlier try was lost, it recognises by the row's state that this try was committed.
func (sw *Sweeps) update(ctx context.Context, s Sweep, p Progress, what, state, set string, args ...any) error {
	tried := false
	err := sw.db.Transact(ctx, sw.db.Dealers, func(ctx context.Context, t sqldb.Tx) error {
		if err := sw.fence(ctx, t, s); err != nil {
			return err
		}
		n, err := writeSweep(ctx, t, s, p, state, set, args...)
		if err == nil && n == 0 && tried {
			n, err = sweepWasSaved(ctx, t, s, state)
		}
		switch {
		case err == nil && n == 0:
			err = ErrRunOver
		case err == nil:
			err = saveItems(ctx, t, s, p)
		}
		tried = true
		return err
	})
	return sqldb.Wrap(err, "%s queue %s of run %s", what, s.QueueID, s.RunID)
}

// fence fences the queue of a sweep (R8): its owner cannot change until the transaction ends.
func (sw *Sweeps) fence(ctx context.Context, t sqldb.Tx, s Sweep) error {
	own := roster.QueueEpoch{ID: s.QueueID, Epoch: s.Epoch}
	return sw.roster.Server(s.TaskType, s.Server).Fence().Hold(ctx, t.Raw, own)
}

func writeSweep(ctx context.Context, t sqldb.Tx, s Sweep, p Progress, state, set string, args ...any) (int, error) {
	all := []any{p.ItemsDone, p.ItemsFailed}
	progress := `items_done <> ? OR items_failed <> ?`
	if p.Waits != nil {
		set, args = set+`, last_error = ?`, append(args, sqldb.Clean(*p.Waits))
	}
	all = append(append(all, state, p.ItemsDone, p.ItemsFailed), args...)
	// MySQL evaluates SET from left to right (L6): recoveries comes before the columns that it is compared with.
	return t.Exec(ctx, `UPDATE schedule_run_queue SET recoveries = CASE WHEN `+progress+` THEN 0 ELSE recoveries END,
		progress_at = {now}, state = ?, items_done = ?, items_failed = ?`+set+`
		WHERE run_id = ? AND queue_id = ? AND state = '`+QueueRunning+`' AND server = ? AND epoch = ?`,
		append(all, s.RunID, s.QueueID, s.Server, s.Epoch)...)
}

func sweepWasSaved(ctx context.Context, t sqldb.Tx, s Sweep, state string) (n int, err error) {
	return sqldb.Value[int](ctx, t, `SELECT COUNT(*) FROM schedule_run_queue
		WHERE run_id = ? AND queue_id = ? AND state = ? AND server = ? AND epoch = ?`,
		s.RunID, s.QueueID, state, s.Server, s.Epoch)
}

// Unfinished counts the queues of a run that are neither done nor failed nor cancelled. own counts the queues of the
// server, all the queues of all servers. A server's part of a shared rate is own divided by all (X4).
func (sw *Sweeps) Unfinished(ctx context.Context, runID, server string) (own, all int, err error) {
	type counts struct{ Own, All int }
	n, err := sqldb.Value[counts](ctx, sw.db, `SELECT COUNT(CASE WHEN o.cur_server = ? THEN 1 END), COUNT(*)
		FROM schedule_run_queue q JOIN schedule_run r ON r.run_id = q.run_id
		LEFT JOIN schedule_queue o ON o.task_type = r.task_type AND o.own_sign = r.own_sign AND o.queue_id = q.queue_id
		WHERE q.run_id = ? AND q.state IN `+unfinished, server, runID)
	return n.Own, n.All, sqldb.Wrap(err, "count the unfinished queues of run %s", runID)
}
