package rostercmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
)

// NewWorkerListCommand returns the command rota worker list.
func NewWorkerListCommand() *cobra.Command {
	var f ops.ServerFilter
	var gone bool
	var limit int
	cmd := cli.Lists(&cobra.Command{
		Use:   "list [TASK]",
		Short: "List the workers and what they do",
		Long: `List the workers and what they do.

The state of a worker:
  SERVING   it owns queues
  FAILING   it owns queues, and its calls do nothing but fail
  STANDBY   it owns none: there are more workers than queues, or than
            max_servers or max_in_flight allow, or its weight is 0
  PAUSED    an operator has paused it
  DRAINING  it hands its queues over, and gets none
  LEAVING   it stops, gets none, and reserves its queues for its return
  OVERDUE   it has sent no heartbeat for judge_dead_interval

REQUESTED counts the queues of a worker that other workers request. AWAITED
counts the queues that it requests from other workers. HUNG counts the queues
that it does not get, because calls of its process's former session are still
in flight for them. WEIGHT is its part of the queues, in proportion to the
weights of the others. CALLS is the number of calls of Execute that it may have
in flight, its share of max_in_flight. "3 to 2" means that it lowers this number
when calls have ended, or waits until other workers have lowered theirs. IN
FLIGHT, OLDEST, DONE and FAILED are up to ten seconds old.`,
		Example: `  rota worker list --watch
  rota worker list settle --host web1
  rota worker list --gone                workers that have left or expired`,
	}, cli.Names("task"), func(ctx context.Context, c *ops.Client, taskType string) (cli.Result, error) {
		f.TaskType = taskType
		if gone {
			servers, err := c.Servers().Gone(ctx, f, limit)
			return cli.TableResult(servers, goneServerRow), err
		}
		servers, err := c.Servers().List(ctx, f)
		return cli.TableResult(servers, serverRow), err
	})
	cmd.Flags().StringVar(&f.Host, "host", "", "only workers of this host")
	cli.CompleteFlag(cmd, "host", cli.Names("host"))
	cmd.Flags().BoolVar(&gone, "gone", false, "list the workers that have left or expired instead")
	cli.AddLimit(cmd, &limit, "with --gone: list at most this many")
	return cmd
}

func serverRow(s ops.ServerRecord) cli.Row {
	return cli.Row{
		cli.UUID("WORKER", s.UUID),
		cli.Text("TASK", s.TaskType),
		cli.State("STATE", s.DisplayState()),
		cli.Age("HEARTBEAT", &s.HeartbeatAge).Drop(1),
		cli.Figure("QUEUES", s.Queues),
		cli.Figure("REQUESTED", s.Requested).Drop(6),
		cli.Figure("AWAITED", s.Requesting).Drop(6),
		cli.Figure("HUNG", len(s.HungQueues)).Drop(6),
		cli.Figure("WEIGHT", s.Weight).Drop(6),
		cli.Text("CALLS", callsText(s)).Right().Drop(6),
		cli.Figure("IN FLIGHT", s.InFlight).Drop(2),
		cli.Age("OLDEST", s.OldestInFlightAge).Drop(3),
		cli.Figure("DONE", s.SuccessCount).Drop(5),
		cli.Figure("FAILED", s.FailureCount).Drop(4),
		cli.Text("VERSION", s.LibraryVersion).Drop(7),
		cli.Long("LAST ERROR", LastErrorText(s)),
	}
}

// callsText is the server's share of max_in_flight, and what it is to become.
func callsText(s ops.ServerRecord) string {
	text := func(n *int64) string {
		if n == nil {
			return "any"
		}
		return fmt.Sprint(*n)
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

// LastErrorText returns the last error of a server with its age, as it may be over for a long time.
func LastErrorText(s ops.ServerRecord) string {
	if s.LastErrorAge == nil {
		return cli.OneLine(s.LastError)
	}
	return human.Age(*s.LastErrorAge) + " ago: " + cli.OneLine(s.LastError)
}

func goneServerRow(s ops.GoneServerRecord) cli.Row {
	return cli.Row{
		cli.Time("LEFT", s.LeftTime),
		cli.UUID("WORKER", s.UUID),
		cli.Text("TASK", s.TaskType),
		cli.State("REASON", s.Reason),
		cli.Figure("DONE", s.SuccessCount).Drop(1),
		cli.Figure("FAILED", s.FailureCount).Drop(1),
		cli.Long("LAST ERROR", s.LastError).Drop(2),
	}
}
