package rostercmd

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/ops"
)

func newQueueListCommand() *cobra.Command {
	var f ops.QueueFilter
	var worker string
	status := cli.Choice{Values: []string{"HELD", "MOVING", "OVERDUE", "ORPHAN", "RESERVED", "UNASSIGNED"}}
	cmd := cli.Lists(&cobra.Command{
		Use:   "list [TASK]",
		Short: "List the queues, their owners and requesters",
		Long: `List the queues, their owners and requesters.

The status of a queue:
  HELD        a live worker owns it, and no other worker requests it
  MOVING      another worker requests it, and the owner drains it
  OVERDUE     its owner has sent no heartbeat for judge_dead_interval
  ORPHAN      its owner has no row any more
  RESERVED    it waits for its worker, which has left and returns soon
  UNASSIGNED  it has no owner: no worker meets the rule beside it
  REMOVING    it is deleted as soon as its owner has drained it
  RESIZING    it is split or merged as soon as its owner has drained it

TOTAL divides the items of a numbered queue: it has those with
mod(id, total) = queue.

WORKER is a uuid, a process (host:pid) or a host.

BACKLOG is the number of items that are left as the owner last counted them,
their trend, and how long the queue needs at its present rate. Dealers that do
not count have none.

HUNG ON names the workers that do not get the queue, because calls of their
processes' former sessions are still in flight for it.`,
		Example: `  rota queue list settle --watch
  rota queue list --host web1            what moves if this host stops
  rota queue list --status MOVING -o csv`,
	}, cli.Names("task"), func(ctx context.Context, c *ops.Client, taskType string) (cli.Result, error) {
		f.TaskType, f.Status = taskType, status.Value
		queues, err := queuesOf(ctx, c, f, worker)
		return cli.TableResult(queues, QueueRow), err
	})
	cli.AddChoice(cmd, &status, "status", "", "only queues in this state")
	cmd.Flags().StringVar(&worker, "worker", "", "only queues that this `WORKER` owns or requests")
	cmd.Flags().StringVar(&f.Host, "host", "", "only queues that workers of this host own or request")
	cli.CompleteFlag(cmd, "worker", cli.Names("worker"))
	cli.CompleteFlag(cmd, "host", cli.Names("host"))
	return cmd
}

// queuesOf lists the queues of the servers with the name. Each refresh of a watch
// finds them again, since a new process can have the same host:pid.
func queuesOf(ctx context.Context, c *ops.Client, f ops.QueueFilter, worker string) ([]ops.QueueRecord, error) {
	if worker != "" {
		servers, err := c.Servers().Matching(ctx, worker)
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

// QueueRow is a queue with its owner.
func QueueRow(q ops.QueueRecord) cli.Row {
	return cli.Row{
		cli.Text("TASK", q.TaskType).DropSame(2),
		cli.Name("QUEUE", q.QueueID),
		cli.Text("STATUS", queueStatusText(q)).Colored(q.DisplayState()),
		cli.UUID("OWNER", q.CurServer),
		cli.Age("HEARTBEAT", q.HeartbeatAge),
		cli.Age("OWNED", q.OwnedFor).Drop(3),
		cli.UUID("REQUESTER", q.ReqServer),
		cli.Age("REQUESTED", q.Requested).Drop(2),
		cli.Text("BACKLOG", queueBacklogText(q)).Drop(7),
		cli.Text("HUNG ON", hungOnText(q)).Drop(6),
		cli.Text("PIN", cmp.Or(q.Pin, "-")).Drop(6),
		cli.Text("TOTAL", totalText(q)).Drop(5),
		cli.Figure("EPOCH", q.Epoch).Drop(4),
		cli.Long("CURSOR", q.CursorValue).Drop(5),
	}
}

// totalText returns the total of a numbered queue, with the one that it is to get.
func totalText(q ops.QueueRecord) string {
	switch {
	case q.QueueTotal == nil:
		return "-"
	case q.Resizing != nil:
		return fmt.Sprintf("%d>%d", *q.QueueTotal, *q.Resizing)
	}
	return fmt.Sprint(*q.QueueTotal)
}

// queueStatusText returns the state of the queue, with the rule that no server meets if it has no owner.
func queueStatusText(q ops.QueueRecord) string {
	if q.WaitsFor != nil && q.DisplayState() == "UNASSIGNED" {
		return "UNASSIGNED (" + *q.WaitsFor + ")"
	}
	return q.DisplayState()
}

// hungOnText returns the short names of the servers that do not get the queue because of calls that hang.
func hungOnText(q ops.QueueRecord) string {
	var names []string
	for _, uuid := range q.HungOn {
		names = append(names, ops.ServerName(uuid))
	}
	return cmp.Or(strings.Join(names, " "), "-")
}
