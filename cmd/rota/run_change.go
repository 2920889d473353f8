package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

// runChange is a command that changes a run.
type runChange struct {
	verb, short, long string
	done              string                // what the command prints
	accepts           func(center.Run) bool // the runs that the shell completes
	do                func(ctx context.Context, c *center.Center, runID, actor string) error
}

var runChanges = []runChange{
	{
		verb: "cancel", short: "Cancel an open run; the runs that depend on it fail",
		long: `Cancel an open run at once, whichever servers own its queues. A server notices
within two seconds; what it has started may still take effect. The runs that
wait for its success fail.`,
		done: "cancelled", accepts: openRun, do: func(ctx context.Context, c *center.Center, runID, actor string) error {
			return c.Runs().Cancel(ctx, runID, actor)
		},
	},
	{
		verb: "rerun", short: "Rerun the unfinished queues of a run that failed or was cancelled",
		long: `Rerun the unfinished queues of a run that failed or was cancelled, each from its
current position. Finished queues stay finished. The runs that failed because of
this run wait for it again.`,
		done: "reruns the queues that were not done", accepts: failedRun, do: func(ctx context.Context, c *center.Center, runID, actor string) error {
			return c.Runs().Rerun(ctx, runID, actor)
		},
	},
	{
		verb: "pause", short: "Pause an open run: its sweeps stop",
		long: `Pause an open run. Its sweeps stop and none starts, until "rota run resume". Its
deadline does not change.`,
		done: "paused; its sweeps stop", accepts: openRun, do: pauseRun(true),
	},
	{
		verb: "resume", short: "Resume a paused run",
		long: `Resume a paused run, each queue from its current position.`,
		done: "resumed", accepts: pausedRun, do: pauseRun(false),
	},
}

func pausedRun(r center.Run) bool { return openRun(r) && r.Paused }

func failedRun(r center.Run) bool {
	return slices.Contains([]string{center.RunFailed, center.RunCancelled, center.RunDependentFailed}, r.State)
}

func pauseRun(paused bool) func(context.Context, *center.Center, string, string) error {
	return func(ctx context.Context, c *center.Center, runID, actor string) error {
		if paused {
			return c.Runs().Pause(ctx, runID, actor)
		}
		return c.Runs().Resume(ctx, runID, actor)
	}
}

func newRunChangeCommand(change runChange) *cobra.Command {
	cmd := &cobra.Command{
		Use:               change.verb + " RUN",
		Short:             change.short,
		Long:              change.long + "\n\nRUN is the id of a run, or a task type, which stands for its newest run.",
		Example:           fmt.Sprintf("  rota run %[1]s reindex\n  rota run %[1]s 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c", change.verb),
		Args:              arguments("RUN"),
		ValidArgsFunction: complete(listRuns(change.accepts)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				r, err := c.Runs().Find(ctx, args[0])
				if err != nil {
					return err
				}
				if err := change.do(ctx, c, r.ID, actor()); err != nil {
					return err
				}
				cmd.Printf("run %s (%s): %s\n", r.ID, r.TaskType, change.done)
				return nil
			})
		},
	}
	addRosterFlags(cmd)
	return cmd
}
