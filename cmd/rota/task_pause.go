package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newTaskPauseCommand() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "pause TASK",
		Short: "Pause a task type in this environment",
		Long: `Pause a task type in this environment. Every server finishes what it has in
flight and selects nothing more, until "rota task resume".`,
		Example: "  rota task pause settle\n  rota task pause settle --own-sign TEST",
	}, listTasks, changeTask((*center.Tasks).Pause), "paused; every server finishes what it has in flight")
}

func newTaskResumeCommand() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:     "resume TASK",
		Short:   "Resume a paused task type in this environment",
		Example: "  rota task resume settle\n  rota task resume settle --own-sign TEST",
	}, listTasks, changeTask((*center.Tasks).Resume), "resumed")
}

// changeTask applies a method of the bundle to a task type in this environment.
func changeTask(do func(t *center.Tasks, ctx context.Context, taskType, actor string) error) change {
	return func(ctx context.Context, c *center.Center, name string) (string, error) {
		return name + "$" + c.OwnSign(), do(c.Tasks(), ctx, name, actor())
	}
}
