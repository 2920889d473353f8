package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newItemListCommand() *cobra.Command {
	var f center.ItemFilter
	var limit int
	state := choice{values: []string{center.ItemRetry, center.ItemStarted, center.ItemDead}}
	cmd := listCommand(&cobra.Command{
		Use:   "list [TASK]",
		Short: "List failed items, the latest last",
		Long: `List failed items, the latest last.

The state of an item:
  RETRY    it is executed again at NEXT
  STARTED  it is executed alone, because workers have died with its queue
  DEAD     it is skipped until "rota item retry" or "rota item drop"`,
		Example: `  rota item list settle
  rota item list --state DEAD --limit 1000 -o csv`,
	}, listTasks, itemColumns, func(ctx context.Context, c *center.Center, taskType string) ([]center.ItemRecord, error) {
		f.TaskType, f.State = taskType, state.value
		return c.Items().List(ctx, f, limit)
	})
	addChoice(cmd, &state, "state", "", "only items in this state")
	cmd.Flags().StringVar(&f.QueueID, "queue", "", "only items of this queue")
	completeFlag(cmd, "queue", listQueues)
	addLimit(cmd, &limit, "list at most this many")
	return cmd
}

var itemColumns = []column[center.ItemRecord]{
	{title: "TASK", text: func(i center.ItemRecord) string { return i.TaskType }, dropRank: 2},
	{title: "QUEUE", text: func(i center.ItemRecord) string { return i.QueueID }},
	{title: "ITEM", text: func(i center.ItemRecord) string { return oneLine(i.ItemKey) }},
	{title: "STATE", text: func(i center.ItemRecord) string { return i.State }, color: byMeaning[center.ItemRecord]},
	{title: "ATTEMPTS", text: func(i center.ItemRecord) string { return number(i.Attempts) }, right: true},
	{title: "FIRST FAILED", text: func(i center.ItemRecord) string { return timeText(i.FirstFailedAt) }, dropRank: 3},
	{title: "NEXT", text: nextAttempt, dropRank: 1},
	{title: "LAST ERROR", text: func(i center.ItemRecord) string { return oneLine(i.LastError) }, truncate: true},
}

func nextAttempt(i center.ItemRecord) string {
	if i.NextAttemptAt == nil || i.State == center.ItemDead {
		return "-"
	}
	return timeText(*i.NextAttemptAt)
}
