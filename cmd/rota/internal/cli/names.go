package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
)

// How many of the newest runs and items completion offers.
const (
	listedRuns  = 50
	listedItems = 1_000
)

// listers has a lister for each kind of thing that an argument can name (verbs.Arg.Names).
var listers = map[string]Lister{
	"task":            listTasks,
	"run task":        listRunTasks,
	"setting":         listSettings,
	"worker":          listServers,
	"host":            listHosts,
	"queue":           listQueues,
	"item":            listItems,
	"trigger":         listTriggers,
	"run":             listRuns(func(runs.Run) bool { return true }),
	"open run":        listRuns(func(r runs.Run) bool { return !r.Ended() }),
	"paused run":      listRuns(func(r runs.Run) bool { return !r.Ended() && r.Paused }),
	"ended run":       listRuns(func(r runs.Run) bool { return r.Ended() && r.State != runs.Success }),
	"failed run":      listRuns(failedRun),
	"backfill":        listBackfills(func(runs.BackfillRecord) bool { return true }),
	"open backfill":   listBackfills(openBackfill),
	"paused backfill": listBackfills(func(b runs.BackfillRecord) bool { return openBackfill(b) && b.Paused }),
}

func failedRun(r runs.Run) bool {
	return r.Unresolved() || r.State == runs.Cancelled && r.AckedAt.IsZero()
}

func openBackfill(b runs.BackfillRecord) bool { return b.State == runs.BackfillRunning }

// Names returns the lister of what an argument names, such as "task" or "open run". It panics if there is none.
func Names(what string) Lister {
	list := listers[what]
	if list == nil {
		panic("no lister of " + what)
	}
	return list
}

// texts returns a text of each record.
func texts[T any](records []T, text func(T) string) []string {
	list := make([]string, len(records))
	for i, r := range records {
		list[i] = text(r)
	}
	return list
}

func listTasks(ctx context.Context, c *ops.Client, _ []string) ([]string, error) {
	return c.Tasks().Names(ctx)
}

// listRunTasks lists the task types of mode RUN.
func listRunTasks(ctx context.Context, c *ops.Client, _ []string) ([]string, error) {
	tasks, err := c.Tasks().List(ctx, "")
	tasks = slices.DeleteFunc(tasks, func(t ops.TaskRecord) bool { return t.Mode != center.ModeRun })
	return texts(tasks, func(t ops.TaskRecord) string { return t.TaskType }), err
}

// listSettings lists the settings as beginnings of assignments.
func listSettings(context.Context, *ops.Client, []string) (values []string, err error) {
	for _, row := range center.SettingTable() {
		if assignment := row.Name + "="; !slices.Contains(values, assignment) {
			values = append(values, assignment)
		}
	}
	return values, nil
}

func listServers(ctx context.Context, c *ops.Client, _ []string) ([]string, error) {
	servers, err := c.Servers().List(ctx, ops.ServerFilter{})
	return texts(servers, func(s ops.ServerRecord) string {
		return s.UUID + "\t" + s.TaskType + ", " + strings.ToLower(s.DisplayState())
	}), err
}

// listHosts lists the hosts of the servers of the task type in the first argument, or of all, each once.
func listHosts(ctx context.Context, c *ops.Client, args []string) (hosts []string, err error) {
	servers, err := c.Servers().List(ctx, ops.ServerFilter{TaskType: FirstArg(args)})
	for _, s := range servers {
		if !slices.Contains(hosts, s.HostName) {
			hosts = append(hosts, s.HostName)
		}
	}
	return hosts, err
}

// listQueues lists the queues of the task type in the first argument.
func listQueues(ctx context.Context, c *ops.Client, args []string) ([]string, error) {
	queues, err := c.Queues().List(ctx, ops.QueueFilter{TaskType: FirstArg(args)})
	return texts(queues, func(q ops.QueueRecord) string { return q.QueueID }), err
}

// listItems lists the failed items of the task type in the first argument.
func listItems(ctx context.Context, c *ops.Client, args []string) ([]string, error) {
	items, err := c.Items().List(ctx, ops.ItemFilter{TaskType: FirstArg(args)}, listedItems)
	// What is behind a tab would be a description, and the rest the key of another item.
	items = slices.DeleteFunc(items, func(i ops.ItemRecord) bool { return strings.Contains(i.ItemKey, "\t") })
	return texts(items, func(i ops.ItemRecord) string { return i.ItemKey }), err
}

// listRuns lists the newest runs that accept returns true for, and then the task types; a task type stands for its
// newest run.
func listRuns(accept func(runs.Run) bool) Lister {
	return func(ctx context.Context, c *ops.Client, _ []string) (values []string, err error) {
		list, err := c.Runs().List(ctx, runs.Filter{}, listedRuns)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if accept(r.Run) {
				values = append(values, described(r.ID, r.TaskType, r.DisplayState(), human.Relative(r.Now, r.ScheduledAt)))
			}
		}
		names, err := listRunTasks(ctx, c, nil)
		return append(values, texts(names, func(name string) string { return name + "\tits newest run" })...), err
	}
}

// listBackfills lists the newest backfills that accept returns true for.
func listBackfills(accept func(runs.BackfillRecord) bool) Lister {
	return func(ctx context.Context, c *ops.Client, _ []string) (values []string, err error) {
		list, err := c.Backfills().List(ctx, runs.BackfillFilter{}, listedRuns)
		for _, b := range list {
			if accept(b) {
				values = append(values, described(b.ID, b.TaskType, b.DisplayState(), human.Relative(b.Now, b.CreatedAt)))
			}
		}
		return values, err
	}
}

// described returns an id with a description for the shell.
func described(id, taskType, state, when string) string {
	return id + "\t" + taskType + ", " + strings.ToLower(state) + ", " + when
}

func listTriggers(ctx context.Context, c *ops.Client, _ []string) ([]string, error) {
	triggers, err := c.Triggers().List(ctx, runs.TriggerFilter{})
	return texts(triggers, func(t runs.TriggerRecord) string {
		return fmt.Sprintf("%s\t%s, %s", t.Name, t.Target, verbs.ScheduleText(t.Trigger))
	}), err
}

// RequireTask returns center.ErrUnknownTask if the roster has no task type of that name. The empty name stands for all
// task types and is accepted.
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

// RequireEvents is RequireTask, and also accepts a deleted task type that still has events.
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
