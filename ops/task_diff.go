package ops

import (
	"slices"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

// Same reports whether there is nothing to do.
func (d SettingsDiff) Same() bool {
	return d.Exists && len(d.Changes) == 0 && len(d.Add) == 0 && len(d.Remove) == 0 && !d.Repartitions()
}

// Repartitions reports whether the number of numbered queues changes, or a requested change is withdrawn.
func (d SettingsDiff) Repartitions() bool {
	if d.Named || !d.Exists || d.Total == 0 {
		return false
	}
	return d.Wanted != d.Total && d.Wanted != d.Waiting || d.Wanted == d.Total && d.Waiting != 0
}

// QueuesAdded returns how many numbered queues the change adds.
func (d SettingsDiff) QueuesAdded() int {
	if !d.Repartitions() {
		return 0
	}
	return max(0, d.Wanted-d.Total)
}

// QueuesRemoved returns how many numbered queues the change removes.
func (d SettingsDiff) QueuesRemoved() int {
	if !d.Repartitions() {
		return 0
	}
	return max(0, d.Total-d.Wanted)
}

// ChangesTrigger reports whether the change writes or deletes the trigger that has the task type's name.
func (d SettingsDiff) ChangesTrigger() bool {
	return slices.ContainsFunc(d.Changes, func(s runs.Difference) bool { return s.Name == "cron" || s.Name == "every" })
}

// DeletesTrigger reports whether the change deletes that trigger.
func (d SettingsDiff) DeletesTrigger() bool {
	return d.ChangesTrigger() && d.Settings.Cron == "" && d.Settings.Every == 0
}

// TaskSettings are the settings that a file gives for a task type.
type TaskSettings struct {
	Name     string
	Settings center.Settings
	Given    []string // the names of the settings that the file gives
}

// UpstreamsFirst sorts the task types so that each comes after its upstreams, which must exist before it. It leaves a
// cycle in its order: Tasks.Apply refuses it.
func UpstreamsFirst(tasks []TaskSettings) []TaskSettings {
	return upstreamsFirst(tasks, func(t, other TaskSettings) bool {
		return slices.ContainsFunc(t.Settings.After, func(a runs.After) bool { return a.Upstream == other.Name })
	})
}
