package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

func newTriggerListCommand() *cobra.Command {
	return listCommand(&cobra.Command{
		Use:   "list [TASK]",
		Short: "List the triggers and when they are due",
		Long: `List the triggers and when they are due.

The status of a trigger:
  ACTIVE  it fires when it is due
  PAUSED  it does not fire, and misses its slots
  DONE    it is never due again
  ERROR   its row is invalid; REASON says why

MISSED counts the slots that never fire, because no server was running or the
trigger was paused. SKIPPED counts the slots since the last one that fired,
whose runs were skipped because other runs were open.`,
		Example: `  rota trigger list
  rota trigger list reindex -o json | jq '.[].next_fire_at'`,
	}, listRunTasks, triggerColumns, func(ctx context.Context, c *ops.Client, taskType string) (
		[]runs.TriggerRecord, error,
	) {
		return c.Triggers().List(ctx, runs.TriggerFilter{Target: taskType})
	})
}

var triggerColumns = []column[runs.TriggerRecord]{
	{title: "TRIGGER", text: func(t runs.TriggerRecord) string { return t.Name }},
	{title: "TASK", text: func(t runs.TriggerRecord) string { return t.Target }},
	{title: "STATUS", text: func(t runs.TriggerRecord) string { return t.Status }, color: byMeaning[runs.TriggerRecord]},
	{
		title: "SCHEDULE", text: func(t runs.TriggerRecord) string { return scheduleText(t.Trigger) }, dropRank: 4,
		truncate: true,
	},
	{title: "NEXT", text: nextFire, right: true},
	{
		title: "PREVIOUS", text: func(t runs.TriggerRecord) string { return relativeTime(t.Now, t.PrevFireAt) }, right: true,
		dropRank: 1,
	},
	{title: "FIRED", text: func(t runs.TriggerRecord) string { return number(t.Fires) }, right: true, dropRank: 3},
	{title: "MISSED", text: func(t runs.TriggerRecord) string { return number(t.Missed) }, right: true, dropRank: 2},
	{title: "SKIPPED", text: func(t runs.TriggerRecord) string { return number(t.Skipped) }, right: true, dropRank: 2},
	{title: "OVERLAP", text: func(t runs.TriggerRecord) string { return t.Overlap }, dropRank: 6},
	{title: "MISFIRE", text: func(t runs.TriggerRecord) string { return t.Misfire }, dropRank: 6},
	{title: "REASON", text: func(t runs.TriggerRecord) string { return oneLine(t.Message) }, dropRank: 5, truncate: true},
}

// scheduleText says when a trigger is due.
func scheduleText(t runs.Trigger) string {
	switch t.Kind {
	case runs.TriggerCron:
		return t.Expression + " " + t.TimeZone
	case runs.TriggerEvery:
		return "every " + t.Expression
	}
	return "at " + t.Expression
}

// nextFire returns "-" for a trigger that does not fire.
func nextFire(t runs.TriggerRecord) string {
	if t.Status != runs.TriggerActive || t.NextFireAt.IsZero() {
		return "-"
	}
	if !t.NextFireAt.After(t.Now) {
		return "now"
	}
	return relativeTime(t.Now, t.NextFireAt)
}
