package main

import (
	"context"
	"errors"
	"slices"

	"github.com/dutyrota/rota/center"
)

// taskSettings are the settings that a file gives for a task type.
type taskSettings struct {
	name     string
	settings center.Settings
}

// taskDiff is the difference between the settings of a file and those of the
// roster, for one task type.
type taskDiff struct {
	taskSettings
	center.SettingsDiff
}

// compareTasks compares settings with the roster and writes nothing. Each task
// type comes after its upstreams, as it must be created after them.
func compareTasks(ctx context.Context, c *center.Center, tasks []taskSettings) (diffs []taskDiff, err error) {
	for _, t := range upstreamsFirst(tasks) {
		applied, err := c.Tasks().Compare(ctx, t.name, t.settings)
		if err != nil {
			return nil, err
		}
		diffs = append(diffs, taskDiff{t, applied})
	}
	return diffs, nil
}

// upstreamsFirst leaves a cycle in its order: the roster refuses it.
func upstreamsFirst(tasks []taskSettings) (order []taskSettings) {
	rest := slices.Clone(tasks)
	for len(rest) > 0 {
		next := max(0, slices.IndexFunc(rest, func(t taskSettings) bool { return !t.runsAfterAny(rest) }))
		order = append(order, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}
	return order
}

func (t taskSettings) runsAfterAny(others []taskSettings) bool {
	return slices.ContainsFunc(t.settings.After, func(a center.After) bool {
		return slices.ContainsFunc(others, func(o taskSettings) bool { return o.name == a.Upstream })
	})
}

// queuesRemoved returns how many numbered queues the change removes.
func (d taskDiff) queuesRemoved() int {
	if !d.Repartitions() {
		return 0
	}
	return max(0, d.Total-d.Wanted)
}

// queuesAdded returns how many numbered queues the change adds.
func (d taskDiff) queuesAdded() int {
	if !d.Repartitions() {
		return 0
	}
	return max(0, d.Wanted-d.Total)
}

// changesTrigger reports whether the change writes or deletes the trigger that
// has the task type's name.
func (d taskDiff) changesTrigger() bool {
	return slices.ContainsFunc(d.Changes, func(s center.Difference) bool { return s.Name == "cron" || s.Name == "every" })
}

// deletesTrigger reports whether the change deletes that trigger.
func (d taskDiff) deletesTrigger() bool {
	return d.changesTrigger() && d.settings.Cron == "" && d.settings.Every == 0
}

// apply writes the difference. It writes the settings first: they are one
// transaction, which fails if they have changed since compareTasks.
func (d taskDiff) apply(ctx context.Context, c *center.Center, actor string) error {
	if d.Same() {
		return nil
	}
	if err := c.Tasks().Apply(ctx, d.name, d.settings, d.SettingsDiff, actor); err != nil {
		return err
	}
	switch {
	case !d.Exists, d.Total == 0: // ApplySettings has created the queues
		return nil
	case d.Repartitions():
		return c.Queues().Repartition(ctx, d.name, d.Wanted, actor)
	}
	return d.applyQueueNames(ctx, c, actor)
}

// applyQueueNames adds before it removes, as the roster refuses to remove the
// last queue.
func (d taskDiff) applyQueueNames(ctx context.Context, c *center.Center, actor string) error {
	var errs []error
	for _, name := range d.Add {
		errs = append(errs, c.Queues().Add(ctx, d.name, name, "", actor))
	}
	for _, name := range d.Remove {
		errs = append(errs, c.Queues().Remove(ctx, d.name, name, actor))
	}
	return errors.Join(errs...)
}
