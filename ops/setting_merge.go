package ops

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

// CompareGiven does what Compare does for a part of the settings: it leaves those alone that given does not name, and lists
// them in Left if they differ from their defaults. given has names as in rota.yaml. cron and every replace each other. If the
// task type has no row, the settings that are left out have their defaults.
func (t *Tasks) CompareGiven(ctx context.Context, taskType string, s center.Settings, given []string) (SettingsDiff, error) {
	row, err := t.Settings(ctx, taskType)
	if errors.Is(err, center.ErrUnknownTask) {
		return t.Compare(ctx, taskType, s)
	}
	if err != nil {
		return SettingsDiff{}, err
	}
	if !slices.Contains(given, "queues") {
		if row.Queues, err = t.requestedQueues(ctx, taskType, row.Queues); err != nil {
			return SettingsDiff{}, err
		}
	}
	d, err := t.Compare(ctx, taskType, merged(row, s, given))
	if err != nil {
		return SettingsDiff{}, err
	}
	for _, c := range settingChanges(row, center.Settings{}) {
		if !takes(given, c.Name) {
			d.Left = append(d.Left, c)
		}
	}
	return d, nil
}

// requestedQueues returns the number of queues for which the servers drain, or else the present one.
func (t *Tasks) requestedQueues(ctx context.Context, taskType string, now int) (int, error) {
	tasks, err := t.List(ctx, taskType)
	if err != nil || len(tasks) == 0 || tasks[0].RequestedTotal == nil {
		return now, err
	}
	return int(*tasks[0].RequestedTotal), nil
}

// merged returns s with the given settings of from.
func merged(s, from center.Settings, given []string) center.Settings {
	for _, row := range center.SettingTable() {
		if takes(given, row.Name) {
			reflect.ValueOf(row.Field(&s)).Elem().Set(reflect.ValueOf(row.Field(&from)).Elem())
		}
	}
	return s
}

// takes reports whether the given settings replace the named one.
func takes(given []string, name string) bool {
	if name == "cron" || name == "every" {
		return slices.Contains(given, "cron") || slices.Contains(given, "every")
	}
	return slices.Contains(given, name)
}

// settingChanges compares all settings except the queues, with defaults for zeros.
func settingChanges(row, want center.Settings) (diffs []runs.Difference) {
	rows := row.Records()
	for i, w := range want.Records() {
		if rows[i].Value != w.Value {
			diffs = append(diffs, runs.Difference{Name: w.Name, Given: w.Text, Row: rows[i].Text})
		}
	}
	return diffs
}
