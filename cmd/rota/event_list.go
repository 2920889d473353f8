package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"

	"github.com/spf13/cobra"
)

// followEvery is the interval at which --follow polls.
const followEvery = time.Second

// eventList is the command's flags.
type eventList struct {
	output
	filter ops.EventFilter
	limit  int
	follow bool
}

func newEventListCommand() *cobra.Command {
	e := &eventList{}
	cmd := &cobra.Command{
		Use:   "list [TASK]",
		Short: "List the events of queues and servers, the latest last",
		Long: `List the events of queues and servers, the latest last: joins and ends of
servers, moves of queues, alerts, and changes by operators.

With --follow the command prints the latest events, and then each new event
once. --limit and --since apply to the latest events. If a transaction commits
late, its events have earlier times than the events printed before them.

TASK may be a deleted task type: its events stay until their retention ends.
SERVER is a uuid, also of a server that has ended; or a process (host:pid) or a
host with registered servers.`,
		Example: `  rota event list settle --queue 3
  rota event list --kind TAKEN_OVER --since 24h
  rota event list --follow`,
		Args:              arguments("[TASK]"),
		ValidArgsFunction: complete(listTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := e.check(args); err != nil {
				return err
			}
			if e.follow {
				return withRoster(cmd, func(ctx context.Context, c *ops.Client) error {
					if err := requireEvents(ctx, c, e.filter.TaskType); err != nil {
						return err
					}
					return e.printNew(ctx, cmd.OutOrStdout(), c)
				})
			}
			return show(cmd, e.output, func(ctx context.Context, c *ops.Client) (result, error) {
				if err := requireEvents(ctx, c, e.filter.TaskType); err != nil {
					return result{}, err
				}
				events, err := c.Events().List(ctx, e.filter, e.limit)
				return tableResult(events, eventColumns), err
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &e.output)
	e.addFlags(cmd)
	return cmd
}

func (e *eventList) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&e.filter.QueueID, "queue", "", "only events of this queue")
	flags.StringVar(&e.filter.Server, "server", "", "only events in which this `SERVER` lost or got a queue, or acted")
	flags.StringVar(&e.filter.Kind, "kind", "", "only events of this kind: GRANTED, TAKEN_OVER, ALERT, ...")
	flags.DurationVar(&e.filter.Since, "since", 0, "only events of the last 15m, 24h, ...")
	addLimit(cmd, &e.limit, "list at most this many")
	flags.BoolVarP(&e.follow, "follow", "f", false, "continue with new events until Ctrl-C")
	completeFlag(cmd, "server", listServers)
	completeFlag(cmd, "queue", listQueues)
	// fails for unknown flags only
	_ = cmd.RegisterFlagCompletionFunc("kind",
		cobra.FixedCompletions(ops.EventKinds(), cobra.ShellCompDirectiveNoFileComp))
}

func (e *eventList) check(args []string) error {
	e.filter.TaskType, e.filter.Kind = firstArg(args), strings.ToUpper(e.filter.Kind)
	if e.filter.Since < 0 {
		return usageError{fmt.Errorf("--since (%s) must not be negative", e.filter.Since)}
	}
	if kinds := ops.EventKinds(); e.filter.Kind != "" && !slices.Contains(kinds, e.filter.Kind) {
		return usageError{fmt.Errorf("--kind (%s) must be %s", e.filter.Kind, alternatives(kinds))}
	}
	return nil
}

// printNew prints the latest events, and then each new one.
func (e *eventList) printNew(ctx context.Context, out io.Writer, c *ops.Client) error {
	ctx, stop := untilSignal(ctx)
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
	if e.format.value == formatCSV {
		return records.WriteCSV(out, events, header)
	}
	color := screenOf(out).color
	for _, event := range events {
		if e.format.value == formatJSON {
			if err := writeJSONLine(out, event); err != nil {
				return err
			}
		} else if _, err := fmt.Fprintln(out, eventLine(event, color)); err != nil {
			return err
		}
	}
	return nil
}

func eventLine(e ops.EventRecord, color bool) string {
	line := fmt.Sprintf("%s %-13s %s %s  %s -> %s  %s", timeText(e.EventTime), e.Kind, e.TaskType,
		valueOrDash(e.QueueID), valueOrDash(e.FromServer), valueOrDash(e.ToServer), oneLine(e.Reason))
	line = escape.Text(strings.TrimRight(line, " "))
	if color {
		line = strings.Replace(line, e.Kind, byMeaning(e, e.Kind), 1)
	}
	return line
}

var eventColumns = []column[ops.EventRecord]{
	{title: "TIME", text: func(e ops.EventRecord) string { return timeText(e.EventTime) }},
	{title: "TASK", text: func(e ops.EventRecord) string { return e.TaskType }, dropRank: 1},
	{title: "QUEUE", text: func(e ops.EventRecord) string { return valueOrDash(e.QueueID) }},
	{title: "KIND", text: func(e ops.EventRecord) string { return e.Kind }, color: byMeaning[ops.EventRecord]},
	{title: "FROM", text: func(e ops.EventRecord) string { return valueOrDash(e.FromServer) }, uuid: true},
	{title: "TO", text: func(e ops.EventRecord) string { return valueOrDash(e.ToServer) }, uuid: true},
	{title: "EPOCH", text: epochText, right: true, dropRank: 3},
	{title: "ACTOR", text: func(e ops.EventRecord) string { return e.Actor }, uuid: true, dropRank: 2},
	{title: "REASON", text: func(e ops.EventRecord) string { return oneLine(e.Reason) }, truncate: true},
}

func epochText(e ops.EventRecord) string {
	if e.Epoch == nil {
		return "-"
	}
	return number(*e.Epoch)
}
