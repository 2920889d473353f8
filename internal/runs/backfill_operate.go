package runs

import (
	"context"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/plural"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// SetPaused pauses or resumes a backfill. While it is paused no further slot gets a run. The runs that it has made go
// on. SetPaused returns ErrBackfillState if the backfill has ended.
func (bs *Backfills) SetPaused(ctx context.Context, id string, paused bool, actor string) error {
	err := bs.operate(ctx, id, func(ctx context.Context, l *roster.LockTx, b Backfill) error {
		b.Paused = paused
		if err := l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: "backfill " + id + " was " + roster.PauseVerb(paused) + "d"}); err != nil {
			return err
		}
		return b.update(ctx, l)
	})
	if err != nil {
		return fmt.Errorf("%s backfill %s: %w", roster.PauseVerb(paused), id, err)
	}
	return nil
}

// Cancel ends a backfill and all its open runs, also the runs of dependants. It does not matter which servers own their
// queues. Runs that have ended stay as they are. Cancel returns ErrBackfillState if the backfill has ended.
func (bs *Backfills) Cancel(ctx context.Context, id, actor string) error {
	err := bs.operate(ctx, id, func(ctx context.Context, l *roster.LockTx, b Backfill) error {
		n, err := l.Exec(ctx, `UPDATE schedule_run SET cancel_requested = TRUE, version = version + 1 WHERE backfill_id = ? AND state IN `+openStates, id)
		if err != nil {
			return err
		}
		b.State = BackfillCancelled
		b.Message = fmt.Sprintf("%d of %d slots were left, and %s open",
			b.SlotsTotal-b.SlotsMade-b.SlotsKept, b.SlotsTotal, plural.Of(n, "run was", "runs were"))
		if err := l.Record(ctx, roster.Event{Kind: roster.EventRun, Actor: actor, Reason: "backfill " + id + " was cancelled: " + b.Message}); err != nil {
			return err
		}
		return b.update(ctx, l)
	})
	if err == nil {
		err = bs.stopRuns(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("cancel backfill %s: %w", id, err)
	}
	return nil
}

// stopRuns ends the runs of a cancelled backfill. Dependants end first, because otherwise they would fail with their
// upstreams. After a crash the ticks end the other runs.
func (bs *Backfills) stopRuns(ctx context.Context, id string) error {
	runs, err := sqldb.Records[taskRun](ctx, bs.db, `SELECT run_id, task_type FROM schedule_run WHERE backfill_id = ? AND cancel_requested
		AND state IN `+openStates+` ORDER BY run_id DESC`, id)
	for _, r := range runs {
		if err == nil {
			err = bs.closer.stopRun(ctx, r.ID)
		}
	}
	return err
}

// operate runs f with an open backfill under the lock row of its task type.
func (bs *Backfills) operate(ctx context.Context, id string, f func(context.Context, *roster.LockTx, Backfill) error) error {
	b, err := bs.Get(ctx, id)
	if err != nil {
		return err
	}
	return bs.roster.UnderLock(ctx, b.TaskType, func(ctx context.Context, l *roster.LockTx) error {
		list, err := readBackfills(ctx, l, `b.backfill_id = ?`, id)
		switch {
		case err != nil:
			return err
		case len(list) == 0:
			return ErrUnknownBackfill
		case list[0].State != BackfillRunning:
			return fmt.Errorf("%w: it is %s", ErrBackfillState, list[0].State)
		}
		return f(ctx, l, list[0])
	})
}

// continueBackfills makes backfills RUNNING again, because a run was reopened and its dependants wait again. It also
// raises the version of open ones: a tick that has counted the runs as ended must not end the backfill.
func continueBackfills(ctx context.Context, t sqldb.Tx, runID string) error {
	ids, err := allDependants(ctx, t, runID)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(append(ids, runID), roster.InsertRows) {
		_, err := t.Exec(ctx, `UPDATE schedule_backfill SET state = '`+BackfillRunning+`', message = '', ended_at = NULL, version = version + 1
			WHERE state <> '`+BackfillCancelled+`' AND backfill_id IN (SELECT r.backfill_id FROM schedule_run r
				WHERE r.run_id IN (`+sqldb.Marks(len(part))+`) AND r.state IN `+openStates+`)`, sqldb.Args(part)...)
		if err != nil {
			return fmt.Errorf("continue the backfill: %w", err)
		}
	}
	return nil
}

// CancelBackfills cancels the open backfills of a trigger that an operator deletes, or of all triggers of the locked
// task type if the name is empty. It does not change their runs.
func CancelBackfills(ctx context.Context, l *roster.LockTx, trigger, reason string) error {
	where, args := `task_type = ? AND own_sign = ?`, []any{reason, l.TaskType, l.OwnSign}
	if trigger != "" {
		where, args = where+` AND trigger_name = ?`, append(args, trigger)
	}
	n, err := l.Exec(ctx, `UPDATE schedule_backfill SET state = '`+BackfillCancelled+`', message = ?, ended_at = {now}, version = version + 1
		WHERE `+where+` AND state = '`+BackfillRunning+`'`, args...)
	if err != nil || n == 0 {
		return err
	}
	return l.Record(ctx, roster.Event{Kind: roster.EventRun, Reason: fmt.Sprintf("backfills were cancelled (%d): %s", n, reason)})
}
