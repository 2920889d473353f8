package rostercmd

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/verbcmd"
	"github.com/dutyrota/rota/ops"
)

func newQueueListCommand() *cobra.Command {
	var f ops.QueueFilter
	var server string
	status := cli.Choice{Values: []string{"HELD", "MOVING", "OVERDUE", "ORPHAN", "RESERVED", "UNASSIGNED"}}
	cmd := cli.ListCommand(&cobra.Command{
		Use:   "list [TASK]",
		Short: "List the queues, their owners and requesters",
		Long: `List the queues, their owners and requesters.

The status of a queue:
  HELD        a live server owns it, and no other server requests it
  MOVING      another server requests it, and the owner drains it
  OVERDUE     its owner has sent no heartbeat for judge_dead_interval
  ORPHAN      its owner has no row any more
  RESERVED    it waits for its worker, which has left and returns soon
  UNASSIGNED  it has no owner: no server meets the rule beside it
  REMOVING    it is deleted as soon as its owner has drained it

SERVER is a uuid, a process (host:pid) or a host.

BACKLOG is the number of items that are left as the owner last counted them,
their trend, and how long the queue needs at its present rate. Dealers that do
not count have none.

HUNG ON names the servers that do not get the queue, because calls of their
processes' former sessions are still in flight for it.`,
		Example: `  rota queue list settle --watch
  rota queue list --host web1            what moves if this host stops
  rota queue list --status MOVING -o csv`,
	}, cli.ListTasks, queueColumns, func(ctx context.Context, c *ops.Client, taskType string) ([]ops.QueueRecord, error) {
		f.TaskType, f.Status = taskType, status.Value
		return queuesOf(ctx, c, f, server)
	})
	cli.AddChoice(cmd, &status, "status", "", "only queues in this state")
	cmd.Flags().StringVar(&server, "server", "", "only queues that this `SERVER` owns or requests")
	cmd.Flags().StringVar(&f.Host, "host", "", "only queues that servers of this host own or request")
	cli.CompleteFlag(cmd, "server", cli.ListServers)
	cli.CompleteFlag(cmd, "host", cli.ListHosts)
	return cmd
}

// queuesOf lists the queues of the servers with the name. Each refresh of a watch
// finds them again, since a new process can have the same host:pid.
func queuesOf(ctx context.Context, c *ops.Client, f ops.QueueFilter, server string) ([]ops.QueueRecord, error) {
	if server != "" {
		servers, err := c.Servers().Matching(ctx, server)
		if err != nil {
			return nil, err
		}
		f.Servers = nil
		for _, s := range servers {
			f.Servers = append(f.Servers, s.UUID)
		}
	}
	return c.Queues().List(ctx, f)
}

var queueColumns = []cli.Column[ops.QueueRecord]{
	{Title: "TASK", Text: func(q ops.QueueRecord) string { return q.TaskType }, DropRank: 2},
	{Title: "QUEUE", Text: func(q ops.QueueRecord) string { return q.QueueID }},
	{Title: "STATUS", Text: queueStatusText, Color: queueStatusColor},
	{Title: "OWNER", Text: func(q ops.QueueRecord) string { return cli.ValueOrDash(q.CurServer) }, UUID: true},
	{Title: "HEARTBEAT", Text: func(q ops.QueueRecord) string { return cli.AgeText(q.HeartbeatAge) }, Right: true},
	{Title: "OWNED", Text: func(q ops.QueueRecord) string { return cli.AgeText(q.OwnedFor) }, Right: true, DropRank: 3},
	{Title: "REQUESTER", Text: func(q ops.QueueRecord) string { return cli.ValueOrDash(q.ReqServer) }, UUID: true},
	{
		Title: "REQUESTED", Text: func(q ops.QueueRecord) string { return cli.AgeText(q.Requested) },
		Right: true, DropRank: 1,
	},
	{Title: "BACKLOG", Text: queueBacklogText, DropRank: 7},
	{Title: "HUNG ON", Text: hungOnText, DropRank: 6},
	{Title: "PIN", Text: func(q ops.QueueRecord) string { return cmp.Or(q.Pin, "-") }, DropRank: 6},
	{Title: "EPOCH", Text: func(q ops.QueueRecord) string { return cli.Number(q.Epoch) }, Right: true, DropRank: 4},
	{
		Title: "CURSOR", Text: func(q ops.QueueRecord) string { return cli.OneLine(q.CursorValue) },
		DropRank: 5, Truncate: true,
	},
}

// queueStatusText returns the state of the queue, with the rule that no server meets if it has no owner.
func queueStatusText(q ops.QueueRecord) string {
	if q.WaitsFor != nil && q.DisplayState() == "UNASSIGNED" {
		return "UNASSIGNED (" + *q.WaitsFor + ")"
	}
	return q.DisplayState()
}

// queueStatusColor colours the text by the state in it.
func queueStatusColor(q ops.QueueRecord, cell string) string {
	return strings.Replace(cell, q.DisplayState(), cli.ByMeaning(q, q.DisplayState()), 1)
}

// hungOnText returns the short names of the servers that do not get the queue because of calls that hang.
func hungOnText(q ops.QueueRecord) string {
	var names []string
	for _, uuid := range q.HungOn {
		names = append(names, ops.ServerName(uuid))
	}
	return cmp.Or(strings.Join(names, " "), "-")
}

func NewQueueCommand() *cobra.Command {
	cmd := cli.Group(&cobra.Command{
		Use:   "queue",
		Short: "List queues and their owners; add or remove named queues",
	})
	cmd.AddCommand(newQueueListCommand())
	verbcmd.AddVerbs(cmd, "queue add", "queue remove", "queue pin", "queue unpin")
	return cmd
}
