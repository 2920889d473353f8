package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plural"
)

func newRunAckCommand() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "ack RUN",
		Short: "Acknowledge failed runs, missed and skipped slots: no problem any more",
		Long: `Acknowledge that a run failed: its alert is not repeated, and "rota doctor" and
"rota task list" do not count it any more. This also acknowledges the earlier
failures of the same trigger or backfill, and the runs that failed because of
this run, but no other submitted runs. The next run that fails is a problem
again.

RUN is the id of a failed run, or a task type, which stands for all its failed
and cancelled runs and the missed and skipped slots of its triggers.`,
		Example: `  rota run ack reindex
  rota run ack 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c`,
	}, listRuns(unresolvedRun), ack, "acknowledged")
}

// unresolvedRun reports whether a run has failed or was cancelled, and was not acknowledged.
func unresolvedRun(r center.Run) bool {
	return r.Unresolved() || r.State == center.RunCancelled && r.AckedAt.IsZero()
}

// ack acknowledges the failed run with that name, or all failed runs and missed slots of the task type with that name.
func ack(ctx context.Context, c *center.Center, name string) (string, error) {
	r, err := c.Runs().Get(ctx, name)
	if err == nil {
		return fmt.Sprintf("run %s (%s)", r.ID, r.TaskType), c.Runs().Ack(ctx, r.ID, actor())
	}
	if !errors.Is(err, center.ErrUnknownRun) {
		return "", err
	}
	if _, err := c.Runs().Find(ctx, name); err != nil && !errors.Is(err, center.ErrNoRunYet) { // a slot may be missed before the first run
		return "", err
	}
	problems, err := c.Runs().AckTask(ctx, name, actor())
	return ackedText(name, problems), err
}

func ackedText(taskType string, problems []center.RunProblem) string {
	var runs, triggers int64
	for _, p := range problems {
		if p.RunID != "" {
			runs += p.Count
		} else {
			triggers++
		}
	}
	return fmt.Sprintf("%s (%s, missed or skipped slots of %s)", taskType, plural.Of(runs, "run", "runs"), plural.Of(triggers, "trigger", "triggers"))
}
