package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// SetPaused pauses or resumes a trigger. After a resume its misfire policy selects the missed slots that still fire. A
// trigger that is DONE stays DONE. A resume of a trigger in ERROR succeeds if its row is valid by then. SetPaused
// returns ErrUnknownTrigger if no trigger has that name.
func (ts *Triggers) SetPaused(ctx context.Context, name string, paused bool, actor string) error {
	err := ts.change(ctx, name, func(ctx context.Context, l *roster.LockTx, t Trigger) error {
		old := t
		switch {
		case paused && t.Status == TriggerActive:
			t.Status = TriggerPaused
		case !paused && t.Status == TriggerPaused:
			t.Status = TriggerActive
			if t.NextFireAt.IsZero() {
				t.Status = TriggerDone
			}
		case !paused && t.Status == TriggerError:
			var err error
			if t, err = keepDue(ctx, l, t); err == nil {
				err = errors.Join(t.validate(), t.resetSchedule(l.Now))
			}
			if err != nil {
				return err
			}
		default:
			return nil
		}
		t.Version++
		if err := writeTriggerRow(ctx, l, t, old, true); err != nil {
			return err
		}
		return l.Record(ctx, roster.Event{Kind: roster.EventTrigger, Actor: actor, Reason: "trigger " + name + " was " + roster.PauseVerb(paused) + "d"})
	})
	if err != nil {
		return fmt.Errorf("%s trigger %s: %w", roster.PauseVerb(paused), name, err)
	}
	return nil
}

// Delete deletes a trigger. Its runs stay, and a new trigger of the same name fires no slot a second time while the run
// of that slot is kept. Its open backfills end CANCELLED. Delete returns ErrUnknownTrigger if no trigger has that name.
func (ts *Triggers) Delete(ctx context.Context, name, actor string) error {
	err := ts.change(ctx, name, func(ctx context.Context, l *roster.LockTx, _ Trigger) error {
		return DeleteTrigger(ctx, l, name, actor)
	})
	if err != nil {
		return fmt.Errorf("delete trigger %s: %w", name, err)
	}
	return nil
}

// DeleteTrigger deletes the row of a trigger under its target's lock row, and writes an event.
func DeleteTrigger(ctx context.Context, l *roster.LockTx, name, actor string) error {
	if _, err := l.Exec(ctx, `DELETE FROM schedule_trigger WHERE own_sign = ? AND name = ?`, l.OwnSign, name); err != nil {
		return err
	}
	if err := CancelBackfills(ctx, l, name, "trigger "+name+" was deleted"); err != nil {
		return err
	}
	return l.Record(ctx, roster.Event{Kind: roster.EventTrigger, Actor: actor, Reason: "trigger " + name + " was deleted"})
}

// Fire makes a run of a trigger at once, independent of its slots and status, and returns the run's id. It changes
// neither the slots nor the number of fires. The overlap policy applies: the run may be SKIPPED, unless the kind is
// ONCE. Fire returns ErrUnknownTrigger if no trigger has that name.
func (ts *Triggers) Fire(ctx context.Context, name, actor string) (runID string, err error) {
	err = ts.change(ctx, name, func(ctx context.Context, l *roster.LockTx, t Trigger) error {
		open, err := openRuns(ctx, l)
		if err != nil {
			return err
		}
		r := newRun(l, t.runTemplate(open), l.Now)
		r.Key = t.ID + "/now/" + r.ID
		runID = r.ID
		if err := insertRuns(ctx, l, []Run{r}, nil); err != nil {
			return err
		}
		if r.State != RunSkipped {
			if _, err := forgetSkipped(ctx, l, name); err != nil {
				return err
			}
		}
		return l.Record(ctx, roster.Event{Kind: roster.EventTrigger, Actor: actor, Reason: "trigger " + name + " was fired as run " + runID})
	})
	if err != nil {
		return "", fmt.Errorf("fire trigger %s: %w", name, err)
	}
	return runID, nil
}

// IfStill returns a copy for a caller that has read a trigger. SetPaused, Delete and Fire of the copy return
// roster.ErrChanged if the trigger is defined otherwise by then. Its firings are no reason.
func (ts *Triggers) IfStill(seen Trigger) *Triggers {
	copied := *ts
	copied.seen = &seen
	return &copied
}

// change runs f under the lock row of the trigger's target.
func (ts *Triggers) change(ctx context.Context, name string, f func(context.Context, *roster.LockTx, Trigger) error) error {
	var target string
	err := ts.db.QueryRow(ctx, `SELECT target FROM schedule_trigger WHERE own_sign = ? AND name = ?`, ts.ownSign, name).Scan(&target)
	if sqldb.NoRows(err) {
		return ErrUnknownTrigger
	}
	if err != nil {
		return err
	}
	return ts.roster.UnderLock(ctx, target, func(ctx context.Context, l *roster.LockTx) error {
		t, err := ReadTrigger(ctx, l, name)
		if err != nil {
			return err
		}
		if t.Target != target {
			return sqldb.ErrRaced
		}
		if seen := ts.seen; seen != nil && len(seen.differences(t)) > 0 {
			return roster.ErrChanged
		}
		return f(ctx, l, t)
	})
}
