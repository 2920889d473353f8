package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newTaskPauseCommand(pause bool) *cobra.Command {
	use, short, done := "pause TASK", "Stop a task type: every server finishes what it has in hand, and starts nothing", "paused; every server finishes what it has in hand"
	if !pause {
		use, short, done = "resume TASK", "Let a paused task type go on", "goes on"
	}
	cmd := &cobra.Command{
		Use:               use,
		Short:             short,
		Example:           "  rota task " + use[:len(use)-4] + "settle\n  rota task " + use[:len(use)-4] + "settle --own-sign TEST",
		Args:              arguments("TASK"),
		ValidArgsFunction: complete(taskNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				if err := c.Roster().Pause(ctx, args[0], pause, actor()); err != nil {
					return err
				}
				cmd.Printf("%s$%s: %s\n", args[0], c.OwnSign(), done)
				return nil
			})
		},
	}
	addRosterFlags(cmd)
	return cmd
}

func newTaskDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete TASK",
		Short: "Delete a task type that nobody serves any more",
		Long: `Delete a task type that nobody serves any more, in all environments (own_sign):
its settings, queues, failed items and triggers; open runs are cancelled. It
refuses while a server lives that serves it, or another task type runs after it.
Events and runs stay until their retention. Your own tables are not touched.`,
		Example:           "  rota task delete settle\n  rota task delete settle --yes",
		Args:              arguments("TASK"),
		ValidArgsFunction: complete(taskNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				if err := mustExist(ctx, c, args[0]); err != nil {
					return err
				}
				if err := confirm(cmd, fmt.Sprintf("delete the task type %s in all environments, its settings, queues, failed items and triggers", args[0])); err != nil {
					return err
				}
				if err := c.DeleteTask(ctx, args[0], actor()); err != nil {
					return err
				}
				cmd.Printf("%s: deleted\n", args[0])
				return nil
			})
		},
	}
	addRosterFlags(cmd)
	addYes(cmd)
	return cmd
}
