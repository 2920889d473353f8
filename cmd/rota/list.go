package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/ops"
)

// listCommand completes a command that lists records, of one task type or of
// all, as a table of the given columns.
func listCommand[T any](cmd *cobra.Command, tasks lister, columns []column[T],
	list func(ctx context.Context, c *ops.Client, taskType string) ([]T, error),
) *cobra.Command {
	return tableCommand(cmd, tasks, func(ctx context.Context, c *ops.Client, taskType string) (result, error) {
		records, err := list(ctx, c, taskType)
		return tableResult(records, columns), err
	})
}

// tableCommand is listCommand for a command that chooses its columns.
func tableCommand(cmd *cobra.Command, tasks lister,
	list func(ctx context.Context, c *ops.Client, taskType string) (result, error),
) *cobra.Command {
	var o output
	cmd.Args = arguments("[TASK]")
	cmd.ValidArgsFunction = complete(tasks)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return show(cmd, o, func(ctx context.Context, c *ops.Client) (result, error) {
			if err := requireTask(ctx, c, firstArg(args)); err != nil {
				return result{}, err
			}
			return list(ctx, c, firstArg(args))
		})
	}
	addRosterFlags(cmd)
	addWatchFlags(cmd, &o)
	return cmd
}

// addLimit adds --limit, which the command checks before it connects.
func addLimit(cmd *cobra.Command, limit *int, usage string) {
	cmd.Flags().IntVar(limit, "limit", 100, usage)
	cmd.PreRunE = func(*cobra.Command, []string) error { return atLeastOne("limit", *limit) }
}
