package ops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/runs"
)

// Three settings are kept in tables of their own: cron and every are the trigger with the task type's name, after is
// schedule_task_after.

// triggerOf returns the trigger that cron and every define; false if neither is set.
func triggerOf(s center.Settings, taskType string) (runs.Trigger, bool) {
	t := runs.Trigger{Name: taskType, Target: taskType, Kind: runs.TriggerCron, Expression: s.Cron, TimeZone: s.TimeZone}
	if s.Every != 0 {
		t.Kind, t.Expression = runs.TriggerEvery, s.Every.String()
	}
	return t.WithDefaults(), t.Expression != ""
}

// readSchedule reads cron, every, time_zone and after. The time zone of the trigger is in force, not that of the row.
func (t *Tasks) readSchedule(ctx context.Context, taskType string, s *center.Settings) (err error) {
	if s.Mode != center.ModeRun {
		return nil
	}
	list, err := t.c.runs.Triggers.List(ctx, runs.TriggerFilter{Name: taskType, Target: taskType})
	if err != nil {
		return err
	}
	for _, trigger := range list {
		switch trigger.Kind {
		case runs.TriggerCron:
			s.Cron, s.TimeZone = trigger.Expression, trigger.TimeZone
		case runs.TriggerEvery:
			s.Every, _ = time.ParseDuration(trigger.Expression) // an invalid value is reported in the trigger's message
		}
	}
	s.After, err = t.c.runs.Dependencies.After(ctx, taskType)
	return err
}

// defineTrigger inserts the trigger of the settings unless a trigger of that name exists, even one with another target.
func defineTrigger(ctx context.Context, l *roster.LockTx, s center.Settings) error {
	t, ok := triggerOf(s, l.TaskType)
	if !ok {
		return nil
	}
	var mode string
	if err := l.QueryRow(ctx, `SELECT mode FROM schedule_task_type WHERE task_type = ?`, l.TaskType).Scan(&mode); err != nil || mode != center.ModeRun {
		return err
	}
	_, err := runs.PutTrigger(ctx, l, t, false, "")
	return err
}

// applySchedule writes the dependencies and the trigger of the settings.
func applySchedule(ctx context.Context, l *roster.LockTx, s center.Settings, actor string) error {
	if err := applyAfter(ctx, l, s.After); err != nil {
		return err
	}
	return applyOwnTrigger(ctx, l, s, actor)
}

// applyOwnTrigger changes the schedule of the settings' trigger and nothing else of it. Without cron and every it deletes
// the trigger.
func applyOwnTrigger(ctx context.Context, l *roster.LockTx, s center.Settings, actor string) error {
	t, wanted := triggerOf(s, l.TaskType)
	old, err := runs.ReadTrigger(ctx, l, l.TaskType)
	there := err == nil
	if err != nil && !errors.Is(err, runs.ErrUnknownTrigger) {
		return err
	}
	switch {
	case there && old.Target != l.TaskType:
		return fmt.Errorf("trigger %s has the name of this task type, and fires %s: give it another name", old.Name, old.Target)
	case there && !wanted && old.Kind != runs.TriggerOnce:
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
func applyAfter(ctx context.Context, l *roster.LockTx, after []runs.After) error {
	edges, err := runs.ReadEdges(ctx, l.Tx)
	if err != nil {
		return err
	}
	var there []runs.After
	for _, e := range edges {
		if e.TaskType == l.TaskType {
			there = append(there, e.After)
		}
	}
	if (center.Settings{After: there}).Given()["after"] == (center.Settings{After: after}).Given()["after"] {
		return nil
	}
	return runs.WriteAfter(ctx, l.Tx, l.TaskType, after)
}
