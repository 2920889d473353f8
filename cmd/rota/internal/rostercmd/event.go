package rostercmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
)

// followEvery is the interval at which --follow polls.
const followEvery = time.Second

// eventList is the command's flags.
type eventList struct {
	cli.Output
	filter ops.EventFilter
	limit  int
	follow bool
}

func newEventListCommand() *cobra.Command {
	e := &eventList{}
	cmd := cli.Command(&cobra.Command{
		Use:   "list [TASK]",
		Short: "List the events of queues and workers, the latest last",
		Long: `List the events of queues and workers, the latest last: joins and ends of
workers, moves of queues, alerts, and changes by operators.

With --follow the command prints the latest events, and then each new event
once. --limit and --since apply to the latest events. If a transaction commits
late, its events have earlier times than the events printed before them.

TASK may be a deleted task type: its events stay until their retention ends.
WORKER is a uuid, also of a worker that has ended; or a process (host:pid) or a
host with registered workers.`,
		Example: `  rota event list settle --queue 3
  rota event list --kind TAKEN_OVER --since 24h
  rota event list --follow`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.WithRoster(cmd, func(ctx context.Context, c *ops.Client) error { return e.run(ctx, cmd, c) })
		},
	}, &e.Output, cli.Names("task"))
	cli.Check(cmd, e.check)
	e.addFlags(cmd)
	return cmd
}

func (e *eventList) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&e.filter.QueueID, "queue", "", "only events of this queue")
	flags.StringVar(&e.filter.Server, "worker", "", "only events in which this `WORKER` lost or got a queue, or acted")
	flags.StringVar(&e.filter.Kind, "kind", "", "only events of this kind: GRANTED, TAKEN_OVER, ALERT, ...")
	flags.DurationVar(&e.filter.Since, "since", 0, "only events of the last 15m, 24h, ...")
	cli.AddLimit(cmd, &e.limit, "list at most this many")
	flags.BoolVarP(&e.follow, "follow", "f", false, "continue with new events until Ctrl-C")
	cli.CompleteFlag(cmd, "worker", cli.Names("worker"))
	cli.CompleteFlag(cmd, "queue", cli.Names("queue"))
	// fails for unknown flags only
	_ = cmd.RegisterFlagCompletionFunc("kind",
		cobra.FixedCompletions(ops.EventKinds(), cobra.ShellCompDirectiveNoFileComp))
}

func (e *eventList) check(args []string) error {
	e.filter.TaskType, e.filter.Kind = cli.FirstArg(args), strings.ToUpper(e.filter.Kind)
	if e.filter.Since < 0 {
		return fmt.Errorf("--since (%s) must not be negative", e.filter.Since)
	}
	if kinds := ops.EventKinds(); e.filter.Kind != "" && !slices.Contains(kinds, e.filter.Kind) {
		return fmt.Errorf("--kind (%s) must be %s", e.filter.Kind, human.Alternatives(kinds))
	}
	return nil
}

func (e *eventList) run(ctx context.Context, cmd *cobra.Command, c *ops.Client) error {
	if err := cli.RequireEvents(ctx, c, e.filter.TaskType); err != nil {
		return err
	}
	if e.follow {
		return e.printNew(ctx, cmd.OutOrStdout(), c)
	}
	events, err := c.Events().List(ctx, e.filter, e.limit)
	if err != nil {
		return err
	}
	return e.Write(cmd.OutOrStdout(), cli.TableResult(events, EventRow))
}

// printNew prints the latest events, and then each new one.
func (e *eventList) printNew(ctx context.Context, out io.Writer, c *ops.Client) error {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	header := true
	return c.Events().Follow(e.filter, e.limit).Run(ctx, followEvery, func(events []ops.EventRecord) error {
		defer func() { header = false }()
		return e.print(out, events, header)
	})
}

// print writes one line per event. It cannot align a table, as it does not know
// the widths of later events.
func (e *eventList) print(out io.Writer, events []ops.EventRecord, header bool) error {
	if e.Format.Value == cli.FormatCSV {
		return records.WriteCSV(out, events, header)
	}
	screen := cli.ScreenOf(out)
	for _, event := range events {
		if e.Format.Value == cli.FormatJSON {
			if err := cli.WriteJSONLine(out, event); err != nil {
				return err
			}
		} else if _, err := fmt.Fprintln(out, eventLine(screen, event)); err != nil {
			return err
		}
	}
	return nil
}

func eventLine(s cli.Screen, e ops.EventRecord) string {
	line := fmt.Sprintf("%s %-13s %s %s  %s -> %s  %s", cli.TimeText(e.EventTime), e.Kind, e.TaskType,
		escape.Name(cli.OrDash(e.QueueID)), cli.OrDash(e.FromServer), cli.OrDash(e.ToServer), cli.OneLine(e.Reason))
	return s.Paint(escape.Text(strings.TrimRight(line, " ")), e.Kind)
}

// EventRow is an event.
func EventRow(e ops.EventRecord) cli.Row {
	return cli.Row{
		cli.Time("TIME", e.EventTime),
		cli.Text("TASK", e.TaskType).DropSame(4),
		cli.Text("QUEUE", escape.Name(cli.OrDash(e.QueueID))),
		cli.State("KIND", e.Kind),
		cli.UUID("FROM", e.FromServer),
		cli.UUID("TO", e.ToServer),
		cli.Maybe("EPOCH", e.Epoch).Right().Drop(3),
		cli.UUID("ACTOR", e.Actor).Drop(2),
		cli.Long("REASON", e.Reason),
	}
}
