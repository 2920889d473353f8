package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

func newItemListCommand() *cobra.Command {
	var f ops.ItemFilter
	var limit int
	var run string
	state := choice{values: []string{ops.ItemRetry, ops.ItemStarted, ops.ItemDead}}
	cmd := tableCommand(&cobra.Command{
		Use:   "list [TASK]",
		Short: "List failed items, the latest last",
		Long: `List failed items, the latest last.

The state of an item:
  RETRY    it is executed again at NEXT
  STARTED  it is executed alone, because workers have died with its queue
  DEAD     it is skipped until "rota item retry" or "rota item drop"

With --run, list the items that failed in a run, by queue. A queue of a run
records its first 100. "rota run rerun" tries them again. RUN is the id of a
run, or a task type, which stands for its newest run.`,
		Example: `  rota item list settle
  rota item list --state DEAD --limit 1000 -o csv
  rota item list --run reindex`,
	}, listTasks, func(ctx context.Context, c *ops.Client, taskType string) (result, error) {
		if run != "" {
			return listRunItems(ctx, c, run, f.QueueID, limit)
		}
		f.TaskType, f.State = taskType, state.value
		records, err := c.Items().List(ctx, f, limit)
		return tableResult(records, itemColumns), err
	})
	addChoice(cmd, &state, "state", "", "only items in this state")
	cmd.Flags().StringVar(&f.QueueID, "queue", "", "only items of this queue")
	completeFlag(cmd, "queue", listQueues)
	cmd.Flags().StringVar(&run, "run", "", "the items that failed in this run")
	completeFlag(cmd, "run", listRuns(anyRun))
	addLimit(cmd, &limit, "list at most this many")
	checkLimit := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if run != "" && (len(args) > 0 || state.value != "") {
			return usageError{errors.New("--run lists items of a run: leave out TASK and --state")}
		}
		return checkLimit(cmd, args)
	}
	return cmd
}

func listRunItems(ctx context.Context, c *ops.Client, run, queue string, limit int) (result, error) {
	r, err := c.Runs().Find(ctx, run)
	if err != nil {
		return result{}, err
	}
	items, err := c.Runs().FailedItems(ctx, runs.FailedItemFilter{RunID: r.ID, QueueID: queue}, limit)
	return tableResult(items, runItemColumns), err
}

var runItemColumns = []column[runs.FailedItem]{
	{title: "QUEUE", text: func(i runs.FailedItem) string { return i.QueueID }},
	{title: "ITEM", text: func(i runs.FailedItem) string { return oneLine(i.Key) }},
	{title: "ATTEMPT", text: func(i runs.FailedItem) string { return fmt.Sprint(i.Attempt) }, right: true},
	{title: "FAILED", text: func(i runs.FailedItem) string { return timeText(i.FailedAt) }, dropRank: 1},
	{title: "LAST ERROR", text: func(i runs.FailedItem) string { return oneLine(i.LastError) }, truncate: true},
}

var itemColumns = []column[ops.ItemRecord]{
	{title: "TASK", text: func(i ops.ItemRecord) string { return i.TaskType }, dropRank: 2},
	{title: "QUEUE", text: func(i ops.ItemRecord) string { return i.QueueID }},
	{title: "ITEM", text: func(i ops.ItemRecord) string { return oneLine(i.ItemKey) }},
	{title: "STATE", text: func(i ops.ItemRecord) string { return i.State }, color: byMeaning[ops.ItemRecord]},
	{title: "ATTEMPTS", text: func(i ops.ItemRecord) string { return number(i.Attempts) }, right: true},
	{title: "FIRST FAILED", text: func(i ops.ItemRecord) string { return timeText(i.FirstFailedAt) }, dropRank: 3},
	{title: "NEXT", text: nextAttempt, dropRank: 1},
	{title: "LAST ERROR", text: func(i ops.ItemRecord) string { return oneLine(i.LastError) }, truncate: true},
}

func nextAttempt(i ops.ItemRecord) string {
	if i.NextAttemptAt == nil || i.State == ops.ItemDead {
		return "-"
	}
	return timeText(*i.NextAttemptAt)
}
