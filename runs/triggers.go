package runs

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Triggers reads, changes and fires triggers.
type Triggers struct {
	core
	seen *Trigger // as in IfStill; may be nil
}

// TriggerFilter selects triggers. Empty fields select all.
type TriggerFilter struct {
	Name   string
	Target string
}

// TriggerRecord is a trigger with the columns that only operators read.
type TriggerRecord struct {
	Trigger
	OwnSign        string `json:"own_sign"`
	MisfireAfterMS int64  `json:"misfire_after_ms" db:"-"`
	JitterMS       int64  `json:"jitter_ms" db:"-"`

	Now time.Time `json:"-" db:"database_time"` // by the database's clock, when this was read
}

// List lists the triggers of this own_sign that the filter selects, by name.
func (ts *Triggers) List(ctx context.Context, f TriggerFilter) ([]TriggerRecord, error) {
	w := sqldb.Where{Args: []any{ts.ownSign}}
	w.Equal("name", f.Name)
	w.Equal("target", f.Target)
	list, err := sqldb.Records[TriggerRecord](ctx, ts.db, `SELECT {columns} FROM (
		SELECT t.*, {now} AS database_time FROM schedule_trigger t WHERE own_sign = ?`+w.Text+`) x ORDER BY name`, w.Args...)
	if err != nil {
		return nil, fmt.Errorf("list the triggers: %w", err)
	}
	for i := range list {
		list[i].MisfireAfterMS = list[i].MisfireAfter.Milliseconds()
		list[i].JitterMS = list[i].Jitter.Milliseconds()
	}
	return list, nil
}

// TriggerDiff compares the row of a trigger with the trigger that would replace it.
type TriggerDiff struct {
	Exists  bool         // the row exists
	Wanted  Trigger      // as it was given
	Changes []Difference // Row is the value in force, Given the new one, with defaults
	Trigger Trigger      // the result of [Triggers.Apply]
	Next    []time.Time  // the next slots of that result
	Now     time.Time    // by the database's clock, when this was computed

	row Trigger // zero if there is none
}

// Same reports whether [Triggers.Apply] would change nothing.
func (d TriggerDiff) Same() bool { return d.Exists && len(d.Changes) == 0 }

// Difference is a setting whose value in a program or a file differs from the row.
type Difference struct {
	Name  string `json:"setting"` // its name in rota.yaml
	Row   string `json:"row"`
	Given string `json:"given"`
}

// Compare returns what Apply would change, and at most n of the next slots. It writes nothing. It returns
// ErrUnknownTask if the target has no row.
func (ts *Triggers) Compare(ctx context.Context, t Trigger, n int) (a TriggerDiff, err error) {
	if err := t.checkTexts(); err != nil {
		return a, err
	}
	if a, err = ts.compare(ctx, t.WithDefaults()); err == nil {
		a.Next, err = a.Trigger.Next(n)
	}
	return a, sqldb.Wrap(err, "trigger %s", t.Name)
}

func (ts *Triggers) compare(ctx context.Context, t Trigger) (a TriggerDiff, err error) {
	if err := checkMode(ctx, ts.db, t.Target); err != nil {
		return a, fmt.Errorf("target %q: %w", t.Target, err)
	}
	list, err := ts.List(ctx, TriggerFilter{Name: t.Name})
	if err != nil {
		return a, err
	}
	if a.Now, err = ts.db.Clock(ctx); err != nil {
		return a, err
	}
	a.Wanted = t
	if a.Exists = len(list) > 0; a.Exists {
		a.row = list[0].Trigger
	}
	if a.Trigger, err = t.replace(a.row, a.Exists, ts.ownSign, a.Now); err == nil && a.Exists {
		a.Changes = a.row.differences(a.Trigger)
	}
	return a, err
}

// storeColumns are the columns of a trigger that neither its user sets nor a firing changes.
var storeColumns = []string{"name", "trigger_id", "version"}

// Revision stands for the settings of a trigger: it changes when an operator defines the trigger otherwise. A firing
// does not change it, nor does a pause.
func (t Trigger) Revision() string {
	h := fnv.New64a()
	for _, s := range (Trigger{}).differences(t) {
		fmt.Fprintf(h, "%q=%q,", s.Name, s.Given) //nolint:errcheck // a hash takes everything
	}
	return strconv.FormatUint(h.Sum64(), 16)
}

