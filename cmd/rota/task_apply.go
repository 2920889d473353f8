package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
)

// taskApply is one run of "rota task apply".
type taskApply struct {
	taskChange
	path  string
	reset bool
}

func newTaskApplyCommand() *cobra.Command {
	a := &taskApply{}
	cmd := &cobra.Command{
		Use:   "apply [TASK...]",
		Short: "Write the settings of a rota.yaml to the database",
		Long: `Write the settings of a rota.yaml to the database, for all its task types or for
the named ones. A setting that the file leaves out stays as it is; the command
names those that are not at their defaults, and --reset sets the defaults. The
command shows each difference before it writes. It creates missing task types.

Workers adopt new settings with their next heartbeats. A change of the number
of queues is a barrier: every worker finishes what it has in flight, then rows
are added or removed, then all workers continue. Named queues are added at once,
and removed when they are drained. cron and every belong to the trigger that has
the task type's name, in this environment. The command asks before it removes
queues or the trigger.`,
		Example: `  rota task apply -f rota.yaml --dry-run
  rota task apply -f rota.yaml
  rota task apply -f rota.yaml settle --yes`,
		Args:              arguments("[TASK...]"),
		ValidArgsFunction: complete(listTasks),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.run(args)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&a.path, "file", "f", defaultConfig, "configuration file")
	flags.StringVarP(&a.path, "config", "c", defaultConfig, "same as --file")
	addDatabaseFlag(cmd)
	addOwnSignFlag(cmd)
	flags.BoolVar(&a.reset, "reset", false, "set the defaults of what the file leaves out")
	a.addFlags(cmd)
	return cmd
}

// run reads and compares everything before it writes anything. Each task type
// comes after its upstreams, which must exist before it.
func (a *taskApply) run(names []string) error {
	file, err := config.Load(a.path, a.cmd.Flags())
	if err != nil {
		return usageError{err}
	}
	given := map[string][]string{}
	for _, t := range file.Tasks {
		given[t.Name] = t.Given
	}
	tasks, err := chooseTasks(settingsOf(file), names)
	if err != nil {
		return usageError{fmt.Errorf("%s: tasks: %w", a.path, err)}
	}
	return withRoster(a.cmd, func(ctx context.Context, c *center.Center) error {
		var diffs []center.SettingsDiff
		for _, t := range center.UpstreamsFirst(tasks) {
			d, err := a.compare(ctx, c, t, given[t.Name])
			if err != nil {
				return err
			}
			diffs = append(diffs, d)
		}
		return a.apply(ctx, c, diffs)
	})
}

// compare compares all settings with --reset, and otherwise those that the file gives.
func (a *taskApply) compare(ctx context.Context, c *center.Center, t center.TaskSettings, given []string) (center.SettingsDiff, error) {
	if a.reset {
		return c.Tasks().Compare(ctx, t.Name, t.Settings)
	}
	return c.Tasks().CompareGiven(ctx, t.Name, t.Settings, given)
}

func settingsOf(file *config.File) (tasks []center.TaskSettings) {
	for _, t := range file.Tasks {
		tasks = append(tasks, center.TaskSettings{Name: t.Name, Settings: t.Settings})
	}
	return tasks
}

// chooseTasks returns the named tasks in the order of the names, or all.
func chooseTasks(tasks []center.TaskSettings, names []string) ([]center.TaskSettings, error) {
	if len(names) == 0 {
		return tasks, nil
	}
	byName := map[string]center.TaskSettings{}
	for _, t := range tasks {
		byName[t.Name] = t
	}
	var chosen []center.TaskSettings
	for _, name := range names {
		t, found := byName[name]
		if !found {
			return nil, fmt.Errorf("%s is not defined", name)
		}
		chosen = append(chosen, t)
	}
	return chosen, nil
}
