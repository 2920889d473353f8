package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
)

// taskApply is one run of "rota task apply".
type taskApply struct {
	cmd    *cobra.Command
	out    output
	path   string
	dryRun bool
}

func newTaskApplyCommand() *cobra.Command {
	a := &taskApply{}
	cmd := &cobra.Command{
		Use:   "apply [TASK...]",
		Short: "Make the database say what a rota.yaml says",
		Long: `Make the database say what a rota.yaml says of its task types, or of those that
are named: what the file leaves open gets its default. It shows each difference
before it writes. A task type that is not there is created.

Workers take new settings over with their next heartbeats; the two intervals
with their next start. Another number of queues is a barrier: every worker
finishes what it has in hand, then rows are added or removed, then all go on.
Named queues come at once, and go when they are drained. cron and every are the
trigger that has the task type's name, in this environment. What removes queues
or the trigger asks first.`,
		Example: `  rota task apply -f rota.yaml --dry-run
  rota task apply -f rota.yaml
  rota task apply -f rota.yaml settle --yes`,
		Args:              arguments("[TASK...]"),
		ValidArgsFunction: complete(taskNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.cmd = cmd
			return a.run(args)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&a.path, "file", "f", defaultConfig, "file to read")
	flags.StringVarP(&a.path, "config", "c", defaultConfig, "the same, as other commands call it")
	flags.String("database", "", "URL of the roster's database: postgres://, mysql:// or sqlite:FILE (ROTA_DATABASE)")
	flags.String("own-sign", "", "environment, where several share a database (ROTA_OWN_SIGN)")
	flags.BoolVar(&a.dryRun, "dry-run", false, "show the difference, and write nothing")
	addOutputFlags(cmd, &a.out, false)
	addYes(cmd)
	return cmd
}

// run reads and compares everything before anything is written.
func (a *taskApply) run(names []string) error {
	file, err := config.Load(a.path, a.cmd.Flags())
	if err != nil {
		return usageError{err}
	}
	wanted, err := choose(file, a.path, names)
	if err != nil {
		return usageError{err}
	}
	return withRoster(a.cmd, func(ctx context.Context, c *center.Center) error {
		var steps []step
		for _, task := range wanted {
			applied, err := c.CompareSettings(ctx, task.Name, task.Settings)
			if err != nil {
				return err
			}
			steps = append(steps, step{task, applied, c.OwnSign()})
		}
		return a.apply(ctx, c, inOrder(steps))
	})
}

// inOrder puts what a task type runs after before it: it must be there when the other is created.
func inOrder(steps []step) (ordered []step) {
	for len(steps) > 0 {
		first := max(0, slices.IndexFunc(steps, func(s step) bool { return !s.waitsFor(steps) }))
		ordered, steps = append(ordered, steps[first]), slices.Delete(steps, first, first+1)
	}
	return ordered
}

func (s step) waitsFor(others []step) bool {
	return slices.ContainsFunc(s.task.Settings.After, func(a center.After) bool {
		return slices.ContainsFunc(others, func(o step) bool { return o.task.Name == a.Upstream })
	})
}

// choose takes the named tasks of the file, or all.
func choose(file *config.File, path string, names []string) ([]config.Task, error) {
	if len(names) == 0 {
		return file.Tasks, nil
	}
	var chosen []config.Task
	for _, name := range names {
		before := len(chosen)
		for _, task := range file.Tasks {
			if task.Name == name {
				chosen = append(chosen, task)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("%s: tasks: there is no %s", path, name)
		}
	}
	return chosen, nil
}

// apply tells what will be done, asks, does it, and tells that it was done.
func (a *taskApply) apply(ctx context.Context, c *center.Center, steps []step) error {
	if a.out.format.value == formatTable {
		if err := a.tell(steps); err != nil {
			return err
		}
	}
	if !a.dryRun {
		if losses := losses(steps); len(losses) > 0 {
			if err := confirm(a.cmd, strings.Join(losses, ", and ")); err != nil {
				return err
			}
		}
		for _, s := range steps {
			if err := s.do(ctx, c); err != nil {
				return err
			}
		}
	}
	if a.out.format.value == formatTable {
		return nil
	}
	return a.out.write(a.cmd.OutOrStdout(), reply{records: a.records(steps)})
}

// tell shows the differences to people.
func (a *taskApply) tell(steps []step) error {
	var text []string
	sc := screenOf(a.cmd.OutOrStdout())
	for _, s := range steps {
		text = append(text, s.text(sc, a.dryRun))
	}
	_, err := fmt.Fprintln(a.cmd.OutOrStdout(), strings.Join(text, "\n\n"))
	return err
}

func losses(steps []step) (list []string) {
	for _, s := range steps {
		if s.fewer() {
			list = append(list, fmt.Sprintf("remove %s of %s", plural(s.Total-s.Wanted, "queue", "queues"), s.task.Name))
		}
		if s.reschedules() && s.task.Settings.Cron == "" && s.task.Settings.Every == 0 {
			list = append(list, fmt.Sprintf("delete the trigger %s, so that no run of it begins by itself", s.task.Name))
		}
		if len(s.Remove) > 0 {
			list = append(list, fmt.Sprintf("remove queues of %s, whose items are not processed any more: %s", s.task.Name, strings.Join(s.Remove, ", ")))
		}
	}
	return list
}

// change is a line of "rota task apply" in JSON and CSV.
type change struct {
	TaskType string `json:"task_type"`
	OwnSign  string `json:"own_sign"`
	Setting  string `json:"setting"`
	Row      string `json:"row"`
	File     string `json:"file"`
	Applied  bool   `json:"applied"`
}

func (a *taskApply) records(steps []step) []change {
	var list []change
	for _, s := range steps {
		for _, c := range s.changes() {
			c.TaskType, c.OwnSign, c.Applied = s.task.Name, s.ownSign, !a.dryRun
			list = append(list, c)
		}
	}
	return list
}
