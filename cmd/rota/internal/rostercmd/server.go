package rostercmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/verbcmd"
	"github.com/dutyrota/rota/ops"
)

// serverList is the command's flags.
type serverList struct {
	cli.Output
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
		Args:              cli.Arguments("[TASK]"),
		ValidArgsFunction: cli.Complete(cli.ListTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			l.filter.TaskType = cli.FirstArg(args)
			return cli.Show(cmd, l.Output, l.query)
		},
	}
	cli.AddRosterFlags(cmd)
	cli.AddWatchFlags(cmd, &l.Output)
	cmd.Flags().StringVar(&l.filter.Host, "host", "", "only servers of this host")
	cli.CompleteFlag(cmd, "host", cli.ListHosts)
	cmd.Flags().BoolVar(&l.gone, "gone", false, "list the servers that have left or expired instead")
	cli.AddLimit(cmd, &l.limit, "with --gone: list at most this many")
	return cmd
}

func (l *serverList) query(ctx context.Context, c *ops.Client) (cli.Result, error) {
	if err := cli.RequireTask(ctx, c, l.filter.TaskType); err != nil {
		return cli.Result{}, err
	}
	if l.gone {
		servers, err := c.Servers().Gone(ctx, l.filter, l.limit)
		return cli.TableResult(servers, goneServerColumns), err
	}
	servers, err := c.Servers().List(ctx, l.filter)
	return cli.TableResult(servers, serverColumns), err
}

var serverColumns = []cli.Column[ops.ServerRecord]{
	{Title: "SERVER", Text: func(s ops.ServerRecord) string { return s.UUID }, UUID: true},
	{Title: "TASK", Text: func(s ops.ServerRecord) string { return s.TaskType }},
	{Title: "STATE", Text: ops.ServerRecord.DisplayState, Color: cli.ByMeaning[ops.ServerRecord]},
	{
		Title: "HEARTBEAT", Text: func(s ops.ServerRecord) string { return cli.AgeText(&s.HeartbeatAge) }, Right: true,
		DropRank: 1,
	},
	{Title: "QUEUES", Text: func(s ops.ServerRecord) string { return cli.Number(s.Queues) }, Right: true},
	{
		Title: "REQUESTED", Text: func(s ops.ServerRecord) string { return cli.Number(s.Requested) },
		Right: true, DropRank: 6,
	},
	{
		Title: "AWAITED", Text: func(s ops.ServerRecord) string { return cli.Number(s.Requesting) },
		Right: true, DropRank: 6,
	},
	{
		Title: "HUNG", Text: func(s ops.ServerRecord) string { return cli.Number(int64(len(s.HungQueues))) }, Right: true,
		DropRank: 6,
	},
	{Title: "WEIGHT", Text: func(s ops.ServerRecord) string { return fmt.Sprint(s.Weight) }, Right: true, DropRank: 6},
	{Title: "CALLS", Text: callsText, Right: true, DropRank: 6},
	{
		Title: "IN FLIGHT", Text: func(s ops.ServerRecord) string { return cli.Number(s.InFlight) },
		Right: true, DropRank: 2,
	},
	{
		Title: "OLDEST", Text: func(s ops.ServerRecord) string { return cli.AgeText(s.OldestInFlightAge) }, Right: true,
		DropRank: 3,
	},
	{Title: "DONE", Text: func(s ops.ServerRecord) string { return cli.Number(s.SuccessCount) }, Right: true, DropRank: 5},
	{
		Title: "FAILED", Text: func(s ops.ServerRecord) string { return cli.Number(s.FailureCount) },
		Right: true, DropRank: 4,
	},
	{Title: "VERSION", Text: func(s ops.ServerRecord) string { return s.LibraryVersion }, DropRank: 7},
	{Title: "LAST ERROR", Text: lastErrorText, Truncate: true},
}

// callsText is the server's share of max_in_flight, and what it is to become.
func callsText(s ops.ServerRecord) string {
	text := func(n *int64) string {
		if n == nil {
			return "any"
		}
		return cli.Number(*n)
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
		return cli.OneLine(s.LastError)
	}
	return cli.AgeText(s.LastErrorAge) + " ago: " + cli.OneLine(s.LastError)
}

var goneServerColumns = []cli.Column[ops.GoneServerRecord]{
	{Title: "LEFT", Text: func(s ops.GoneServerRecord) string { return cli.TimeText(s.LeftTime) }},
	{Title: "SERVER", Text: func(s ops.GoneServerRecord) string { return s.UUID }, UUID: true},
	{Title: "TASK", Text: func(s ops.GoneServerRecord) string { return s.TaskType }},
	{
		Title: "REASON", Text: func(s ops.GoneServerRecord) string { return s.Reason },
		Color: cli.ByMeaning[ops.GoneServerRecord],
	},
	{
		Title: "DONE", Text: func(s ops.GoneServerRecord) string { return cli.Number(s.SuccessCount) },
		Right: true, DropRank: 1,
	},
	{
		Title: "FAILED", Text: func(s ops.GoneServerRecord) string { return cli.Number(s.FailureCount) }, Right: true,
		DropRank: 1,
	},
	{
		Title: "LAST ERROR", Text: func(s ops.GoneServerRecord) string { return cli.OneLine(s.LastError) }, DropRank: 2,
		Truncate: true,
	},
}

func NewServerCommand() *cobra.Command {
	cmd := cli.Group(&cobra.Command{
		Use:   "server",
		Short: "List servers; pause, drain or resume a server",
		Long: `List servers; pause, drain or resume a server.

A server is the registration of one process for one task type. SERVER is its
uuid; host:pid, for all servers of a process; or a host, for all its servers.`,
	})
	cmd.AddCommand(newServerListCommand())
	verbcmd.AddVerbs(cmd, "server pause", "server resume", "server drain", "server weight")
	return cmd
}
