package center

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/cron"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/runs"
	"github.com/dutyrota/rota/internal/slots"
)

// Three settings are kept in tables of their own: cron and every are the trigger with the task type's name, after is
// schedule_task_after.

// trigger returns the trigger that cron and every define; false if neither is set.
func (s Settings) trigger(taskType string) (Trigger, bool) {
	t := Trigger{Name: taskType, Target: taskType, Kind: TriggerCron, Expression: s.Cron, TimeZone: s.TimeZone}
	if s.Every != 0 {
		t.Kind, t.Expression = TriggerEvery, s.Every.String()
	}
	return t.WithDefaults(), t.Expression != ""
}

func (s Settings) validateSchedule() error {
	if s.Cron != "" && s.Every != 0 {
		return fmt.Errorf("cron (%s) and every (%s) must not both be set", s.Cron, s.Every)
	}
	return errors.Join(s.validateCron(), s.validateEvery(), runs.ValidAfter(s.After))
}

func (s Settings) validateCron() error {
	if s.Cron == "" {
		return nil
	}
	if len(s.Cron) > runs.MaxExpression {
		return fmt.Errorf("cron must have at most %d bytes, not %d", runs.MaxExpression, len(s.Cron))
	}
	zone, err := cron.LoadZone(s.TimeZone)
	if err != nil {
		return nil //nolint:nilerr // Validate reports the zone through ParseWindow
	}
	_, err = cron.Parse(s.Cron, zone)
	return err
}

func (s Settings) validateEvery() error {
	if _, err := slots.Parse(TriggerEvery, s.Every.String(), "", time.Unix(0, 0)); s.Every != 0 && err != nil {
		return fmt.Errorf("every (%s) must be from 1s to 8760h, in whole milliseconds", s.Every)
	}
	return nil
}

// readSchedule reads cron, every, time_zone and after. The time zone of the trigger is in force, not that of the row.
func (t *Tasks) readSchedule(ctx context.Context, taskType string, s *Settings) (err error) {
	if s.Mode != ModeRun {
		return nil
	}
	list, err := t.c.runs.Triggers.List(ctx, TriggerFilter{Name: taskType, Target: taskType})
	if err != nil {
		return err
	}
	for _, trigger := range list {
		switch trigger.Kind {
		case TriggerCron:
			s.Cron, s.TimeZone = trigger.Expression, trigger.TimeZone
		case TriggerEvery:
			s.Every, _ = time.ParseDuration(trigger.Expression) // an invalid value is reported in the trigger's message
		}
	}
	s.After, err = t.c.runs.Dependencies.After(ctx, taskType)
	return err
}

// defineTrigger inserts the trigger of the settings unless a trigger of that name exists, even one with another target.
func defineTrigger(ctx context.Context, l *roster.LockTx, s Settings) error {
	t, ok := s.trigger(l.TaskType)
	if !ok {
		return nil
	}
	var mode string
	if err := l.QueryRow(ctx, `SELECT mode FROM schedule_task_type WHERE task_type = ?`, l.TaskType).Scan(&mode); err != nil || mode != ModeRun {
		return err
	}
	_, err := runs.PutTrigger(ctx, l, t, false, "")
	return err
}

// applySchedule writes the dependencies and the trigger of the settings.
func applySchedule(ctx context.Context, l *roster.LockTx, s Settings, actor string) error {
	if err := applyAfter(ctx, l, s.After); err != nil {
		return err
	}
	return applyTrigger(ctx, l, s, actor)
}

// applyTrigger changes the schedule of the settings' trigger and nothing else of it. Without cron and every it deletes
// the trigger.
func applyTrigger(ctx context.Context, l *roster.LockTx, s Settings, actor string) error {
	t, wanted := s.trigger(l.TaskType)
	old, err := runs.ReadTrigger(ctx, l, l.TaskType)
	there := err == nil
	if err != nil && !errors.Is(err, ErrUnknownTrigger) {
		return err
	}
	switch {
	case there && old.Target != l.TaskType:
		return fmt.Errorf("trigger %s has the name of this task type, and fires %s: give it another name", old.Name, old.Target)
	case there && !wanted && old.Kind != TriggerOnce:
		return runs.DeleteTrigger(ctx, l, old.Name, actor)
	case !wanted:
		return nil
	case there && old.Kind == t.Kind && old.Expression == t.Expression && old.TimeZone == t.TimeZone:
		return nil
	case there:
		old.Kind, old.Expression, old.TimeZone = t.Kind, t.Expression, t.TimeZone
		t = old
	}
	_, err = runs.PutTrigger(ctx, l, t, true, actor)
	return err
}

// applyAfter writes the dependencies if they have changed.
func applyAfter(ctx context.Context, l *roster.LockTx, after []After) error {
	edges, err := runs.ReadEdges(ctx, l.Tx)
	if err != nil {
		return err
	}
	var there []After
	for _, e := range edges {
		if e.TaskType == l.TaskType {
			there = append(there, e.After)
		}
	}
	if afterText(there) == afterText(after) {
		return nil
	}
	return runs.WriteAfter(ctx, l.Tx, l.TaskType, after)
}

// CheckAfter validates the dependencies of task types that are defined together. The map is by name. CheckAfter returns an
// error for a cycle and for an upstream without runs. Define checks the upstreams that are not in the map.
func CheckAfter(tasks map[string]Settings) error {
	var edges []runs.Edge
	names := slices.Sorted(maps.Keys(tasks))
	for _, name := range names {
		for _, a := range tasks[name].After {
			if up, there := tasks[a.Upstream]; there && up.WithDefaults().Mode == ModeContinuous {
				return fmt.Errorf("task %s: after %s: %w", name, a.Upstream, runs.ErrNoRuns)
			}
			edges = append(edges, runs.Edge{TaskType: name, After: a})
		}
	}
	for _, name := range names {
		if path := runs.Cycle(edges, name); path != nil {
			return fmt.Errorf("task %s: after makes a cycle: %s", name, strings.Join(path, " after "))
		}
	}
	return nil
}
