package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newTaskCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "task",
		Short: "Look at task types, change their settings, pause and delete them",
		Long: `Look at task types, change their settings, pause and delete them.

A task type's settings are a row that all environments (own_sign) share; its
queues, servers and pause are each environment's own.`,
	})
	cmd.AddCommand(newTaskListCommand(), newTaskShowCommand(), newTaskApplyCommand(),
		newTaskPauseCommand(true), newTaskPauseCommand(false), newTaskDeleteCommand())
	return cmd
}

func newTaskListCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the task types, and how each is doing",
		Example: `  rota task list
  rota task list --watch
  rota task list -o json | jq '.[] | select(.unassigned > 0)'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(cmd, o, func(ctx context.Context, c *center.Center) (reply, error) {
				tasks, err := c.Tasks(ctx, "")
				return reply{tasks, func(s screen) string { return render(s, tasks, taskFields) }}, err
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o, true)
	return cmd
}

type task = center.TaskRecord

var taskFields = []field[task]{
	{title: "TASK", text: func(t task) string { return t.TaskType }},
	{title: "STATE", text: taskState, color: byMeaning[task]},
	{title: "QUEUES", text: queueTotal, right: true},
	{title: "HELD", text: func(t task) string { return number(t.Held) }, right: true, spare: 2},
	{title: "MOVING", text: func(t task) string { return number(t.Moving) }, right: true, spare: 1},
	{title: "LATE", text: func(t task) string { return number(t.Overdue + t.Orphan) }, right: true, color: badUnlessZero[task]},
	{title: "NONE", text: func(t task) string { return number(t.Unassigned) }, right: true, color: badUnlessZero[task]},
	{title: "SERVERS", text: func(t task) string { return number(t.Servers) }, right: true},
	{title: "IN HAND", text: func(t task) string { return number(t.InHand) }, right: true, spare: 3},
	{title: "RETRY", text: func(t task) string { return number(t.RetryItems) }, right: true, spare: 1},
	{title: "DEAD", text: func(t task) string { return number(t.DeadItems) }, right: true, color: badUnlessZero[task]},
}

func taskState(t task) string {
	switch {
	case t.Paused:
		return "PAUSED"
	case t.RequestedTotal != nil:
		return "DRAINING"
	case t.Servers == t.DeadServers:
		return "UNSERVED"
	case t.RunID != nil:
		return center.RunRunning
	case t.Mode == center.ModeRun:
		return "IDLE"
	}
	return "SERVING"
}

func queueTotal(t task) string {
	if t.RequestedTotal != nil {
		return fmt.Sprintf("%d>%d", t.QueueTotal, *t.RequestedTotal)
	}
	return number(t.QueueTotal)
}

func newTaskShowCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "show TASK",
		Short: "Show a task type's settings and state",
		Example: `  rota task show settle
  rota task show settle -o json | jq .execute_number`,
		Args:              arguments("TASK"),
		ValidArgsFunction: complete(taskNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(cmd, o, func(ctx context.Context, c *center.Center) (reply, error) {
				return showTask(ctx, c, args[0])
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o, true)
	return cmd
}

// setting is a line of "rota task show": JSON has them as one object.
type setting struct {
	Name    string `json:"setting"`
	Value   string `json:"value"`
	Default string `json:"default"`
}

var settingFields = []field[setting]{
	{title: "SETTING", text: func(s setting) string { return s.Name }},
	{title: "VALUE", text: func(s setting) string { return s.Value }, free: true},
	{title: "DEFAULT", text: func(s setting) string { return s.Default }},
}

func showTask(ctx context.Context, c *center.Center, name string) (reply, error) {
	tasks, err := c.Tasks(ctx, name)
	if err != nil {
		return reply{}, err
	}
	s, err := c.Settings(ctx, name)
	if err != nil {
		return reply{}, err
	}
	queues := setting{Name: "queues", Value: fmt.Sprint(s.Queues)}
	if len(s.QueueNames) > 0 {
		queues.Value = "[" + strings.Join(s.QueueNames, ", ") + "]"
	}
	lines := []setting{queues}
	defaults := center.Settings{}.Records()
	for i, r := range s.Records() {
		lines = append(lines, setting{r.Name, line(r.Text), defaults[i].Text})
	}
	return reply{object(recordsOf(tasks[0]), s.Records()), func(sc screen) string {
		return render(sc, tasks, taskFields) + "\n\n" + render(sc, lines, settingFields)
	}}, nil
}
