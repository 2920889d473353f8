package runs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

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
func (sw *Sweeps) Claim(ctx context.Context, taskType, server string, queues []roster.QueueEpoch, limit int) (sweeps []Sweep, err error) {
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
				return sweeps, fmt.Errorf("claim queue %s of run %s of %s$%s: %w", q.Queue, q.Run, taskType, sw.ownSign, err)
			}
			if ok {
				sweeps = append(sweeps, s)
			}
		}
	}
	return sweeps, nil
}

// candidates returns the given queues that are in the open run and that their owner may claim.
func (sw *Sweeps) candidates(ctx context.Context, taskType string, queues []roster.QueueEpoch) (list []claimCandidate, err error) {
	epochs := make(map[string]int64, len(queues))
	args := []any{taskType, sw.ownSign}
	for _, q := range queues {
		epochs[q.ID] = q.Epoch
		args = append(args, q.ID)
	}
	list, err = sqldb.Records[claimCandidate](ctx, sw.db, `SELECT q.run_id, q.queue_id, q.state, q.epoch, COALESCE(t.max_recoveries, 0), q.progress_at
		FROM schedule_run r JOIN schedule_run_queue q ON q.run_id = r.run_id LEFT JOIN schedule_task_type t ON t.task_type = r.task_type
		WHERE r.task_type = ? AND r.own_sign = ? AND r.state = '`+RunRunning+`' AND NOT r.paused AND NOT r.cancel_requested AND r.deadline_at > {now}
		AND q.queue_id IN (`+sqldb.Marks(len(queues))+`) AND (q.state = '`+RunQueueRunning+`' OR q.state = '`+RunQueuePending+`' AND `+retryDue+`)
		ORDER BY q.queue_id`, args...)
	return slices.DeleteFunc(list, func(q claimCandidate) bool {
		return q.State != RunQueuePending && q.Epoch > epochs[q.Queue]
	}), err
}

// retryDue is the condition that the pause after a failed attempt is over.
const retryDue = `(next_attempt_at IS NULL OR next_attempt_at <= {now})`

// claimOne claims one queue in a transaction that fences it, and reports whether it did.
func (sw *Sweeps) claimOne(ctx context.Context, taskType, server string, q claimCandidate, held []roster.QueueEpoch) (s Sweep, ok bool, err error) {
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
		n, err := t.Exec(ctx, `UPDATE schedule_run_queue SET attempt = CASE WHEN state = '`+RunQueuePending+`' THEN attempt + 1 ELSE attempt END,
			recoveries = CASE WHEN state = '`+RunQueueRunning+`' THEN recoveries + 1 ELSE recoveries END, `+lowerBound+`,
			last_error = CASE WHEN state = '`+RunQueueRunning+`' THEN '' ELSE last_error END,
			state = '`+RunQueueRunning+`', server = ?, epoch = ?, next_attempt_at = NULL, started_at = COALESCE(started_at, {now}), progress_at = {now}
			WHERE run_id = ? AND queue_id = ? AND (state = '`+RunQueueRunning+`' AND epoch <= ? OR state = '`+RunQueuePending+`' AND `+retryDue+`)`,
			server, own.Epoch, q.Run, q.Queue, own.Epoch)
		if err != nil || n == 0 {
			return err
		}
		if err := readSweep(ctx, t, &s); err != nil {
			return err
		}
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

func readSweep(ctx context.Context, t sqldb.Tx, s *Sweep) error {
	return t.QueryRow(ctx, `SELECT r.run_key, r.params, r.max_attempts, r.queue_total, r.scheduled_at, r.started_at, r.deadline_at,
		q.attempt, q.recoveries, q.cursor_value, q.items_done, q.items_failed
		FROM schedule_run_queue q JOIN schedule_run r ON r.run_id = q.run_id WHERE q.run_id = ? AND q.queue_id = ?`, s.RunID, s.QueueID).
		Scan(&s.Key, &s.Params, &s.MaxAttempts, &s.QueueTotal, (*sqldb.Instant)(&s.ScheduledAt), (*sqldb.Instant)(&s.StartedAt), (*sqldb.Instant)(&s.DeadlineAt),
			&s.Attempt, &s.Recoveries, &s.Cursor, &s.ItemsDone, &s.ItemsFailed)
}

// readFailedBefore reads the items that failed in earlier sweeps. The attempts of a rerun begin at 1 again: the items of
// before get attempt 0, so that a failure in the new attempt is recorded as new.
func readFailedBefore(ctx context.Context, t sqldb.Tx, s *Sweep) error {
	err := t.Each(ctx, func(rows *sql.Rows) error {
		var key string
		err := rows.Scan(&key)
		s.FailedBefore = append(s.FailedBefore, key)
		return err
	}, `SELECT item_key FROM schedule_run_item WHERE run_id = ? AND queue_id = ? ORDER BY item_no`, s.RunID, s.QueueID)
	if err == nil && s.Attempt == 1 && s.Recoveries == 0 && len(s.FailedBefore) > 0 {
		_, err = t.Exec(ctx, `UPDATE schedule_run_item SET attempt = 0 WHERE run_id = ? AND queue_id = ?`, s.RunID, s.QueueID)
	}
	return err
}

// killerKnown reports whether an item explains why the process of an earlier sweep has ended (S14): an owner has executed
// it alone and not recorded its end, or has declared it dead since the last sweep of the queue began. The item may be of
// another queue. The next sweep then goes on without the item.
func (sw *Sweeps) killerKnown(ctx context.Context, t sqldb.Tx, s Sweep, since time.Time) (bool, error) {
	var n int
	err := t.QueryRow(ctx, `SELECT COUNT(*) FROM schedule_failed_item f JOIN schedule_task_running r
		ON r.task_type = f.task_type AND r.own_sign = f.own_sign AND r.partition_version = f.partition_version
		WHERE f.task_type = ? AND f.own_sign = ? AND (f.state = 'STARTED' OR f.state = 'DEAD' AND f.next_attempt_at >= ?)`,
		s.TaskType, sw.ownSign, sw.db.TimeOrNull(since)).Scan(&n)
	return n > 0, err
}

func failAfterTakeovers(ctx context.Context, t sqldb.Tx, s Sweep, limit int) error {
	_, err := t.Exec(ctx, `UPDATE schedule_run_queue SET state = '`+RunQueueFailed+`', last_error = ?, finished_at = {now} WHERE run_id = ? AND queue_id = ?`,
		fmt.Sprintf("taken over more than %d times without progress", limit), s.RunID, s.QueueID)
	return err
}
