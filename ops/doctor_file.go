package ops

import (
	"context"
	"slices"

	"github.com/dutyrota/rota/condition"
)

// DiagnoseFile compares the settings that the file at path gives for task types with those of the database, which are in
// force. It returns a note for each task type that differs, and leaves out a task type that it cannot compare: the worker
// and Tasks.Compare report invalid settings.
func (c *Client) DiagnoseFile(ctx context.Context, path string, tasks []TaskSettings) (findings []condition.Condition) {
	names, err := c.Tasks().Names(ctx)
	if err != nil {
		return nil // the database is checked elsewhere
	}
	for _, t := range tasks {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, t := range tasks {
		for _, a := range t.Settings.After {
			if !slices.Contains(names, a.Upstream) {
				findings = append(findings, unknownUpstream(path, t.Name, a.Upstream, names))
			}
		}
		d, err := c.Tasks().Compare(ctx, t.Name, t.Settings)
		if err != nil || d.Same() {
			continue
		}
		text := "the settings in " + path + " differ from those in the database, which are in force"
		if !d.Exists {
			text = path + " defines this task type, and the database does not have it"
		}
		c := condition.New(condition.SettingsDiffer, t.Name, text, "rota task apply --dry-run -f "+path)
		c.Subject = path
		findings = append(findings, c)
	}
	return findings
}

// unknownUpstream is the finding of a task type that cannot be created, so that its worker waits.
func unknownUpstream(path, taskType, upstream string, names []string) condition.Condition {
	c := condition.New(condition.NoUpstream, taskType,
		"after names no task type: there is none of the name "+upstream+", and a worker waits until there is one",
		"define it, or correct after in "+path+"; the task types are "+firstFive(names))
	c.Subject = upstream
	return c
}
