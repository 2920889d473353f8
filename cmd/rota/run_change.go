package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newRunCancelCommand() *cobra.Command {
	return runChangeCommand(&cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel an open run; the runs that depend on it fail",
		Long: `Cancel an open run at once, whichever servers own its queues. A server notices
within two seconds; what it has started may still take effect. The runs that
wait for its success fail.`,
	}, openRun, (*center.Runs).Cancel, "cancelled")
}

func newRunRerunCommand() *cobra.Command {
	return runChangeCommand(&cobra.Command{
		Use:   "rerun RUN",
		Short: "Rerun what a run has not done that failed or was cancelled or skipped",
		Long: `Rerun the unfinished queues of a run that failed or was cancelled, each from its
current position. Finished queues stay finished. A run that was SKIPPED starts
when no other run of its task type is RUNNING. The runs that failed or were
skipped because of this run wait for it again.`,
	}, reopenableRun, (*center.Runs).Rerun, "reruns the queues that were not done")
}

func newRunPauseCommand() *cobra.Command {
	return runChangeCommand(&cobra.Command{
		Use:   "pause RUN",
		Short: "Pause an open run: its sweeps stop",
		Long: `Pause an open run. Its sweeps stop and none starts, until "rota run resume". Its
deadline does not change.`,
	}, openRun, (*center.Runs).Pause, "paused; its sweeps stop")
}

func newRunResumeCommand() *cobra.Command {
	return runChangeCommand(&cobra.Command{
		Use:   "resume RUN",
		Short: "Resume a paused run",
		Long:  `Resume a paused run, each queue from its current position.`,
	}, pausedRun, (*center.Runs).Resume, "resumed")
}

func openRun(r center.Run) bool   { return !r.Ended() }
func pausedRun(r center.Run) bool { return openRun(r) && r.Paused }

func reopenableRun(r center.Run) bool {
	return slices.Contains([]string{center.RunFailed, center.RunCancelled, center.RunDependentFailed, center.RunSkipped}, r.State)
}

// runChangeCommand completes a command that applies a method of the bundle to a
// run. The shell completes the runs that accepts returns true for.
func runChangeCommand(cmd *cobra.Command, accepts func(center.Run) bool, do func(r *center.Runs, ctx context.Context, runID, actor string) error, done string) *cobra.Command {
	cmd.Long += "\n\nRUN is the id of a run, or a task type, which stands for its newest run."
	cmd.Example = fmt.Sprintf("  rota run %[1]s reindex\n  rota run %[1]s 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c", cmd.Name())
	return changeCommand(cmd, listRuns(accepts), func(ctx context.Context, c *center.Center, name string) (string, error) {
		r, err := c.Runs().Find(ctx, name)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("run %s (%s)", r.ID, r.TaskType), do(c.Runs(), ctx, r.ID, actor())
	}, done)
}
