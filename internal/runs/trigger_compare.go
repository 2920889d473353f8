package runs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// TriggerDiff compares the row of a trigger with the trigger that would replace it.
type TriggerDiff struct {
	Exists  bool         // the row exists
	Version int64        // of the row; 0 if there is none
	Wanted  Trigger      // as it was given
	Changes []Difference // Row is the value in force, Given the new one, with defaults
	Trigger Trigger      // the result of [Triggers.Apply]
	Next    []time.Time  // the next slots of that result
	Now     time.Time    // by the database's clock, when this was computed
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
	a.Wanted = t
	if a.Exists = len(list) > 0; a.Exists {
		old = list[0].Trigger
		a.Version = old.Version
	}
	if a.Trigger, err = t.replace(old, a.Exists, ts.ownSign, a.Now); err == nil && a.Exists {
		a.Changes = old.differences(a.Trigger)
	}
	return a, err
}

// storeColumns are the columns of a trigger that neither its user sets nor a firing changes.
var storeColumns = []string{"name", "trigger_id", "version"}

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
