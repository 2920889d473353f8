package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/ops"
)

const topEvery = 2 * time.Second

func newTopCommand() *cobra.Command {
	var o output
	var once bool
	cmd := &cobra.Command{
		Use:   "top [TASK]",
		Short: "Show task types and servers, refreshed until Ctrl-C",
		Long: `Show task types and servers, refreshed every 2s until Ctrl-C. --watch sets the
interval. Into a pipe, the command prints a table at each interval; --once
prints one table and exits.

ITEMS/S is the rate since the previous table. A server writes its counters with
each heartbeat.`,
		Example: `  rota top
  rota top settle --watch=500ms
  rota top --once`,
		Args:              arguments("[TASK]"),
		ValidArgsFunction: complete(listTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("watch") {
				o.watch = topEvery
			}
			if once {
				o.watch = 0
			}
			rates := &ops.ItemRates{}
			return show(cmd, o, func(ctx context.Context, c *ops.Client) (result, error) {
				return showTop(ctx, c, firstArg(args), rates)
			})
		},
	}
	addRosterFlags(cmd)
	addWatchFlags(cmd, &o)
	cmd.Flags().BoolVar(&once, "once", false, "print one table and exit")
	return cmd
}

func showTop(ctx context.Context, c *ops.Client, taskType string, rates *ops.ItemRates) (result, error) {
	tasks, err := c.Tasks().List(ctx, taskType)
	if err != nil {
		return result{}, err
	}
	servers, err := c.Servers().List(ctx, ops.ServerFilter{TaskType: taskType})
	if err != nil {
		return result{}, err
	}
	lines := topLines(servers, rates.Update(servers))
	return result{records: tasks, text: func(s screen) string {
		return render(s, tasks, taskColumns) + "\n\n" + render(s, lines, topColumns)
	}}, nil
}

// topLine is a server and its items per second.
type topLine struct {
	ops.ServerRecord
	rate float64
}

func topLines(servers []ops.ServerRecord, rates map[string]float64) (lines []topLine) {
	for _, s := range servers {
		lines = append(lines, topLine{s, rates[s.UUID]})
	}
	return lines
}

var topColumns = []column[topLine]{
	{title: "SERVER", text: func(l topLine) string { return l.UUID }, uuid: true},
	{title: "TASK", text: func(l topLine) string { return l.TaskType }},
	{title: "STATE", text: func(l topLine) string { return l.DisplayState() }, color: byMeaning[topLine]},
	{title: "HEARTBEAT", text: func(l topLine) string { return ageText(&l.HeartbeatAge) }, right: true},
	{title: "QUEUES", text: func(l topLine) string { return number(l.Queues) }, right: true},
	{title: "IN FLIGHT", text: func(l topLine) string { return number(l.InFlight) }, right: true},
	{title: "OLDEST", text: func(l topLine) string { return ageText(l.OldestInFlightAge) }, right: true, dropRank: 1},
	{title: "ITEMS/S", text: func(l topLine) string { return fmt.Sprintf("%.1f", l.rate) }, right: true},
	{title: "FAILED", text: func(l topLine) string { return number(l.FailureCount) }, right: true, dropRank: 2},
	{
		title: "LAST ERROR", text: func(l topLine) string { return lastErrorText(l.ServerRecord) }, dropRank: 1,
		truncate: true,
	},
}
