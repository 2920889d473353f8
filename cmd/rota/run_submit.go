package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/ops"
)

// newRunSubmitCommand makes the command of the verb, which can also wait for the end of the run.
func newRunSubmitCommand() *cobra.Command {
	v := &verbCommand{call: ops.Find("run submit").Call()}
	cmd := v.command()
	wait := cmd.Flags().Bool("wait", false, "wait for the end of the run and show its progress on stderr")
	v.after = func(ctx context.Context, c *ops.Client, done []ops.Done) error {
		if !*wait {
			return nil
		}
		w := waiter{c: c, runID: done[0].ID, out: cmd.ErrOrStderr(), errors: cmd.ErrOrStderr()}
		return w.run(ctx)
	}
	return cmd
}
