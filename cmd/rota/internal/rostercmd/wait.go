package rostercmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
)

func newTaskWaitCommand() *cobra.Command {
	var wait cli.Wait
	var o cli.Output
	cmd := cli.Command(&cobra.Command{
		Use:   "wait TASK",
		Short: "Wait until the queues of a task type have moved, split or merged",
		Long: `Wait until nothing is left to do for the queues of a task type: each has an
owner, and none is to move, to split, to merge or to be removed. It shows how
many queues are left: on a terminal all the time, into a pipe a line every 30 s.
The exit code is 0 when nothing is left, else 1. Ctrl-C ends the wait; the
queues go on. With -o json and -o csv the progress is on stderr.`,
		Example: `  rota task set settle queues=128 && rota task wait settle
  rota worker drain web1:4711 && rota task wait settle --timeout 10m`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.WithRoster(cmd, func(ctx context.Context, c *ops.Client) error {
				out := cmd.OutOrStdout()
				if !o.IsTable() {
					out = cmd.ErrOrStderr()
				}
				progress := cli.NewProgress(out)
				wait.IsTransient, wait.Clear, wait.Errors = c.IsTransient, progress.Clear, cmd.ErrOrStderr()
				p, err := waitForQueues(ctx, c, &wait, progress, args[0])
				if err != nil {
					return err
				}
				return o.Write(cmd.OutOrStdout(), cli.Result{
					Records: records.Of(p), Text: func(s cli.Screen) string { return s.Wrap(leftText(p)) },
				})
			})
		},
	}, &o, cli.Names("task"))
	wait.AddTimeout(cmd, "it takes")
	return cmd
}

// waitForQueues returns when nothing is left to do for the queues of a task type.
func waitForQueues(ctx context.Context, c *ops.Client, wait *cli.Wait, progress *cli.Progress,
	taskType string,
) (p ops.Pending, err error) {
	most := 0 // the work that the progress counts in: more may come meanwhile
	err = wait.Until(ctx, func(ctx context.Context) (bool, error) {
		now, err := c.Queues().Pending(ctx, taskType)
		if err != nil {
			return false, err
		}
		p, most = now, max(most, now.Left())
		if p.Left() > 0 {
			progress.Show(leftText(p), int64(most-p.Left()), int64(most))
		}
		return p.Left() == 0, nil
	})
	switch {
	case errors.Is(err, cli.ErrInterrupted):
		return p, fmt.Errorf("wait for the queues of %s: %w; they go on", taskType, err)
	case errors.Is(err, cli.ErrTimeout):
		return p, fmt.Errorf("wait for the queues of %s: %w after %s; %s", taskType, err, wait.Timeout, p)
	}
	return p, err
}

func leftText(p ops.Pending) string { return fmt.Sprintf("%s: %s", p.TaskType, p) }