// differences lists the settings in which want differs from t: the columns that the store does not set.
func (t Trigger) differences(want Trigger) (list []Difference) {
	wanted := sqldb.Fields(want)
	for i, has := range sqldb.Fields(t) {
		if slices.Contains(storeColumns, has.Column) || slices.Contains(firedColumns, has.Column) {
			continue
		}
		if row, given := settingText(has.Value), settingText(wanted[i].Value); row != given {
			list = append(list, Difference{Name: strings.TrimSuffix(has.Column, "_ms"), Row: row, Given: given})
		}
	}
	return list
}

func settingText(value any) string {
	if at, ok := value.(time.Time); ok {
		return timeText(at)
	}
	return fmt.Sprint(value)
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Next returns the slots of a trigger that was read, from NextFireAt on, at most n of them.
func (t Trigger) Next(n int) (list []time.Time, err error) {
	a, err := t.parse()
	if err != nil {
		return nil, err
	}
	for at := t.NextFireAt; !at.IsZero() && len(list) < n; at = t.first(a, at) {
		list = append(list, at)
		a.Fires++
	}
	return list, nil
}

// Define makes a trigger unless one of its name exists, and returns the trigger that is in force. The slots before the
// trigger is made do not fire, except the slot of ONCE, which is due until it has fired. Define returns ErrUnknownTask
// if the target has no row.
func (ts *Triggers) Define(ctx context.Context, t Trigger) (Trigger, error) {
	return ts.put(ctx, t.WithDefaults(), func(ctx context.Context, l *roster.LockTx, t Trigger) (Trigger, error) {
		return PutTrigger(ctx, l, t, false, "")
	})
}

// Apply makes the trigger of a difference or changes the one of its name, and returns the result. It returns
// roster.ErrChanged if the trigger is defined otherwise than Compare has read it. A firing does not count as a change:
// nobody could change a trigger that fires each second. A PAUSED trigger stays PAUSED. If a field that determines the
// slots changes, the new slots start from now, and none of the slots that have fired fires again.
func (ts *Triggers) Apply(ctx context.Context, d TriggerDiff, actor string) (Trigger, error) {
	return ts.put(ctx, d.Wanted, func(ctx context.Context, l *roster.LockTx, t Trigger) (Trigger, error) {
		old, err := ReadTrigger(ctx, l, t.Name)
		there := err == nil
		if errors.Is(err, ErrUnknownTrigger) {
			err = nil
		}
		if err == nil && (there != d.Exists || len(d.row.differences(old)) > 0) {
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
	if err := t.checkTexts(); err != nil {
		return Trigger{}, err
	}
	if err = ensureLockRow(ctx, ts.roster, t.Target); err != nil {
		return Trigger{}, fmt.Errorf("trigger %s: target %q: %w", t.Name, t.Target, err)
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
	if there && (!t.sameSlots(old) || old.Status == TriggerError) {
		if old, err = keepDue(ctx, l, old); err != nil {
			return Trigger{}, err
		}
	}
	if t, err = t.replace(old, there, l.OwnSign, l.Now); err != nil {
		return Trigger{}, err
	}
	return t, writeTrigger(ctx, l, t, old, there, actor)
}

// keepDue keeps the slots that are due of a trigger whose schedule is about to change or to begin again after an ERROR:
// the new schedule does not know them, and no worker may have been there to fire them (R3). The slots fire as the old
// row says. If the trigger must not fire now, because it is paused, invalid or about to get another target, they are
// missed. keepDue returns the trigger as it is then.
func keepDue(ctx context.Context, l *roster.LockTx, t Trigger) (Trigger, error) {
	if t.NextFireAt.IsZero() || t.NextFireAt.After(l.Now) {
		return t, nil
	}
	valid := t
	valid.Status = TriggerActive // the row of a trigger in ERROR may have been mended
	f := newFiring(valid, l.Now)
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
		return t, nil
	}
	t.NextFireAt = t.firingAt(old.nextSlot()) // the jitter may have changed
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

// sameSlots reports whether two triggers have the same slots.
func (t Trigger) sameSlots(o Trigger) bool {
	return t.Kind == o.Kind && t.Expression == o.Expression && t.TimeZone == o.TimeZone && t.StartAt.Equal(o.StartAt) &&
		t.EndAt.Equal(o.EndAt) && t.MaxFires == o.MaxFires && t.Target == o.Target &&
		t.ExcludedDays == o.ExcludedDays
}

// SetPaused pauses or resumes a trigger. After a resume its misfire policy selects the missed slots that still fire. A
// trigger that is DONE stays DONE. One in ERROR can be paused, so that it does not fire when its row is mended. A
// resume of a trigger in ERROR succeeds if its row is valid by then. SetPaused returns ErrUnknownTrigger if no trigger
// has that name.
func (ts *Triggers) SetPaused(ctx context.Context, name string, paused bool, actor string) error {
	err := ts.change(ctx, name, func(ctx context.Context, l *roster.LockTx, t Trigger) error {
		old := t
		switch {
		case paused && (t.Status == TriggerActive || t.Status == TriggerError):
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
		return recordTrigger(ctx, l, actor, "trigger "+name+" was "+roster.PauseVerb(paused)+"d")
	})
	return sqldb.Wrap(err, "%s trigger %s", roster.PauseVerb(paused), name)
}

// Delete deletes a trigger. Its runs stay, and a new trigger of the same name fires no slot a second time while the run
// of that slot is kept. Its open backfills end CANCELLED. Delete returns ErrUnknownTrigger if no trigger has that name.
func (ts *Triggers) Delete(ctx context.Context, name, actor string) error {
	err := ts.change(ctx, name, func(ctx context.Context, l *roster.LockTx, _ Trigger) error {
		return DeleteTrigger(ctx, l, name, actor)
	})
	return sqldb.Wrap(err, "delete trigger %s", name)
}

// DeleteTrigger deletes the row of a trigger under its target's lock row, and writes an event.
func DeleteTrigger(ctx context.Context, l *roster.LockTx, name, actor string) error {
	if _, err := l.Exec(ctx, `DELETE FROM schedule_trigger WHERE own_sign = ? AND name = ?`, l.OwnSign, name); err != nil {
		return err
	}
	if err := CancelBackfills(ctx, l, name, "trigger "+name+" was deleted"); err != nil {
		return err
	}
	return recordTrigger(ctx, l, actor, "trigger "+name+" was deleted")
}

// recordTrigger records an event about a trigger.
func recordTrigger(ctx context.Context, l *roster.LockTx, actor, reason string) error {
	return l.Record(ctx, roster.Event{Kind: roster.EventTrigger, Actor: actor, Reason: reason})
}

// Fire makes a run of a trigger at once, independent of its slots and status, and returns the run's id. It changes
// neither the slots nor the number of fires. The overlap policy applies: the run may be SKIPPED, unless the kind is
// ONCE. Fire returns ErrUnknownTrigger if no trigger has that name.
func (ts *Triggers) Fire(ctx context.Context, name, actor string) (runID string, err error) {
	err = ts.change(ctx, name, func(ctx context.Context, l *roster.LockTx, t Trigger) error {
		open, err := openRuns(ctx, l, []string{name})
		if err != nil {
			return err
		}
		r := newRun(l, t.runTemplate(open[name]), l.Now)
		r.Key = t.ID + "/now/" + r.ID
		runID = r.ID
		if err := insertRuns(ctx, l, []Run{r}, nil); err != nil {
			return err
		}
		if r.State != Skipped {
			if _, err := forgetSkipped(ctx, l, name); err != nil {
				return err
			}
		}
		return recordTrigger(ctx, l, actor, "trigger "+name+" was fired as run "+runID)
	})
	if err != nil {
		return "", fmt.Errorf("fire trigger %s: %w", name, err)
	}
	return runID, nil
}

// IfStill returns a copy for a caller that has read a trigger. SetPaused, Delete and Fire of the copy return
// roster.ErrChanged if the trigger is defined otherwise by then. A firing does not count as a change.
func (ts *Triggers) IfStill(seen Trigger) *Triggers {
	copied := *ts
	copied.seen = &seen
	return &copied
}

// change runs f under the lock row of the trigger's target.
func (ts *Triggers) change(ctx context.Context, name string,
	f func(context.Context, *roster.LockTx, Trigger) error,
) error {
	target, found, err := sqldb.Record[string](ctx, ts.db, `SELECT target FROM schedule_trigger
		WHERE own_sign = ? AND name = ?`, ts.ownSign, name)
	if err == nil && !found {
		err = ErrUnknownTrigger
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
