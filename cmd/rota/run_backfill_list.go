package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

var backfillStates = []string{runs.BackfillRunning, runs.BackfillSuccess, runs.BackfillFailed, runs.BackfillCancelled}

func newBackfillListCommand() *cobra.Command {
	var f runs.BackfillFilter
	var limit int
	state := choice{values: backfillStates}
	cmd := listCommand(&cobra.Command{
		Use:   "list [TASK]",
		Short: "List backfills, the newest first",
		Long: `List backfills, the newest first.

The state of a backfill:
  RUNNING    slots are left, or runs have not ended
  PAUSED     an operator has paused it: no further slot gets a run
  SUCCESS    all its runs have succeeded
  FAILED     all its runs have ended, and not all have succeeded
  CANCELLED  an operator cancelled it, or its trigger was deleted

SLOTS is the number of slots that it has passed, of all its slots. FAILED counts
failed runs, also runs of task types that run after its own.`,
		Example: `  rota run backfill list
  rota run backfill list reindex --state FAILED -o json`,
	}, listRunTasks, backfillColumns, func(ctx context.Context, c *ops.Client, taskType string) (
		[]runs.BackfillRecord, error,
	) {
		f.TaskType, f.State = taskType, state.value
		return c.Backfills().List(ctx, f, limit)
	})
	addChoice(cmd, &state, "state", "", "only backfills in this state")
	addLimit(cmd, &limit, "list at most this many")
	return cmd
}

var backfillColumns = []column[runs.BackfillRecord]{
	{title: "BACKFILL", text: func(b runs.BackfillRecord) string { return b.ID }},
	{title: "TASK", text: func(b runs.BackfillRecord) string { return b.TaskType }},
	{
		title: "STATE", text: func(b runs.BackfillRecord) string { return b.DisplayState() },
		color: byMeaning[runs.BackfillRecord],
	},
	{title: "SLOTS", text: passedText, right: true},
	{title: "OPEN", text: func(b runs.BackfillRecord) string { return number(b.RunsOpen) }, right: true, dropRank: 4},
	{
		title: "FAILED", text: func(b runs.BackfillRecord) string { return number(b.RunsFailed + b.DependantsFailed) },
		right: true, dropRank: 2, color: badUnlessZero[runs.BackfillRecord],
	},
	{title: "FROM", text: func(b runs.BackfillRecord) string { return timeText(b.From) }, dropRank: 3},
	{title: "TO", text: func(b runs.BackfillRecord) string { return timeText(b.To) }, dropRank: 3},
	{
		title: "STARTED", text: func(b runs.BackfillRecord) string { return relativeTime(b.Now, b.CreatedAt) }, right: true,
		dropRank: 1,
	},
	{title: "TRIGGER", text: func(b runs.BackfillRecord) string { return b.Trigger }, dropRank: 5},
	{title: "BY", text: func(b runs.BackfillRecord) string { return orDash(b.Actor) }, dropRank: 6},
	{title: "REASON", text: func(b runs.BackfillRecord) string { return oneLine(b.Message) }, dropRank: 7, truncate: true},
}

// passedText returns the number of slots that a backfill has passed and the number of all its slots, as 3/12.
func passedText(b runs.BackfillRecord) string {
	return fmt.Sprintf("%d/%d", b.SlotsMade+b.SlotsKept, b.SlotsTotal)
}

// listBackfills lists the newest backfills that accept returns true for.
func listBackfills(accept func(runs.BackfillRecord) bool) lister {
	return func(ctx context.Context, c *ops.Client, _ []string) (values []string, err error) {
		list, err := c.Backfills().List(ctx, runs.BackfillFilter{}, listedRuns)
		for _, b := range list {
			if accept(b) {
				values = append(values, b.ID+"\t"+b.TaskType+", "+strings.ToLower(b.DisplayState())+", "+relativeTime(b.Now,
					b.CreatedAt))
			}
		}
		return values, err
	}
}

func anyBackfill(runs.BackfillRecord) bool      { return true }
func openBackfill(b runs.BackfillRecord) bool   { return b.State == runs.BackfillRunning }
func pausedBackfill(b runs.BackfillRecord) bool { return openBackfill(b) && b.Paused }
