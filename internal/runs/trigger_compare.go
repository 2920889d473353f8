package runs

import (
	"context"
	"fmt"
	"time"
)

// TriggerDiff compares the row of a trigger with the trigger that would replace it.
type TriggerDiff struct {
	Exists  bool         // the row exists
	Changes []Difference // Row is the value in force, Given the new one, with defaults
	Trigger Trigger      // the result of [Triggers.Apply]
	Next    []time.Time  // the next slots of that result
	Now     time.Time    // by the database's clock, when this was computed
}

// Same reports whether [Triggers.Apply] would change nothing.
func (d TriggerDiff) Same() bool { return d.Exists && len(d.Changes) == 0 }

// Difference is a setting whose value in a program or a file differs from the row.
type Difference struct {
	Name  string // the setting's name in rota.yaml
	Given string
	Row   string
}

// Compare returns what Apply would change, and at most n of the next slots. It writes nothing. It returns
// ErrUnknownTask if the target has no row.
func (ts *Triggers) Compare(ctx context.Context, t Trigger, n int) (a TriggerDiff, err error) {
	if a, err = ts.compare(ctx, t.WithDefaults()); err == nil {
		a.Next, err = a.Trigger.Next(n)
	}
	if err != nil {
		return TriggerDiff{}, fmt.Errorf("trigger %s: %w", t.Name, err)
	}
	return a, nil
}

func (ts *Triggers) compare(ctx context.Context, t Trigger) (a TriggerDiff, err error) {
	if err := checkMode(ctx, ts.db, t.Target); err != nil {
		return a, fmt.Errorf("target %s: %w", t.Target, err)
	}
	list, err := ts.List(ctx, TriggerFilter{Name: t.Name})
	if err != nil {
		return a, err
	}
	if a.Now, err = ts.db.Clock(ctx); err != nil {
		return a, err
	}
	var old Trigger
	if a.Exists = len(list) > 0; a.Exists {
		old = list[0].Trigger
	}
	if a.Trigger, err = t.replace(old, a.Exists, ts.ownSign, a.Now); err == nil && a.Exists {
		a.Changes = old.differences(a.Trigger)
	}
	return a, err
}

// differences lists the settings in which want differs from t.
func (t Trigger) differences(want Trigger) (list []Difference) {
	wanted := want.settings()
	for i, has := range t.settings() {
		if has.value != wanted[i].value {
			list = append(list, Difference{Name: has.name, Row: fmt.Sprint(has.value), Given: fmt.Sprint(wanted[i].value)})
		}
	}
	return list
}

// settings returns the columns of a trigger that its user sets.
func (t Trigger) settings() []columnValue {
	return []columnValue{
		{"target", t.Target},
		{"kind", t.Kind},
		{"expression", t.Expression},
		{"time_zone", t.TimeZone},
		{"start_at", timeText(t.StartAt)},
		{"end_at", timeText(t.EndAt)},
		{"max_fires", t.MaxFires},
		{"misfire", t.Misfire},
		{"misfire_after", t.MisfireAfter},
		{"catchup_max", t.CatchupMax},
		{"jitter", t.Jitter},
		{"excluded_days", t.ExcludedDays},
		{"overlap", t.Overlap},
		{"priority", t.Priority},
		{"params", t.Params},
	}
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
