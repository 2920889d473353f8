package main

import (
	"context"
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

func listTasks(ctx context.Context, c *ops.Client, _ []string) ([]string, error) {
	return c.Tasks().Names(ctx)
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

// listRunTasks lists the task types that can have runs.
func listRunTasks(ctx context.Context, c *ops.Client, _ []string) ([]string, error) {
	return runTaskNames(ctx, c)
}

func listServers(ctx context.Context, c *ops.Client, _ []string) (values []string, err error) {
	servers, err := c.Servers().List(ctx, ops.ServerFilter{})
	for _, s := range servers {
		values = append(values, s.UUID+"\t"+s.TaskType+", "+strings.ToLower(s.DisplayState()))
	}
	return values, err
}

// listHosts lists the hosts of the servers of the task type in the first
// argument, or of all.
func listHosts(ctx context.Context, c *ops.Client, args []string) ([]string, error) {
	return hostNames(ctx, c, firstArg(args))
}

// listQueues lists the queues of the task type in the first argument.
func listQueues(ctx context.Context, c *ops.Client, args []string) (values []string, err error) {
	queues, err := c.Queues().List(ctx, ops.QueueFilter{TaskType: firstArg(args)})
	for _, q := range queues {
		values = append(values, q.QueueID)
	}
	return values, err
}

// listItems lists the failed items of the task type in the first argument.
func listItems(ctx context.Context, c *ops.Client, args []string) (values []string, err error) {
	items, err := c.Items().List(ctx, ops.ItemFilter{TaskType: firstArg(args)}, listedItems)
	for _, i := range items {
		values = append(values, i.ItemKey)
	}
	return values, err
}

// listRuns lists the newest runs that accept returns true for, and then the
// task types; a task type stands for its newest run.
func listRuns(accept func(runs.Run) bool) lister {
	return func(ctx context.Context, c *ops.Client, _ []string) (values []string, err error) {
		list, err := c.Runs().List(ctx, runs.Filter{}, listedRuns)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if accept(r.Run) {
				values = append(values, r.ID+"\t"+r.TaskType+", "+strings.ToLower(r.DisplayState())+", "+relativeTime(r.Now,
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

func anyRun(runs.Run) bool { return true }

func listTriggers(ctx context.Context, c *ops.Client, _ []string) (values []string, err error) {
	triggers, err := c.Triggers().List(ctx, runs.TriggerFilter{})
	for _, t := range triggers {
		values = append(values, fmt.Sprintf("%s\t%s, %s", t.Name, t.Target, scheduleText(t.Trigger)))
	}
	return values, err
}
