package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/center"
)

// The newest runs and items that a shell is offered.
const (
	listedRuns  = 50
	listedItems = 1_000
)

func listTasks(ctx context.Context, c *center.Center, _ []string) ([]string, error) {
	return c.Tasks().Names(ctx)
}

// listSettings lists the settings as beginnings of assignments.
func listSettings(context.Context, *center.Center, []string) (values []string, err error) {
	for _, row := range center.SettingTable() {
		if assignment := row.Name + "="; !slices.Contains(values, assignment) {
			values = append(values, assignment)
		}
	}
	return values, nil
}

// listRunTasks lists the task types that can have runs.
func listRunTasks(ctx context.Context, c *center.Center, _ []string) ([]string, error) {
	return runTaskNames(ctx, c)
}

func listServers(ctx context.Context, c *center.Center, _ []string) (values []string, err error) {
	servers, err := c.Servers().List(ctx, center.ServerFilter{})
	for _, s := range servers {
		values = append(values, s.UUID+"\t"+s.TaskType+", "+strings.ToLower(s.DisplayState()))
	}
	return values, err
}

// listHosts lists the hosts of the servers of the task type in the first
// argument, or of all.
func listHosts(ctx context.Context, c *center.Center, args []string) ([]string, error) {
	return hostNames(ctx, c, firstArg(args))
}

// listQueues lists the queues of the task type in the first argument.
func listQueues(ctx context.Context, c *center.Center, args []string) (values []string, err error) {
	queues, err := c.Queues().List(ctx, center.QueueFilter{TaskType: firstArg(args)})
	for _, q := range queues {
		values = append(values, q.QueueID)
	}
	return values, err
}

// listItems lists the failed items of the task type in the first argument.
func listItems(ctx context.Context, c *center.Center, args []string) (values []string, err error) {
	items, err := c.Items().List(ctx, center.ItemFilter{TaskType: firstArg(args)}, listedItems)
	for _, i := range items {
		values = append(values, i.ItemKey)
	}
	return values, err
}

// listRuns lists the newest runs that accept returns true for, and then the
// task types; a task type stands for its newest run.
func listRuns(accept func(center.Run) bool) lister {
	return func(ctx context.Context, c *center.Center, _ []string) (values []string, err error) {
		runs, err := c.Runs().List(ctx, center.RunFilter{}, listedRuns)
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			if accept(r.Run) {
				values = append(values, r.ID+"\t"+r.TaskType+", "+strings.ToLower(r.DisplayState())+", "+relativeTime(r.Now, r.ScheduledAt))
			}
		}
		names, err := runTaskNames(ctx, c)
		for _, name := range names {
			values = append(values, name+"\tits newest run")
		}
		return values, err
	}
}

func anyRun(center.Run) bool { return true }

func listTriggers(ctx context.Context, c *center.Center, _ []string) (values []string, err error) {
	triggers, err := c.Triggers().List(ctx, center.TriggerFilter{})
	for _, t := range triggers {
		values = append(values, fmt.Sprintf("%s\t%s, %s", t.Name, t.Target, scheduleText(t.Trigger)))
	}
	return values, err
}
