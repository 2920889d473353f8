package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newBackfillPauseCommand() *cobra.Command {
	return backfillChangeCommand(&cobra.Command{
		Use:   "pause BACKFILL",
		Short: "Pause a backfill: no further slot gets a run",
		Long: `Pause a backfill: no further slot gets a run, until "rota run backfill resume".
The runs that it has made go on; "rota run pause" pauses one of them.`,
	}, openBackfill, (*center.Backfills).Pause, "paused; the runs that it has made go on")
}

func newBackfillResumeCommand() *cobra.Command {
	return backfillChangeCommand(&cobra.Command{
		Use:   "resume BACKFILL",
		Short: "Resume a paused backfill",
		Long:  `Resume a paused backfill with the next slot.`,
	}, pausedBackfill, (*center.Backfills).Resume, "resumed")
}

func newBackfillCancelCommand() *cobra.Command {
	return backfillChangeCommand(&cobra.Command{
		Use:   "cancel BACKFILL",
		Short: "Cancel a backfill and its open runs",
		Long: `Cancel a backfill and its open runs, also the open runs of the task types that
run after its own. A server notices within two seconds; what it has started may
still take effect. Runs that have ended stay as they are. A new backfill of the
range makes the other runs, and with --rerun-failed also reruns the cancelled
runs.`,
	}, openBackfill, (*center.Backfills).Cancel, "cancelled")
}

// backfillChangeCommand completes a command that applies a method of the bundle
// to a backfill. The shell completes the backfills that accepts returns true for.
func backfillChangeCommand(cmd *cobra.Command, accepts func(center.BackfillRecord) bool, do func(b *center.Backfills, ctx context.Context, id, actor string) error, done string) *cobra.Command {
	cmd.Long += "\n\n" + backfillArgument
	cmd.Example = fmt.Sprintf("  rota run backfill %[1]s reindex\n  rota run backfill %[1]s 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c", cmd.Name())
	return changeCommand(cmd, listBackfills(accepts), func(ctx context.Context, c *center.Center, name string) (string, error) {
		b, err := findBackfill(ctx, c, name)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("backfill %s (%s)", b.ID, b.TaskType), do(c.Backfills(), ctx, b.ID, actor())
	}, done)
}

const backfillArgument = `BACKFILL is the id of a backfill, or a task type, which stands for its newest
backfill.`
