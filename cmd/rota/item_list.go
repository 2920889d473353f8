package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newItemListCommand() *cobra.Command {
	var o output
	var f center.ItemFilter
	state := choice{values: []string{center.ItemRetry, center.ItemDead}}
	limit := 100
	cmd := &cobra.Command{
		Use:   "list [TASK]",
		Short: "List failed items, the latest last",
		Long: `List failed items, the latest last.

RETRY: the item is tried again at NEXT. DEAD: it is skipped until "rota item
retry" or "rota item drop".`,
		Example: `  rota item list settle
  rota item list --state DEAD --limit 1000 -o csv`,
		Args:              arguments("[TASK]"),
		ValidArgsFunction: complete(listTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := atLeastOne("limit", limit); err != nil {
				return err
			}
			f.TaskType, f.State = firstArg(args), state.value
			return show(cmd, o, func(ctx context.Context, c *center.Center) (result, error) {
				if err := requireTask(ctx, c, f.TaskType); err != nil {
					return result{}, err
				}
				items, err := c.Items().List(ctx, f, limit)
				return tableResult(items, itemColumns), err
			})
		},
	}
	addRosterFlags(cmd)
	addWatchFlags(cmd, &o)
	addChoice(cmd, &state, "state", "", "only items in this state")
	cmd.Flags().StringVar(&f.QueueID, "queue", "", "only items of this queue")
	completeFlag(cmd, "queue", listQueues)
	cmd.Flags().IntVar(&limit, "limit", limit, "list at most this many")
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
