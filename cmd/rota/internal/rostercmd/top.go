package rostercmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/ops"
)

const topEvery = 2 * time.Second

func newTopCommand() *cobra.Command {
	o, rates := &cli.Output{}, &ops.ItemRates{}
	var once bool
	cmd := cli.Shows(&cobra.Command{
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
	}, o, func(ctx context.Context, c *ops.Client, args []string) (cli.Result, error) {
		return showTop(ctx, c, cli.FirstArg(args), rates)
	}, cli.Names("task"))
	cmd.PreRun = func(cmd *cobra.Command, _ []string) {
		switch {
		case once:
			o.Watch = 0
		case !cmd.Flags().Changed("watch"):
			o.Watch = topEvery
		}
	}
	cmd.Flags().BoolVar(&once, "once", false, "print one table and exit")
	return cmd
}

func showTop(ctx context.Context, c *ops.Client, taskType string, rates *ops.ItemRates) (cli.Result, error) {
	tasks, err := c.Tasks().List(ctx, taskType)
	if err != nil {
		return cli.Result{}, err
	}
	servers, err := c.Servers().List(ctx, ops.ServerFilter{TaskType: taskType})
	if err != nil {
		return cli.Result{}, err
	}
	lines := topLines(servers, rates.Update(servers))
	return cli.Result{Records: tasks, Text: func(s cli.Screen) string {
		return cli.Render(s, tasks, taskRow) + "\n\n" + cli.Render(s, lines, topRow)
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

func topRow(l topLine) cli.Row {
	return cli.Row{
		cli.UUID("SERVER", l.UUID),
		cli.Text("TASK", l.TaskType),
		cli.State("STATE", l.DisplayState()),
		cli.Age("HEARTBEAT", &l.HeartbeatAge),
		cli.Figure("QUEUES", l.Queues),
		cli.Figure("IN FLIGHT", l.InFlight),
		cli.Age("OLDEST", l.OldestInFlightAge).Drop(1),
		cli.Text("ITEMS/S", fmt.Sprintf("%.1f", l.rate)).Right(),
		cli.Figure("FAILED", l.FailureCount).Drop(2),
		cli.Long("LAST ERROR", lastErrorText(l.ServerRecord)).Drop(1),
	}
}
