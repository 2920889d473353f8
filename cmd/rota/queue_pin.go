package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/records"
)

func newQueuePinCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "pin TASK QUEUE LABELS",
		Short: "Let only workers with these labels own a queue",
		Long: `Let only workers with these labels own a queue. LABELS is a list such as
zone=b or disk=ssd|nvme,zone=b; host=web1 is the name of a host. An owner that
lacks a label hands the queue over as soon as a worker has them all. If no
worker has them and the queue has no owner, it waits.

A numbered queue loses its pin when "rota task apply" makes the queues fewer.`,
		Example: `  rota queue pin settle 3 host=web1
  rota queue pin regions west 'zone=b|c'`,
		Args:              arguments("TASK", "QUEUE", "LABELS"),
		ValidArgsFunction: complete(listTasks, listQueues),
		RunE: func(cmd *cobra.Command, args []string) error {
			return pinQueue(cmd, o, args[0], args[1], args[2], "queue "+args[1]+" is pinned to "+args[2])
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o)
	return cmd
}

func newQueueUnpinCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:               "unpin TASK QUEUE",
		Short:             "Let any worker own a queue again",
		Long:              `Let any worker own a queue again, as far as "require" of its task type allows.`,
		Example:           "  rota queue unpin settle 3",
		Args:              arguments("TASK", "QUEUE"),
		ValidArgsFunction: complete(listTasks, listQueues),
		RunE: func(cmd *cobra.Command, args []string) error {
			return pinQueue(cmd, o, args[0], args[1], "", "queue "+args[1]+" is not pinned any more")
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o)
	return cmd
}

func pinQueue(cmd *cobra.Command, o output, taskType, queueID, labels, result string) error {
	return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
		if err := c.Queues().Pin(ctx, taskType, queueID, labels, actor()); err != nil {
			return err
		}
		return o.done(cmd, taskType+"$"+c.OwnSign(), result, records.M("queue_id", queueID), records.M("pin", labels))
	})
}
