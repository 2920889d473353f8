package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/ops"
)

func newTaskListCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the task types and their state",
		Long: `List the task types and their state.

The state of a task type:
  SERVING   live servers serve it
  RUNNING   live servers serve it, and one of its runs is RUNNING
  FAILED    live servers serve it; its last runs failed, and none is RUNNING
  IDLE      live servers serve it; it has mode RUN, and no run is RUNNING
  FAILING   the calls of a live server do nothing but fail: see rota doctor
  UNSERVED  no live server serves it
  DRAINING  every server drains, since the number of queues changes
  PAUSED    an operator has paused it

BACKLOG is the number of items that are left, and how long they need at their
present rate, as the owners of the queues last counted them. With a plus sign it
is the sum of the queues that have been counted; others have not been yet.

OVERDUE counts the queues whose owner is overdue or gone, NO OWNER the queues
without an owner. RETRY and DEAD count failed items. PROBLEMS counts what is
wrong with runs and triggers: "rota doctor" lists it, and "rota run ack" ends
failed runs and missed slots.`,
		Example: `  rota task list
  rota task list --watch
  rota task list -o json | jq '.[] | select(.unassigned > 0)'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return show(cmd, o, func(ctx context.Context, c *ops.Client) (result, error) {
				tasks, err := c.Tasks().List(ctx, "")
				return tableResult(tasks, taskColumns), err
			})
		},
	}
	addRosterFlags(cmd)
	addWatchFlags(cmd, &o)
	return cmd
}

var taskColumns = []column[ops.TaskRecord]{
	{title: "TASK", text: func(t ops.TaskRecord) string { return t.TaskType }},
	{title: "STATE", text: ops.TaskRecord.DisplayState, color: byMeaning[ops.TaskRecord]},
	{title: "QUEUES", text: queueTotal, right: true},
	{title: "HELD", text: func(t ops.TaskRecord) string { return number(t.Owned) }, right: true, dropRank: 2},
	{title: "MOVING", text: func(t ops.TaskRecord) string { return number(t.Moving) }, right: true, dropRank: 1},
	{
		title: "OVERDUE", text: func(t ops.TaskRecord) string { return number(t.Overdue + t.Orphan) }, right: true,
		color: badUnlessZero[ops.TaskRecord],
	},
	{
		title: "NO OWNER", text: func(t ops.TaskRecord) string { return number(t.Unassigned) }, right: true,
		color: badUnlessZero[ops.TaskRecord],
	},
	{title: "SERVERS", text: func(t ops.TaskRecord) string { return number(t.Servers) }, right: true},
	{title: "BACKLOG", text: taskBacklogText, right: true, dropRank: 4},
	{title: "IN FLIGHT", text: func(t ops.TaskRecord) string { return number(t.InFlight) }, right: true, dropRank: 3},
	{title: "RETRY", text: func(t ops.TaskRecord) string { return number(t.RetryItems) }, right: true, dropRank: 1},
	{
		title: "DEAD", text: func(t ops.TaskRecord) string { return number(t.DeadItems) }, right: true,
		color: badUnlessZero[ops.TaskRecord],
	},
	{
		title: "PROBLEMS", text: func(t ops.TaskRecord) string { return number(t.RunProblems) }, right: true,
		color: badUnlessZero[ops.TaskRecord],
	},
}

// queueTotal shows a change of the number of queues as 4>6.
func queueTotal(t ops.TaskRecord) string {
	if t.RequestedTotal != nil {
		return fmt.Sprintf("%d>%d", t.QueueTotal, *t.RequestedTotal)
	}
	return number(t.QueueTotal)
}
