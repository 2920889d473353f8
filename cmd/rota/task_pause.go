package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newTaskPauseCommand() *cobra.Command {
	return taskPauseCommand(&cobra.Command{
		Use:   "pause TASK",
		Short: "Pause a task type in this environment",
		Long: `Pause a task type in this environment. Every server finishes what it has in
flight and selects nothing more, until "rota task resume".`,
		Example: "  rota task pause settle\n  rota task pause settle --own-sign TEST",
	}, true, "paused; every server finishes what it has in flight")
}

func newTaskResumeCommand() *cobra.Command {
	return taskPauseCommand(&cobra.Command{
		Use:     "resume TASK",
		Short:   "Resume a paused task type in this environment",
		Example: "  rota task resume settle\n  rota task resume settle --own-sign TEST",
	}, false, "resumed")
}

func taskPauseCommand(cmd *cobra.Command, pause bool, done string) *cobra.Command {
	cmd.Args = arguments("TASK")
	cmd.ValidArgsFunction = complete(listTasks)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
			change := c.Tasks().Resume
			if pause {
				change = c.Tasks().Pause
			}
			if err := change(ctx, args[0], actor()); err != nil {
				return err
			}
			cmd.Printf("%s$%s: %s\n", args[0], c.OwnSign(), done)
			return nil
		})
	}
	addRosterFlags(cmd)
	return cmd
}
