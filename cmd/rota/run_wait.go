package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
)

func newRunWaitCommand() *cobra.Command {
	var timeout time.Duration
	var o output
	cmd := &cobra.Command{
		Use:   "wait RUN",
		Short: "Wait for the end of a run; exit 0 if it succeeded",
		Long: `Wait for the end of a run and show its progress: on a terminal all the time,
into a pipe a line when the state changes, or every 30 s. The exit code is 0 if
the run succeeded, else 1, with the reason. Ctrl-C ends the wait; the run
continues. With -o json and -o csv the progress is on stderr, and the run's last
state is the output.

RUN is the id of a run, or a task type, which stands for its newest run.`,
		Example: `  rota run wait reindex
  rota run wait 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c --timeout 4h && echo done`,
		Args:              arguments("RUN"),
		ValidArgsFunction: complete(listRuns(openRun)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 {
				return usageError{fmt.Errorf("--timeout (%s) must not be negative", timeout)}
			}
			return withRoster(cmd, func(ctx context.Context, c *ops.Client) error {
				r, err := c.Runs().Find(ctx, args[0])
				if err != nil {
					return err
				}
				w := waiter{c: c, runID: r.ID, out: cmd.OutOrStdout(), errors: cmd.ErrOrStderr(), timeout: timeout, last: r}
				if o.isTable() {
					return w.run(ctx)
				}
				w.out = cmd.ErrOrStderr()
				err = w.run(ctx)
				return errors.Join(err, o.write(cmd.OutOrStdout(), result{records: records.Of(w.last)}))
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "exit 1 if the run takes longer than 30m, 4h, ...; 0: no limit")
	return cmd
}
