package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

var runStates = []string{
	runs.Waiting, runs.Ready, runs.Running, runs.Success,
	runs.Failed, runs.DependentFailed, runs.Cancelled, runs.Skipped,
}

func newRunListCommand() *cobra.Command {
	var f runs.Filter
	var limit int
	var backfill string
	state := choice{values: runStates}
	cmd := listCommand(&cobra.Command{
		Use:   "list [TASK]",
		Short: "List runs, the newest first",
		Long: `List runs, the newest first.

The state of a run:
  WAITING           it waits for its upstreams
  READY             it starts when no other run of its task type is RUNNING
  RUNNING           servers sweep its queues
  PAUSED            an operator has paused it before its end
  SUCCESS           all its queues are done
  FAILED            a queue has failed too often, the deadline has passed, or it
                    did not start in time
  DEPENDENT_FAILED  an upstream did not succeed
  CANCELLED         an operator cancelled it
  SKIPPED           another run was open when its trigger was due; "rota run
                    rerun" starts it

QUEUES are the drained and all queues of the run. ITEMS with a plus sign are at
least that many: a process died, or the run was cancelled during a sweep.`,
		Example: `  rota run list reindex --watch
  rota run list --state FAILED
  rota run list --backfill 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c
  rota run list --limit 1000 -o csv`,
	}, listRunTasks, runColumns, func(ctx context.Context, c *ops.Client, taskType string) ([]runs.Record, error) {
		f.TaskType, f.State = taskType, state.value
		if backfill != "" {
			b, err := ops.FindBackfill(ctx, c, backfill)
			if err != nil {
				return nil, err
			}
			f.Backfill = b.ID
		}
		return c.Runs().List(ctx, f, limit)
	})
	addChoice(cmd, &state, "state", "", "only runs in this state")
	cmd.Flags().StringVar(&backfill, "backfill", "", "only the runs of this backfill, and of their dependants")
	completeFlag(cmd, "backfill", listBackfills(anyBackfill))
	addLimit(cmd, &limit, "list at most this many")
	return cmd
}

var runColumns = []column[runs.Record]{
	{title: "RUN", text: func(r runs.Record) string { return r.ID }},
	{title: "TASK", text: func(r runs.Record) string { return r.TaskType }},
	{title: "STATE", text: func(r runs.Record) string { return r.DisplayState() }, color: byMeaning[runs.Record]},
	{title: "QUEUES", text: finishedText, right: true},
	{
		title: "ITEMS", text: func(r runs.Record) string { return itemsText(r.ItemsDone, r.ItemsAtLeast) }, right: true,
		dropRank: 4,
	},
	{
		title: "FAILED", text: func(r runs.Record) string { return number(r.ItemsFailed) }, right: true, dropRank: 3,
		color: badUnlessZero[runs.Record],
	},
	{
		title: "DUE", text: func(r runs.Record) string { return relativeTime(r.Now, r.ScheduledAt) }, right: true,
		dropRank: 2,
	},
	{title: "DURATION", text: runDuration, right: true, dropRank: 1},
	{title: "TRIGGER", text: func(r runs.Record) string { return orDash(r.Trigger) }, dropRank: 5},
	{title: "KEY", text: submittedKey, dropRank: 6, truncate: true},
	{title: "REASON", text: func(r runs.Record) string { return oneLine(r.Message) }, dropRank: 7, truncate: true},
}

// submittedKey hides the key of a trigger's run, which only repeats the trigger
// and the slot.
func submittedKey(r runs.Record) string {
	if r.Trigger != "" {
		return "-"
	}
	return oneLine(r.Key)
}

// finishedText returns the number of drained queues and of all queues of a run, as 2/4. Failed and cancelled queues are
// not drained.
func finishedText(r runs.Record) string {
	if r.Queues() == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", r.QueuesDone, r.Queues())
}

// itemsText returns a number of items, with a plus sign if it is a lower bound.
func itemsText(n int64, atLeast bool) string {
	if atLeast {
		return number(n) + "+"
	}
	return number(n)
}

// runDuration is the time from the start of a run to its end, or until now.
func runDuration(r runs.Record) string {
	end := r.FinishedAt
	if end.IsZero() {
		end = r.Now
	}
	if r.StartedAt.IsZero() {
		return "-"
	}
	return durationText(end.Sub(r.StartedAt))
}
