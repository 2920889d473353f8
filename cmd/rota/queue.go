package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newQueueCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "queue",
		Short: "See who owns what; add and remove named queues",
	})
	cmd.AddCommand(newQueueListCommand(), newQueueAddCommand(), newQueueRemoveCommand())
	return cmd
}

func newQueueListCommand() *cobra.Command {
	var o output
	status := choice{of: []string{"HELD", "MOVING", "OVERDUE", "ORPHAN", "UNASSIGNED"}}
	var server, host string
	cmd := &cobra.Command{
		Use:   "list [TASK]",
		Short: "List the queues, their owners, and who waits for them",
		Long: `List the queues, their owners, and who waits for them.

HELD: all is well. MOVING: another server asks for it, and the owner finishes
what it has in hand. OVERDUE: the owner has been silent for judge_dead_interval.
ORPHAN: the owner is gone. UNASSIGNED: there is nobody to take it.`,
		Example: `  rota queue list settle --watch
  rota queue list --host web1            what moves if this host stops
  rota queue list --status MOVING -o csv`,
		Args:              arguments("[TASK]"),
		ValidArgsFunction: complete(taskNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(cmd, o, func(ctx context.Context, c *center.Center) (reply, error) {
				f := center.QueueFilter{TaskType: first(args), Server: server, Host: host, Status: status.value}
				return listQueues(ctx, c, f)
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o, true)
	addChoice(cmd, &status, "status", "", "only those in this state")
	cmd.Flags().StringVar(&server, "server", "", "only those that this server has or waits for")
	cmd.Flags().StringVar(&host, "host", "", "only those that servers of this host have or wait for")
	completeFlag(cmd, "server", serverUUIDs)
	completeFlag(cmd, "host", hostNames)
	return cmd
}

// listQueues takes a server's name as people give it.
func listQueues(ctx context.Context, c *center.Center, f center.QueueFilter) (reply, error) {
	if err := mustExist(ctx, c, f.TaskType); err != nil {
		return reply{}, err
	}
	if f.Server != "" {
		s, err := resolveServer(ctx, c, f.Server)
		if err != nil {
			return reply{}, err
		}
		f.Server = s.UUID
	}
	queues, err := c.Queues(ctx, f)
	return reply{queues, func(s screen) string { return render(s, queues, queueFields) }}, err
}

type queue = center.QueueRecord

var queueFields = []field[queue]{
	{title: "TASK", text: func(q queue) string { return q.TaskType }, spare: 2},
	{title: "QUEUE", text: func(q queue) string { return q.QueueID }},
	{title: "STATUS", text: queueStatus, color: byMeaning[queue]},
	{title: "OWNER", text: func(q queue) string { return deref(q.CurServer) }, uuid: true},
	{title: "BEAT", text: func(q queue) string { return age(q.HeartbeatAge) }, right: true},
	{title: "HELD", text: func(q queue) string { return age(q.Held) }, right: true, spare: 3},
	{title: "NEXT", text: func(q queue) string { return deref(q.ReqServer) }, uuid: true},
	{title: "ASKED", text: func(q queue) string { return age(q.Requested) }, right: true, spare: 1},
	{title: "EPOCH", text: func(q queue) string { return number(q.Epoch) }, right: true, spare: 4},
	{title: "CURSOR", text: func(q queue) string { return line(q.CursorValue) }, spare: 5, free: true},
}

func queueStatus(q queue) string {
	if q.Removing {
		return "REMOVING"
	}
	return q.Status
}

func newQueueAddCommand() *cobra.Command {
	var parameter string
	cmd := &cobra.Command{
		Use:   "add TASK QUEUE",
		Short: "Add a named queue, or keep one that is being removed",
		Long: `Add a named queue, or keep one that is being removed. It is dealt at once. Where
queues have numbers, "rota task apply" changes how many there are.`,
		Example:           "  rota queue add settle west\n  rota queue add settle west --parameter '{\"zone\": 3}'",
		Args:              arguments("TASK", "QUEUE"),
		ValidArgsFunction: complete(taskNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				if err := c.Roster().AddQueue(ctx, args[0], args[1], parameter, actor()); err != nil {
					return err
				}
				cmd.Printf("%s$%s: queue %s added\n", args[0], c.OwnSign(), args[1])
				return nil
			})
		},
	}
	addRosterFlags(cmd)
	cmd.Flags().StringVar(&parameter, "parameter", "", "queue_parameter, which the dealer gets with each select")
	return cmd
}

func newQueueRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove TASK QUEUE",
		Short: "Remove a named queue; its owner finishes what it has in hand first",
		Long: `Remove a named queue. Its owner finishes what it has in hand of it, then the row
goes. Items of that name are not processed any more. "rota queue add" keeps a
queue that has not gone yet.`,
		Example:           "  rota queue remove settle west --yes",
		Args:              arguments("TASK", "QUEUE"),
		ValidArgsFunction: complete(taskNames, queueIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				if err := mustExist(ctx, c, args[0]); err != nil {
					return err
				}
				if err := confirm(cmd, fmt.Sprintf("remove queue %s of %s$%s: its items are not processed any more", args[1], args[0], c.OwnSign())); err != nil {
					return err
				}
				if err := c.Roster().RemoveQueue(ctx, args[0], args[1], actor()); err != nil {
					return err
				}
				cmd.Printf("%s$%s: queue %s goes as soon as its owner has drained it\n", args[0], c.OwnSign(), args[1])
				return nil
			})
		},
	}
	addRosterFlags(cmd)
	addYes(cmd)
	return cmd
}
