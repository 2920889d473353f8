package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

// runChange is something that an operator does to a run.
type runChange struct {
	verb, short, long string
	done              string // what has become of it
	fit               func(runRecord) bool
	do                func(c *center.Center, ctx context.Context, runID, actor string) error
}

var runChanges = []runChange{
	{
		verb: "cancel", short: "End an open run; what depends on it fails",
		long: `End an open run at once, whoever owns its queues. A server that is at work
learns of it within a second or two: what it has begun may still take effect.
Runs that wait for its success fail.`,
		done: "cancelled", fit: openRun, do: (*center.Center).CancelRun,
	},
	{
		verb: "rerun", short: "Let a run that has failed or was cancelled go on",
		long: `Let a run that has failed or was cancelled go on: the queues that failed begin
anew, each from where it stands, and those that are done stay done. What failed
because of it waits again.`,
		done: "goes on with the queues that were not done", fit: failedRun, do: (*center.Center).Rerun,
	},
	{
		verb: "pause", short: "Stop an open run: sweeps are suspended, none begins",
		long: `Stop an open run: its sweeps are suspended, and none begins, until "rota run
resume". Its deadline stays what it is.`,
		done: "paused; its sweeps are suspended", fit: openRun, do: pauseRun(true),
	},
	{
		verb: "resume", short: "Let a paused run go on",
		long: `Let a paused run go on: each queue from where it stands.`,
		done: "goes on", fit: func(r runRecord) bool { return openRun(r) && r.Paused }, do: pauseRun(false),
	},
}

func failedRun(r runRecord) bool {
	return slices.Contains([]string{center.RunFailed, center.RunCancelled, center.RunDependentFailed}, r.State)
}

func pauseRun(paused bool) func(*center.Center, context.Context, string, string) error {
	return func(c *center.Center, ctx context.Context, runID, actor string) error {
		return c.PauseRun(ctx, runID, paused, actor)
	}
}

func newRunChangeCommand(change runChange) *cobra.Command {
	cmd := &cobra.Command{
		Use:               change.verb + " RUN",
		Short:             change.short,
		Long:              change.long + "\n\nRUN is a run's id, or the name of a task type: its newest run.",
		Example:           fmt.Sprintf("  rota run %[1]s reindex\n  rota run %[1]s 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c", change.verb),
		Args:              arguments("RUN"),
		ValidArgsFunction: complete(runRefs(change.fit)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				r, err := resolveRun(ctx, c, args[0])
				if err != nil {
					return err
				}
				if err := change.do(c, ctx, r.ID, actor()); err != nil {
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
