package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
)

func newTaskShowCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "show TASK",
		Short: "Show the settings and the state of a task type",
		Example: `  rota task show settle
  rota task show settle -o json | jq .execute_number
  rota task show settle -o yaml > settle.yaml    a file for rota task apply -f`,
		Args:              arguments("TASK"),
		ValidArgsFunction: complete(listTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(cmd, o, func(ctx context.Context, c *ops.Client) (result, error) {
				return showTask(ctx, c, args[0])
			})
		},
	}
	addRosterFlags(cmd)
	addWatchFlags(cmd, &o)
	o.format.values = append(slices.Clip(formats), formatYAML)
	return cmd
}

func showTask(ctx context.Context, c *ops.Client, taskType string) (result, error) {
	tasks, err := c.Tasks().List(ctx, taskType)
	if err != nil {
		return result{}, err
	}
	s, err := c.Tasks().Settings(ctx, taskType)
	if err != nil {
		return result{}, err
	}
	record := records.Of(tasks[0])
	for _, r := range s.Records() {
		record = record.With(r.Column, r.Value)
	}
	return result{
		records: record, yaml: func() ([]byte, error) { return config.Format(taskType, s) },
		text: func(sc screen) string {
			return render(sc, tasks, taskColumns) + "\n\n" + render(sc, settingLines(s, tasks[0]), settingColumns)
		},
	}, nil
}

// settingLine is a setting in the table; JSON has all settings in one object.
type settingLine struct{ name, value, defaultValue string }

var settingColumns = []column[settingLine]{
	{title: "SETTING", text: func(s settingLine) string { return s.name }},
	{title: "VALUE", text: func(s settingLine) string { return s.value }, truncate: true},
	{title: "DEFAULT", text: func(s settingLine) string { return s.defaultValue }},
}

func settingLines(s center.Settings, task ops.TaskRecord) []settingLine {
	lines := []settingLine{{name: "queues", value: s.QueuesText()}}
	defaults := center.Settings{}.Records()
	for i, r := range s.Records() {
		text := oneLine(r.Text)
		if r.Name == "max_in_flight" {
			text += grantedText(s, task)
		}
		lines = append(lines, settingLine{r.Name, text, defaults[i].Text})
	}
	return lines
}

// grantedText says how many calls may be in flight until a new max_in_flight is in force.
func grantedText(s center.Settings, task ops.TaskRecord) string {
	switch {
	case s.MaxInFlight == 0 || task.Servers == 0:
		return ""
	case task.GrantedCalls == nil:
		return " (not in force: a server has no limit yet)"
	case *task.GrantedCalls > int64(s.MaxInFlight):
		return " (now " + number(*task.GrantedCalls) + ", until calls have ended)"
	}
	return ""
}
