package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/records"
)

func newQueueRemoveCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "remove TASK QUEUE",
		Short: "Remove a named queue after its owner has drained it",
		Long: `Remove a named queue. Its owner finishes what it has in flight of the queue,
then the row is deleted. Items of that name are no longer processed. "rota queue
add" cancels the removal of a queue that is still there.`,
		Example:           "  rota queue remove settle west --yes",
		Args:              arguments("TASK", "QUEUE"),
		ValidArgsFunction: complete(listTasks, listQueues),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				return removeQueue(ctx, cmd, o, c, args[0], args[1])
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o)
	addYes(cmd)
	return cmd
}

func removeQueue(ctx context.Context, cmd *cobra.Command, o output, c *center.Center, taskType, queueID string) error {
	if err := requireTask(ctx, c, taskType); err != nil {
		return err
	}
	action := fmt.Sprintf("remove queue %s of %s$%s, whose items are then no longer processed", queueID, taskType, c.OwnSign())
	if err := confirm(cmd, action); err != nil {
		return err
	}
	if err := c.Queues().Remove(ctx, taskType, queueID, actor()); err != nil {
		return err
	}
	return o.done(cmd, taskType+"$"+c.OwnSign(), "queue "+queueID+" is removed as soon as its owner has drained it", records.M("queue_id", queueID))
}
