package runcmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/verbcmd"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
)

// newTriggerFireCommand makes the command whose exit code is 1 if the run that the trigger has made is SKIPPED.
func newTriggerFireCommand() *cobra.Command {
	v := verbcmd.New("trigger fire")
	v.After = func(ctx context.Context, c *ops.Client, done []verbs.Done) error {
		r, err := c.Runs().Get(ctx, done[0].ID)
		if err == nil && r.State == runs.Skipped {
			err = endError(r.Run)
		}
		return err
	}
	return v.Command()
}

func newTriggerListCommand() *cobra.Command {
	return cli.Lists(&cobra.Command{
		Use:   "list [TASK]",
		Short: "List the triggers and when they are due",
		Long: `List the triggers and when they are due.

The status of a trigger:
  ACTIVE  it fires when it is due
  PAUSED  it does not fire, and misses its slots
  DONE    it is never due again
  ERROR   its row is invalid; REASON says why

MISSED counts the slots that never fire, because no worker was running or the
trigger was paused. SKIPPED counts the slots since the last one that fired,
whose runs were skipped because earlier runs of the trigger were open.`,
		Example: `  rota trigger list
  rota trigger list reindex -o json | jq '.[].next_fire_at'`,
	}, cli.Names("run task"), func(ctx context.Context, c *ops.Client, taskType string) (cli.Result, error) {
		list, err := c.Triggers().List(ctx, runs.TriggerFilter{Target: taskType})
		return cli.TableResult(list, triggerRow), err
	})
}

func triggerRow(t runs.TriggerRecord) cli.Row {
	return cli.Row{
		cli.Text("TRIGGER", t.Name),
		cli.Text("TASK", t.Target),
		cli.State("STATUS", t.Status),
		cli.Long("SCHEDULE", verbs.ScheduleText(t.Trigger)).Drop(4),
		cli.Text("NEXT", nextFire(t)).Right(),
		cli.Relative("PREVIOUS", t.Now, t.PrevFireAt).Drop(1),
		cli.Figure("FIRED", t.Fires).Drop(3),
		cli.Figure("MISSED", t.Missed).Drop(2),
		cli.Figure("SKIPPED", t.Skipped).Drop(2),
		cli.Text("OVERLAP", t.Overlap).Drop(6),
		cli.Text("MISFIRE", t.Misfire).Drop(6),
		cli.Long("REASON", t.Message).Drop(5),
	}
}

// nextFire returns "-" for a trigger that does not fire.
func nextFire(t runs.TriggerRecord) string {
	if t.Status != runs.TriggerActive || t.NextFireAt.IsZero() {
		return "-"
	}
	if !t.NextFireAt.After(t.Now) {
		return "now"
	}
	return human.Relative(t.Now, t.NextFireAt)
}
