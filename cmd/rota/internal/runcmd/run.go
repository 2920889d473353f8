// Package runcmd is the commands about runs: rota run, rota run backfill and rota trigger.
package runcmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/verbcmd"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

const runHelp = `RUN is the id of a run, or a task type, which stands for its newest run, or the
name of graphs: the newest run with that name.`

// Commands returns the commands of the package.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		verbcmd.Group(&cobra.Command{
			Use:   "run",
			Short: "Submit, list, cancel, rerun, pause, backfill and wait for runs",
			Long: `Submit, list, backfill and wait for runs; cancel, rerun, pause, resume or ack a
run.

A run sweeps all queues of a task type of mode RUN once. RUN is the id of a run,
or the name of a task type, which stands for its newest run. With --graph it
stands for all runs that dependencies connect with it.`,
		}, newRunSubmitCommand(), newRunListCommand(), newRunShowCommand(), newRunWaitCommand(), newRunBackfillCommand()),
		verbcmd.Group(&cobra.Command{
			Use:   "trigger",
			Short: "Schedule runs; list, fire, pause or delete triggers",
		}, newTriggerListCommand(), newTriggerFireCommand()),
	}
}

func newRunListCommand() *cobra.Command {
	var f runs.Filter
	var limit int
	var backfill string
	state := cli.Choice{Values: runs.States()}
	cmd := cli.Lists(&cobra.Command{
		Use:   "list [TASK]",
		Short: "List runs, the newest first",
		Long: `List runs, the newest first.

The state of a run:
  WAITING           it waits for its upstreams
  READY             it starts when no other run of its task type is RUNNING
  RUNNING           workers sweep its queues
  PAUSED            an operator has paused it before its end
  SUCCESS           all its queues are done
  FAILED            a queue has failed too often, the deadline has passed, or it
                    did not start in time
  DEPENDENT_FAILED  an upstream did not succeed
  CANCELLED         an operator cancelled it
  SKIPPED           an earlier run of its trigger was open when that was due;
                    "rota run rerun" starts it

QUEUES are the drained and all queues of the run. ITEMS with a plus sign are at
least that many: a process died, or the run was cancelled during a sweep.`,
		Example: `  rota run list reindex --watch
  rota run list --state FAILED
  rota run list --name rebuild             the runs of the graphs of that name
  rota run list --backfill 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c
  rota run list --limit 1000 -o csv`,
	}, cli.Names("run task"), func(ctx context.Context, c *ops.Client, taskType string) (cli.Result, error) {
		f.TaskType, f.State = taskType, state.Value
		if backfill != "" {
			b, err := ops.FindBackfill(ctx, c, backfill)
			if err != nil {
				return cli.Result{}, err
			}
			f.Backfill = b.ID
		}
		list, err := c.Runs().List(ctx, f, limit)
		return cli.TableResult(list, RunRow), err
	})
	cli.AddChoice(cmd, &state, "state", "", "only runs in this state")
	cmd.Flags().StringVar(&backfill, "backfill", "", "only the runs of this backfill, and of their dependants")
	cmd.Flags().StringVar(&f.Name, "name", "", "only the runs of the graphs with this name")
	cli.CompleteFlag(cmd, "backfill", cli.Names("backfill"))
	cli.AddLimit(cmd, &limit, "list at most this many")
	return cmd
}

// RunRow is a run.
func RunRow(r runs.Record) cli.Row {
	return cli.Row{
		cli.Text("RUN", r.ID),
		cli.Text("TASK", r.TaskType),
		cli.State("STATE", r.DisplayState()),
		cli.Text("QUEUES", finishedText(r)).Right(),
		cli.Text("ITEMS", itemsText(r.ItemsDone, r.ItemsAtLeast)).Right().Drop(4),
		cli.Bad("FAILED", r.ItemsFailed).Drop(3),
		cli.Relative("DUE", r.Now, r.ScheduledAt).Drop(2),
		cli.Text("DURATION", runDuration(r)).Right().By(runSeconds(r)).Drop(1),
		cli.Maybe("TRIGGER", r.Trigger).Drop(5),
		cli.Long("KEY", cli.OneLine(r.Key)).Drop(6),
		cli.Maybe("NAME", r.Name).Drop(7),
		cli.Long("REASON", r.Message).Drop(8),
	}
}

// finishedText returns the number of drained queues and of all queues of a run, as 2/4. Failed and cancelled queues are
// not drained.
func finishedText(r runs.Record) string {
	if r.Queues() == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", r.QueuesDone, r.Queues())
}

// runDuration is the time from the start of a run to its end, or until now.
func runDuration(r runs.Record) string {
	if r.StartedAt.IsZero() {
		return "-"
	}
	return human.Age(runSeconds(r))
}

// runSeconds is runDuration in seconds, -1 before the start.
func runSeconds(r runs.Record) float64 {
	end := r.FinishedAt
	if end.IsZero() {
		end = r.Now
	}
	if r.StartedAt.IsZero() {
		return -1
	}
	return end.Sub(r.StartedAt).Seconds()
}

// itemsText returns a number of items, with a plus sign if it is a lower bound.
func itemsText(n int64, atLeast bool) string {
	if atLeast {
		return fmt.Sprint(n) + "+"
	}
	return fmt.Sprint(n)
}
