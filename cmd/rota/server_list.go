package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/ops"
)

// serverList is the command's flags.
type serverList struct {
	output
	filter ops.ServerFilter
	gone   bool
	limit  int
}

func newServerListCommand() *cobra.Command {
	l := &serverList{}
	cmd := &cobra.Command{
		Use:   "list [TASK]",
		Short: "List the servers and what they do",
		Long: `List the servers and what they do.

The state of a server:
  SERVING   it owns queues
  FAILING   it owns queues, and its calls do nothing but fail
  STANDBY   it owns none: there are more servers than queues, or than
            max_servers or max_in_flight allow, or its weight is 0
  PAUSED    an operator has paused it
  DRAINING  it hands its queues over, and gets none
  LEAVING   it stops, gets none, and reserves its queues for its return
  OVERDUE   it has sent no heartbeat for judge_dead_interval

REQUESTED counts the queues of a server that other servers request. AWAITED
counts the queues that it requests from other servers. HUNG counts the queues
that it does not get, because calls of its process's former session are still
in flight for them. WEIGHT is its part of the queues, in proportion to the
weights of the others. CALLS is the number of calls of Execute that it may have
in flight, its share of max_in_flight. "3 to 2" means that it lowers this number
when calls have ended, or waits until other servers have lowered theirs.`,
		Example: `  rota server list --watch
  rota server list settle --host web1
  rota server list --gone                servers that have left or expired`,
		Args:              arguments("[TASK]"),
		ValidArgsFunction: complete(listTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			l.filter.TaskType = firstArg(args)
			return show(cmd, l.output, l.query)
		},
	}
	addRosterFlags(cmd)
	addWatchFlags(cmd, &l.output)
	cmd.Flags().StringVar(&l.filter.Host, "host", "", "only servers of this host")
	completeFlag(cmd, "host", listHosts)
	cmd.Flags().BoolVar(&l.gone, "gone", false, "list the servers that have left or expired instead")
	addLimit(cmd, &l.limit, "with --gone: list at most this many")
	return cmd
}

func (l *serverList) query(ctx context.Context, c *ops.Client) (result, error) {
	if err := requireTask(ctx, c, l.filter.TaskType); err != nil {
		return result{}, err
	}
	if l.gone {
		servers, err := c.Servers().Gone(ctx, l.filter, l.limit)
		return tableResult(servers, goneServerColumns), err
	}
	servers, err := c.Servers().List(ctx, l.filter)
	return tableResult(servers, serverColumns), err
}

var serverColumns = []column[ops.ServerRecord]{
	{title: "SERVER", text: func(s ops.ServerRecord) string { return s.UUID }, uuid: true},
	{title: "TASK", text: func(s ops.ServerRecord) string { return s.TaskType }},
	{title: "STATE", text: ops.ServerRecord.DisplayState, color: byMeaning[ops.ServerRecord]},
	{
		title: "HEARTBEAT", text: func(s ops.ServerRecord) string { return ageText(&s.HeartbeatAge) }, right: true,
		dropRank: 1,
	},
	{title: "QUEUES", text: func(s ops.ServerRecord) string { return number(s.Queues) }, right: true},
	{title: "REQUESTED", text: func(s ops.ServerRecord) string { return number(s.Requested) }, right: true, dropRank: 6},
	{title: "AWAITED", text: func(s ops.ServerRecord) string { return number(s.Requesting) }, right: true, dropRank: 6},
	{
		title: "HUNG", text: func(s ops.ServerRecord) string { return number(int64(len(s.HungQueues))) }, right: true,
		dropRank: 6,
	},
	{title: "WEIGHT", text: func(s ops.ServerRecord) string { return fmt.Sprint(s.Weight) }, right: true, dropRank: 6},
	{title: "CALLS", text: callsText, right: true, dropRank: 6},
	{title: "IN FLIGHT", text: func(s ops.ServerRecord) string { return number(s.InFlight) }, right: true, dropRank: 2},
	{
		title: "OLDEST", text: func(s ops.ServerRecord) string { return ageText(s.OldestInFlightAge) }, right: true,
		dropRank: 3,
	},
	{title: "DONE", text: func(s ops.ServerRecord) string { return number(s.SuccessCount) }, right: true, dropRank: 5},
	{title: "FAILED", text: func(s ops.ServerRecord) string { return number(s.FailureCount) }, right: true, dropRank: 4},
	{title: "VERSION", text: func(s ops.ServerRecord) string { return s.LibraryVersion }, dropRank: 7},
	{title: "LAST ERROR", text: lastErrorText, truncate: true},
}

// callsText is the server's share of max_in_flight, and what it is to become.
func callsText(s ops.ServerRecord) string {
	text := func(n *int64) string {
		if n == nil {
			return "any"
		}
		return number(*n)
	}
	switch granted, target := text(s.MaxInFlight), text(s.MaxInFlightTarget); {
	case s.MaxInFlight == nil && s.MaxInFlightTarget == nil:
		return ""
	case granted == target:
		return granted
	default:
		return granted + " to " + target
	}
}

// lastErrorText includes the error's age, as it may be over for a long time.
func lastErrorText(s ops.ServerRecord) string {
	if s.LastErrorAge == nil {
		return oneLine(s.LastError)
	}
	return ageText(s.LastErrorAge) + " ago: " + oneLine(s.LastError)
}

var goneServerColumns = []column[ops.GoneServerRecord]{
	{title: "LEFT", text: func(s ops.GoneServerRecord) string { return timeText(s.LeftTime) }},
	{title: "SERVER", text: func(s ops.GoneServerRecord) string { return s.UUID }, uuid: true},
	{title: "TASK", text: func(s ops.GoneServerRecord) string { return s.TaskType }},
	{
		title: "REASON", text: func(s ops.GoneServerRecord) string { return s.Reason },
		color: byMeaning[ops.GoneServerRecord],
	},
	{title: "DONE", text: func(s ops.GoneServerRecord) string { return number(s.SuccessCount) }, right: true, dropRank: 1},
	{
		title: "FAILED", text: func(s ops.GoneServerRecord) string { return number(s.FailureCount) }, right: true,
		dropRank: 1,
	},
	{
		title: "LAST ERROR", text: func(s ops.GoneServerRecord) string { return oneLine(s.LastError) }, dropRank: 2,
		truncate: true,
	},
}
