// Package top is rota top: task types and servers at a glance. On a terminal it is a program of its own, a screen with
// lists that a person looks into, and from which the person pauses task types and drains servers.
//
// The screen is a model of bubbletea: Update changes it, View shows it, and both only use memory. What waits for the
// database is a job. There is one job at a time: a reading of the list that is shown, the preview of a change, or the
// change. So the screen loads the database as one reader does, however many lists it has, and a database that does not
// answer stops neither the keys nor the clock.
//
// A list is read again as long after its last reading as the interval says, but at least as long as that reading took:
// a large roster is read half of the time at most. The texts of all rows are made in the job, too. View makes lines of
// the visible rows only.
package top

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/rostercmd"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

const topEvery = 2 * time.Second

// New returns the command rota top.
func New() *cobra.Command {
	o, r := &cli.Output{}, &reader{}
	var once bool
	cmd := cli.Shows(&cobra.Command{
		Use:   "top [TASK]",
		Short: "Show the roster at work on a terminal; pause tasks, drain workers",
		Long: `Show task types, workers, queues, failed items, events, runs and findings on a
terminal, refreshed every 2s until q. --watch sets the interval. Enter looks
into a row, / filters, s sorts, p pauses a task type and d drains a worker,
after showing what would happen. ? lists all keys.

Into a pipe, or with --once, the command prints tables of the task types and
workers: --once prints them once, a pipe gets them at each interval.

PROBLEMS and NOTES are what "rota doctor" finds, by kind: see the help of "rota
task list". ITEMS/S is how many items have succeeded a second between the
last two times that the worker wrote its counters: about every ten seconds, so
that the first tables have none, and --once has DONE in its place, the items
that have succeeded. Items that fail do not count. OLDEST is the age of the
oldest call, while items are in flight.`,
		Example: `  rota top
  rota top settle --watch=500ms
  rota top --once`,
	}, o, func(ctx context.Context, c *ops.Client, args []string) (cli.Result, error) {
		return showTop(ctx, c, cli.FirstArg(args), r, once)
	}, cli.Names("task"))
	cmd.PreRun = func(cmd *cobra.Command, _ []string) {
		switch {
		case once:
			o.Watch = 0
		case !cmd.Flags().Changed("watch"):
			o.Watch = topEvery
		}
	}
	cli.OnTerminal(o, func(ctx context.Context, c *ops.Client, args []string) error {
		return run(ctx, c, cli.FirstArg(args), o.Watch)
	})
	cmd.Flags().BoolVar(&once, "once", false, "print one table and exit")
	return cmd
}

func showTop(ctx context.Context, c *ops.Client, taskType string, r *reader, once bool) (cli.Result, error) {
	tasks, err := c.Tasks().List(ctx, taskType)
	if err != nil {
		return cli.Result{}, err
	}
	servers, err := c.Servers().List(ctx, ops.ServerFilter{TaskType: taskType})
	if err != nil {
		return cli.Result{}, err
	}
	r.judged = doctor.Judge(ctx, c, taskType, r.judged, doctor.JudgeEvery)
	result, lines := rostercmd.TasksResult(c.OwnSign(), r.judged, tasks), serverLines(servers, r.rates.Update(servers))
	table, row := result.Text, serverRow
	if once {
		row = serverRowOnce
	}
	result.Text = func(s cli.Screen) string { return table(s) + "\n\n" + cli.Render(s, lines, row) }
	return result, nil
}

// serverLine is a server and its items per second.
type serverLine struct {
	ops.ServerRecord
	rate *float64 // nil if it is not known yet
}

func serverLines(servers []ops.ServerRecord, rates map[string]float64) (lines []serverLine) {
	for _, s := range servers {
		line := serverLine{s, nil}
		if rate, known := rates[s.UUID]; known {
			line.rate = &rate
		}
		lines = append(lines, line)
	}
	return lines
}

func serverRow(l serverLine) cli.Row { return rowOf(l, rateCell(l.rate)) }

// serverRowOnce is the row of a table that is printed once: a rate needs two readings, ten seconds apart.
func serverRowOnce(l serverLine) cli.Row { return rowOf(l, cli.Figure("DONE", l.SuccessCount)) }

func rowOf(l serverLine, done cli.Cell) cli.Row {
	return cli.Row{
		cli.UUID("WORKER", l.UUID),
		cli.Text("TASK", l.TaskType),
		cli.State("STATE", l.DisplayState()),
		cli.Age("HEARTBEAT", &l.HeartbeatAge),
		cli.Figure("QUEUES", l.Queues),
		cli.Figure("IN FLIGHT", l.InFlight),
		cli.Age("OLDEST", l.OldestInFlightAge).Drop(1),
		done,
		cli.Figure("FAILED", l.FailureCount).Drop(2),
		cli.Long("LAST ERROR", rostercmd.LastErrorText(l.ServerRecord)).Drop(1),
	}
}

func rateCell(rate *float64) cli.Cell {
	text := "-"
	if rate != nil {
		text = fmt.Sprintf("%.1f", *rate)
	}
	return cli.Text("ITEMS/S", text).Right()
}
