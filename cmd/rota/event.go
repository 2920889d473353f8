package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newEventCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "event",
		Short: "See what has happened",
	})
	cmd.AddCommand(newEventListCommand())
	return cmd
}

// eventList is the command's flags.
type eventList struct {
	output
	filter center.EventFilter
	server string
	limit  int
	follow bool
}

func newEventListCommand() *cobra.Command {
	e := &eventList{limit: 100}
	cmd := &cobra.Command{
		Use:   "list [TASK]",
		Short: "List what happened to queues and servers, the latest last",
		Example: `  rota event list settle --queue 3
  rota event list --kind TAKEN_OVER --since 24h
  rota event list --follow`,
		Args:              arguments("[TASK]"),
		ValidArgsFunction: complete(taskNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := e.check(args); err != nil {
				return err
			}
			if e.follow {
				return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
					ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
					defer stop()
					return e.run(ctx, cmd, c)
				})
			}
			return show(cmd, e.output, func(ctx context.Context, c *center.Center) (reply, error) {
				events, err := e.ask(ctx, c)
				return reply{events, func(s screen) string { return render(s, events, eventFields) }}, err
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &e.output, false)
	flags := cmd.Flags()
	flags.StringVar(&e.filter.QueueID, "queue", "", "only those of this queue")
	flags.StringVar(&e.server, "server", "", "only those in which this server gave, got or acted")
	flags.StringVar(&e.filter.Kind, "kind", "", "only those of this kind: GRANTED, TAKEN_OVER, ALERT, ...")
	flags.DurationVar(&e.filter.Since, "since", 0, "only those of the last 15m, 24h, ...")
	flags.IntVar(&e.limit, "limit", e.limit, "how many at the most")
	flags.BoolVarP(&e.follow, "follow", "f", false, "go on with those to come, until SIGINT")
	completeFlag(cmd, "server", serverUUIDs)
	completeFlag(cmd, "queue", queueIDs)
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(center.EventKinds(), cobra.ShellCompDirectiveNoFileComp)) // fails for unknown flags only
	return cmd
}

func (e *eventList) check(args []string) error {
	e.filter.TaskType, e.filter.Kind = first(args), strings.ToUpper(e.filter.Kind)
	if e.filter.Since < 0 {
		return usageError{fmt.Errorf("--since (%s): must not be negative", e.filter.Since)}
	}
	return positive("limit", e.limit)
}

// ask takes the server's name as it is if it is gone: its events are still there.
func (e *eventList) ask(ctx context.Context, c *center.Center) ([]event, error) {
	if e.server != "" {
		e.filter.Server = e.server
		if s, err := resolveServer(ctx, c, e.server); err == nil {
			e.filter.Server = s.UUID
		}
	}
	return c.Events(ctx, e.filter, e.limit)
}

// followEvery is how long an event may have happened before it is shown.
const followEvery = time.Second

// run shows the events that there are, and then those to come.
func (e *eventList) run(ctx context.Context, cmd *cobra.Command, c *center.Center) error {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for header := true; ; header = false {
		events, err := e.ask(ctx, c)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !c.IsTransient(err) {
			return err
		}
		for _, event := range events {
			e.filter.After = event.EventID
		}
		if err := e.print(cmd, events, header); err != nil {
			return err
		}
		e.limit = max(e.limit, 1_000)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// print writes a line for each event: one that follows knows no widths.
func (e *eventList) print(cmd *cobra.Command, events []event, header bool) error {
	out := cmd.OutOrStdout()
	switch e.format.value {
	case formatCSV:
		return writeCSV(out, events, header)
	case formatJSON:
		for _, event := range events {
			if err := writeJSONLine(out, event); err != nil {
				return err
			}
		}
		return nil
	}
	color := screenOf(out).color
	for _, event := range events {
		kind := fmt.Sprintf("%-13s", event.Kind)
		if color {
			kind = strings.Replace(kind, event.Kind, byMeaning(event, event.Kind), 1)
		}
		if _, err := fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%s %s %s %s  %s -> %s  %s", when(event.EventTime), kind,
			event.TaskType, deref(event.QueueID), deref(event.FromServer), deref(event.ToServer), line(event.Reason)), " ")); err != nil {
			return err
		}
	}
	return nil
}

type event = center.EventRecord

var eventFields = []field[event]{
	{title: "TIME", text: func(e event) string { return when(e.EventTime) }},
	{title: "TASK", text: func(e event) string { return e.TaskType }, spare: 1},
	{title: "QUEUE", text: func(e event) string { return deref(e.QueueID) }},
	{title: "KIND", text: func(e event) string { return e.Kind }, color: byMeaning[event]},
	{title: "FROM", text: func(e event) string { return deref(e.FromServer) }, uuid: true},
	{title: "TO", text: func(e event) string { return deref(e.ToServer) }, uuid: true},
	{title: "EPOCH", text: epochOf, right: true, spare: 3},
	{title: "ACTOR", text: func(e event) string { return e.Actor }, uuid: true, spare: 2},
	{title: "REASON", text: func(e event) string { return line(e.Reason) }, free: true},
}

func epochOf(e event) string {
	if e.Epoch == nil {
		return "-"
	}
	return number(*e.Epoch)
}
