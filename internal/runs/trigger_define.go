package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// Define makes a trigger unless one of its name exists, and returns the trigger that is in force. The slots before the
// trigger is made do not fire, except the slot of ONCE, which is due until it has fired. Define returns ErrUnknownTask
// if the target has no row.
func (ts *Triggers) Define(ctx context.Context, t Trigger) (Trigger, error) {
	return ts.put(ctx, t.WithDefaults(), func(ctx context.Context, l *roster.LockTx, t Trigger) (Trigger, error) {
		return PutTrigger(ctx, l, t, false, "")
	})
}

// Apply makes the trigger of a difference or changes the one of its name, and returns the result. It returns
// roster.ErrChanged if Compare has read another version of the row: a firing makes one, too. A PAUSED trigger stays
// PAUSED. If a field that determines the slots changes, the new slots start from now, and none of the slots that have
// fired fires again.
func (ts *Triggers) Apply(ctx context.Context, d TriggerDiff, actor string) (Trigger, error) {
	return ts.put(ctx, d.Wanted, func(ctx context.Context, l *roster.LockTx, t Trigger) (Trigger, error) {
		old, err := ReadTrigger(ctx, l, t.Name)
		if errors.Is(err, ErrUnknownTrigger) {
			err = nil
		}
		if err == nil && old.Version != d.Version {
			err = roster.ErrChanged
		}
		if err != nil {
			return Trigger{}, err
		}
		return PutTrigger(ctx, l, t, true, actor)
	})
}

type putTrigger func(ctx context.Context, l *roster.LockTx, t Trigger) (Trigger, error)

func (ts *Triggers) put(ctx context.Context, t Trigger, write putTrigger) (now Trigger, err error) {
	if err = ensureLockRow(ctx, ts.roster, t.Target); err != nil {
		return Trigger{}, fmt.Errorf("trigger %s: target %s: %w", t.Name, t.Target, err)
	}
	err = ts.roster.UnderLock(ctx, t.Target, func(ctx context.Context, l *roster.LockTx) (err error) {
		if err = checkMode(ctx, l, l.TaskType); err == nil { // it may have changed since ensureLockRow (R14)
			now, err = write(ctx, l, t)
		}
		return err
	})
	if err != nil {
		return Trigger{}, fmt.Errorf("trigger %s of %w", t.Name, err)
	}
	return now, nil
}

// PutTrigger makes a trigger, and with change it also changes an existing one. It returns the trigger that is then in
// force.
func PutTrigger(ctx context.Context, l *roster.LockTx, t Trigger, change bool, actor string) (Trigger, error) {
	old, err := ReadTrigger(ctx, l, t.Name)
	there := err == nil
	if err != nil && !errors.Is(err, ErrUnknownTrigger) {
		return Trigger{}, err
	}
	if there && !change {
		return old, nil
	}
	if there && !t.sameSlots(old) {
		if old, err = keepDue(ctx, l, old); err != nil {
			return Trigger{}, err
		}
	}
	if t, err = t.replace(old, there, l.OwnSign, l.Now); err != nil {
		return Trigger{}, err
	}
	return t, writeTrigger(ctx, l, t, old, there, actor)
}

// keepDue keeps the slots that are due of a trigger whose schedule is about to change: the new schedule does not know
// them, and no worker may have been there to fire them (R3). The slots fire as the old row says. If the trigger must not
// fire now, because it is paused, invalid or about to get another target, they are missed. keepDue returns the trigger
// as it is then.
func keepDue(ctx context.Context, l *roster.LockTx, t Trigger) (Trigger, error) {
	if t.NextFireAt.IsZero() || t.NextFireAt.After(l.Now) {
		return t, nil
	}
	f := newFiring(t, l.Now)
	switch {
	case f.Status == TriggerError:
		t.Missed, t.MissedAt = t.Missed+1, t.NextFireAt.Add(-t.delay())
		return t, nil
	case t.Status == TriggerActive && t.Target == l.TaskType:
		if _, err := fireTriggers(ctx, l, []firing{f}); err != nil {
			return Trigger{}, err
		}
		return ReadTrigger(ctx, l, t.Name)
	}
	t.Missed, t.MissedAt = f.Missed+int64(len(f.slots)), f.MissedAt
	if n := len(f.slots); n > 0 {
		t.MissedAt = f.slots[n-1]
	}
	return t, nil
}

// replace returns the trigger that results when t is written over old, or as a new trigger if old does not exist.
func (t Trigger) replace(old Trigger, there bool, ownSign string, now time.Time) (Trigger, error) {
	if t.StartAt.IsZero() && t.Kind == TriggerEvery {
		t.StartAt = now // a new trigger counts its slots from now; an existing one keeps its origin
		if old.Kind == TriggerEvery {
			t.StartAt = old.StartAt
		}
	}
	if err := t.validate(); err != nil {
		return Trigger{}, err
	}
	t.ID, t.Version = triggerID(ownSign, t.Name), old.Version+1
	t.Fires, t.Missed, t.MissedAt, t.PrevFireAt = old.Fires, old.Missed, old.MissedAt, old.PrevFireAt
	t.Skipped, t.SkippedSince = old.Skipped, old.SkippedSince
	t.NextFireAt, t.Status = old.NextFireAt, old.Status
	if !there || !t.sameSlots(old) || old.Status == TriggerError {
		if err := t.resetSchedule(now); err != nil {
			return Trigger{}, err
		}
		if old.Status == TriggerPaused {
			t.Status = TriggerPaused
		}
	}
	return t, nil
}

// resetSchedule sets the first slot after now, and the status that follows from it.
func (t *Trigger) resetSchedule(now time.Time) error {
	a, err := t.parse()
	if err != nil {
		return err
	}
	t.NextFireAt, t.Message = t.first(a, now), ""
	t.Status = TriggerActive
	if t.NextFireAt.IsZero() {
		t.Status = TriggerDone
	}
	return nil
}

// sameSlots reports whether two triggers are due at the same instants.
func (t Trigger) sameSlots(o Trigger) bool {
	return t.Kind == o.Kind && t.Expression == o.Expression && t.TimeZone == o.TimeZone && t.StartAt.Equal(o.StartAt) &&
		t.EndAt.Equal(o.EndAt) && t.MaxFires == o.MaxFires && t.Target == o.Target &&
		t.Jitter == o.Jitter && t.ExcludedDays == o.ExcludedDays
}
