package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// The newest runs and items that a shell is offered.
const (
	listedRuns  = 50
	listedItems = 1_000
)

func ListTasks(ctx context.Context, c *ops.Client, _ []string) ([]string, error) {
	return c.Tasks().Names(ctx)
}

// ListSettings lists the settings as beginnings of assignments.
func ListSettings(context.Context, *ops.Client, []string) (values []string, err error) {
	for _, row := range center.SettingTable() {
		if assignment := row.Name + "="; !slices.Contains(values, assignment) {
			values = append(values, assignment)
		}
	}
	return values, nil
}

// ListRunTasks lists the task types that can have runs.
func ListRunTasks(ctx context.Context, c *ops.Client, _ []string) ([]string, error) {
	return runTaskNames(ctx, c)
}

func ListServers(ctx context.Context, c *ops.Client, _ []string) (values []string, err error) {
	servers, err := c.Servers().List(ctx, ops.ServerFilter{})
	for _, s := range servers {
		values = append(values, s.UUID+"\t"+s.TaskType+", "+strings.ToLower(s.DisplayState()))
	}
	return values, err
}

// ListHosts lists the hosts of the servers of the task type in the first
// argument, or of all.
func ListHosts(ctx context.Context, c *ops.Client, args []string) ([]string, error) {
	return hostNames(ctx, c, FirstArg(args))
}

// ListQueues lists the queues of the task type in the first argument.
func ListQueues(ctx context.Context, c *ops.Client, args []string) (values []string, err error) {
	queues, err := c.Queues().List(ctx, ops.QueueFilter{TaskType: FirstArg(args)})
	for _, q := range queues {
		values = append(values, q.QueueID)
	}
	return values, err
}

// ListItems lists the failed items of the task type in the first argument.
func ListItems(ctx context.Context, c *ops.Client, args []string) (values []string, err error) {
	items, err := c.Items().List(ctx, ops.ItemFilter{TaskType: FirstArg(args)}, listedItems)
	for _, i := range items {
		values = append(values, i.ItemKey)
	}
	return values, err
}

// ListRuns lists the newest runs that accept returns true for, and then the
// task types; a task type stands for its newest run.
func ListRuns(accept func(runs.Run) bool) Lister {
	return func(ctx context.Context, c *ops.Client, _ []string) (values []string, err error) {
		list, err := c.Runs().List(ctx, runs.Filter{}, listedRuns)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if accept(r.Run) {
				values = append(values, r.ID+"\t"+r.TaskType+", "+strings.ToLower(r.DisplayState())+", "+RelativeTime(r.Now,
					r.ScheduledAt))
			}
		}
		names, err := runTaskNames(ctx, c)
		for _, name := range names {
			values = append(values, name+"\tits newest run")
		}
		return values, err
	}
}

func AnyRun(runs.Run) bool { return true }

func ListTriggers(ctx context.Context, c *ops.Client, _ []string) (values []string, err error) {
	triggers, err := c.Triggers().List(ctx, runs.TriggerFilter{})
	for _, t := range triggers {
		values = append(values, fmt.Sprintf("%s\t%s, %s", t.Name, t.Target, ScheduleText(t.Trigger)))
	}
	return values, err
}

// RequireTask returns center.ErrUnknownTask if the roster has no task type of
// that name. The empty name stands for all task types and is accepted.
func RequireTask(ctx context.Context, c *ops.Client, taskType string) error {
	if taskType == "" {
		return nil
	}
	names, err := c.Tasks().Names(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(names, taskType) {
		return fmt.Errorf("find %s: %w", taskType, center.ErrUnknownTask)
	}
	return nil
}

// RequireEvents is requireTask, and also accepts a deleted task type that still
// has events.
func RequireEvents(ctx context.Context, c *ops.Client, taskType string) error {
	unknown := RequireTask(ctx, c, taskType)
	if !errors.Is(unknown, center.ErrUnknownTask) {
		return unknown
	}
	events, err := c.Events().List(ctx, ops.EventFilter{TaskType: taskType}, 1)
	if err != nil || len(events) > 0 {
		return err
	}
	return unknown
}

// runTaskNames returns the names of the task types of mode RUN.
func runTaskNames(ctx context.Context, c *ops.Client) (names []string, err error) {
	tasks, err := c.Tasks().List(ctx, "")
	for _, t := range tasks {
		if t.Mode == center.ModeRun {
			names = append(names, t.TaskType)
		}
	}
	return names, err
}

// hostNames returns the hosts of the task type's servers, each once. The empty
// task type stands for all.
func hostNames(ctx context.Context, c *ops.Client, taskType string) (hosts []string, err error) {
	servers, err := c.Servers().List(ctx, ops.ServerFilter{TaskType: taskType})
	seen := map[string]bool{}
	for _, s := range servers {
		if !seen[s.HostName] {
			seen[s.HostName] = true
			hosts = append(hosts, s.HostName)
		}
	}
	return hosts, err
}

func OpenRun(r runs.Run) bool { return !r.Ended() }

// ListBackfills lists the newest backfills that accept returns true for.
func ListBackfills(accept func(runs.BackfillRecord) bool) Lister {
	return func(ctx context.Context, c *ops.Client, _ []string) (values []string, err error) {
		list, err := c.Backfills().List(ctx, runs.BackfillFilter{}, listedRuns)
		for _, b := range list {
			if accept(b) {
				values = append(values, b.ID+"\t"+b.TaskType+", "+strings.ToLower(b.DisplayState())+", "+RelativeTime(b.Now,
					b.CreatedAt))
			}
		}
		return values, err
	}
}

func AnyBackfill(runs.BackfillRecord) bool { return true }

func OpenBackfill(b runs.BackfillRecord) bool { return b.State == runs.BackfillRunning }

func PausedBackfill(b runs.BackfillRecord) bool { return OpenBackfill(b) && b.Paused }
