package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newTaskDeleteCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "delete TASK",
		Short: "Delete a task type that no live server serves",
		Long: `Delete a task type in all environments (own_sign): its settings, queues, failed
items and triggers. Open runs are cancelled. The command refuses while a live
server serves the task type, or another task type runs after it. Events and runs
stay until their retention ends. Your own tables are not touched. Failed items
are deleted first, in steps. After an interrupt the command can be repeated.`,
		Example:           "  rota task delete settle\n  rota task delete settle --yes",
		Args:              arguments("TASK"),
		ValidArgsFunction: complete(listTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				return deleteTask(ctx, cmd, o, c, args[0])
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o)
	addYes(cmd)
	return cmd
}

func deleteTask(ctx context.Context, cmd *cobra.Command, o output, c *center.Center, taskType string) error {
	if err := requireTask(ctx, c, taskType); err != nil {
		return err
	}
	action := fmt.Sprintf("delete task type %s in all environments, with its settings, queues, failed items and triggers", taskType)
	if err := confirm(cmd, action); err != nil {
		return err
	}
	tasks := c.Tasks().WithProgress(itemProgress(cmd, taskType, "deleted"))
	if err := tasks.Delete(ctx, taskType, actor()); err != nil {
		return err
	}
	return o.done(cmd, taskType, "deleted")
}
