package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
)

// step is what has to be done for one task type.
type step struct {
	task config.Task
	center.Applied
	ownSign string
}

// fewer says that numbered queues are to go.
func (s step) fewer() bool { return s.Repartitions() && s.Wanted < s.Total }

// reschedules says that the trigger of the settings is to be another, or to go.
func (s step) reschedules() bool {
	return slices.ContainsFunc(s.Changes, func(d center.Difference) bool { return d.Name == "cron" || d.Name == "every" })
}

// do writes the settings first: they are one transaction, which somebody else's change may refuse.
func (s step) do(ctx context.Context, c *center.Center) error {
	if s.Same() {
		return nil
	}
	if err := c.ApplySettings(ctx, s.task.Name, s.task.Settings, s.Applied, actor()); err != nil {
		return err
	}
	if !s.Exists || s.Total == 0 {
		return nil // it has got its queues
	}
	if s.Repartitions() {
		return c.Roster().Repartition(ctx, s.task.Name, s.Wanted, actor())
	}
	return s.doNames(ctx, c)
}

// doNames adds before it removes: the last queue could not go.
func (s step) doNames(ctx context.Context, c *center.Center) error {
	var errs []error
	for _, name := range s.Add {
		errs = append(errs, c.Roster().AddQueue(ctx, s.task.Name, name, "", actor()))
	}
	for _, name := range s.Remove {
		errs = append(errs, c.Roster().RemoveQueue(ctx, s.task.Name, name, actor()))
	}
	return errors.Join(errs...)
}

// changes are the differences, that of the queues among them.
func (s step) changes() (list []change) {
	if !s.Exists {
		return []change{{Setting: "task_type", Row: "", File: s.task.Name}}
	}
	for _, d := range s.Changes {
		list = append(list, change{Setting: d.Name, Row: d.Row, File: d.Given})
	}
	if s.Repartitions() {
		row := fmt.Sprint(s.Total)
		if s.Waiting != 0 {
			row += fmt.Sprintf(" (%d asked for)", s.Waiting)
		}
		list = append(list, change{Setting: "queues", Row: row, File: fmt.Sprint(s.Wanted)})
	}
	for _, name := range s.Add {
		list = append(list, change{Setting: "queues", File: name})
	}
	for _, name := range s.Remove {
		list = append(list, change{Setting: "queues", Row: name})
	}
	return list
}

var changeFields = []field[change]{
	{title: "SETTING", text: func(c change) string { return c.Setting }},
	{title: "DATABASE", text: func(c change) string { return orDash(line(c.Row)) }, free: true},
	{title: "FILE", text: func(c change) string { return orDash(line(c.File)) }, free: true},
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// text tells people what is different, and what will be done about it.
func (s step) text(sc screen, dryRun bool) string {
	name := s.task.Name + "$" + s.ownSign
	switch {
	case s.Same():
		return name + ": nothing to do"
	case !s.Exists:
		return fmt.Sprintf("%s: %s, with %s", name, will("created", dryRun), s.queues())
	}
	return name + ":\n" + render(sc, s.changes(), changeFields) + "\n" + strings.Join(s.notes(dryRun), "\n")
}

func (s step) queues() string {
	if s.Named {
		return fmt.Sprintf("queues %s", strings.Join(s.task.Settings.QueueNames, ", "))
	}
	return plural(s.Wanted, "queue", "queues")
}

func will(done string, dryRun bool) string {
	if dryRun {
		return "would be " + done
	}
	return "is " + done
}

// notes say what each change does.
func (s step) notes(dryRun bool) (list []string) {
	if len(s.Changes) > 0 {
		list = append(list, "Workers of all environments take the settings over with their next heartbeats.")
	}
	if s.reschedules() {
		list = append(list, fmt.Sprintf("The trigger %s is that of this environment, %s. Runs that are open stay.", s.task.Name, s.ownSign))
	}
	switch {
	case s.fewer():
		list = append(list, fmt.Sprintf("The number of queues is a barrier: every worker finishes what it has in hand and waits; then %s removed, and the rest goes on under new epochs.", plural(s.Total-s.Wanted, "row is", "rows are")))
	case s.Repartitions() && s.Wanted > s.Total:
		list = append(list, fmt.Sprintf("The number of queues is a barrier: every worker finishes what it has in hand and waits; then %s added, and all go on under new epochs.", plural(s.Wanted-s.Total, "row is", "rows are")))
	case s.Repartitions():
		list = append(list, fmt.Sprintf("The change to %s, for which workers drain, is withdrawn.", plural(s.Waiting, "queue", "queues")))
	}
	if len(s.Remove) > 0 {
		list = append(list, "Queues that go are drained by their owners first; their items are not processed any more.")
	}
	if dryRun {
		list = append(list, "Nothing was written.")
	}
	return list
}
