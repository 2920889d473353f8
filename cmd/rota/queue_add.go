package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/records"
)

func newQueueAddCommand() *cobra.Command {
	var parameter string
	var o output
	cmd := &cobra.Command{
		Use:   "add TASK QUEUE",
		Short: "Add a named queue, or cancel its removal",
		Long: `Add a named queue, or cancel its removal. A server owns the queue at
once. "rota task apply" changes the number of numbered queues.`,
		Example:           "  rota queue add settle west\n  rota queue add settle west --parameter '{\"zone\": 3}'",
		Args:              arguments("TASK", "QUEUE"),
		ValidArgsFunction: complete(listTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				err := c.Queues().Add(ctx, args[0], args[1], parameter, actor())
				if errors.Is(err, center.ErrNumbered) {
					return fmt.Errorf("%w: %s", err, moreQueues(ctx, c, args[0]))
				}
				if err != nil {
					return err
				}
				return o.done(cmd, args[0]+"$"+c.OwnSign(), "queue "+args[1]+" added", records.M("queue_id", args[1]))
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o)
	cmd.Flags().StringVar(&parameter, "parameter", "", "queue_parameter, which the dealer gets with each select")
	return cmd
}

// moreQueues is the command that adds a queue to numbered ones.
func moreQueues(ctx context.Context, c *center.Center, taskType string) string {
	number := "NUMBER"
	if tasks, err := c.Tasks().List(ctx, taskType); err == nil && len(tasks) > 0 {
		number = fmt.Sprint(tasks[0].QueueTotal + 1)
	}
	return "rota task set " + taskType + " queues=" + number
}
