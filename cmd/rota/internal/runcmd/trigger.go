package runcmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/verbcmd"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// newTriggerFireCommand makes the command whose exit code is 1 if the run that the trigger has made is SKIPPED.
func newTriggerFireCommand() *cobra.Command {
	v := &verbcmd.VerbCommand{Call: ops.Find("trigger fire").Call()}
	v.After = func(ctx context.Context, c *ops.Client, done []ops.Done) error {
		r, err := c.Runs().Get(ctx, done[0].ID)
		if err == nil && r.State == runs.Skipped {
			err = endError(r.Run)
		}
		return err
	}
	return v.Command()
}

func newTriggerListCommand() *cobra.Command {
	return cli.ListCommand(&cobra.Command{
		Use:   "list [TASK]",
		Short: "List the triggers and when they are due",
		Long: `List the triggers and when they are due.

The status of a trigger:
  ACTIVE  it fires when it is due
  PAUSED  it does not fire, and misses its slots
  DONE    it is never due again
  ERROR   its row is invalid; REASON says why

MISSED counts the slots that never fire, because no server was running or the
trigger was paused. SKIPPED counts the slots since the last one that fired,
whose runs were skipped because other runs were open.`,
		Example: `  rota trigger list
  rota trigger list reindex -o json | jq '.[].next_fire_at'`,
	}, cli.ListRunTasks, triggerColumns, func(ctx context.Context, c *ops.Client, taskType string) (
		[]runs.TriggerRecord, error,
	) {
		return c.Triggers().List(ctx, runs.TriggerFilter{Target: taskType})
	})
}

var triggerColumns = []cli.Column[runs.TriggerRecord]{
	{Title: "TRIGGER", Text: func(t runs.TriggerRecord) string { return t.Name }},
	{Title: "TASK", Text: func(t runs.TriggerRecord) string { return t.Target }},
	{
		Title: "STATUS", Text: func(t runs.TriggerRecord) string { return t.Status },
		Color: cli.ByMeaning[runs.TriggerRecord],
	},
	{
		Title: "SCHEDULE", Text: func(t runs.TriggerRecord) string { return cli.ScheduleText(t.Trigger) }, DropRank: 4,
		Truncate: true,
	},
	{Title: "NEXT", Text: nextFire, Right: true},
	{
		Title: "PREVIOUS", Text: func(t runs.TriggerRecord) string { return cli.RelativeTime(t.Now, t.PrevFireAt) },
		Right:    true,
		DropRank: 1,
	},
	{Title: "FIRED", Text: func(t runs.TriggerRecord) string { return cli.Number(t.Fires) }, Right: true, DropRank: 3},
	{Title: "MISSED", Text: func(t runs.TriggerRecord) string { return cli.Number(t.Missed) }, Right: true, DropRank: 2},
	{Title: "SKIPPED", Text: func(t runs.TriggerRecord) string { return cli.Number(t.Skipped) }, Right: true, DropRank: 2},
	{Title: "OVERLAP", Text: func(t runs.TriggerRecord) string { return t.Overlap }, DropRank: 6},
	{Title: "MISFIRE", Text: func(t runs.TriggerRecord) string { return t.Misfire }, DropRank: 6},
	{
		Title: "REASON", Text: func(t runs.TriggerRecord) string { return cli.OneLine(t.Message) },
		DropRank: 5, Truncate: true,
	},
}

// nextFire returns "-" for a trigger that does not fire.
func nextFire(t runs.TriggerRecord) string {
	if t.Status != runs.TriggerActive || t.NextFireAt.IsZero() {
		return "-"
	}
	if !t.NextFireAt.After(t.Now) {
		return "now"
	}
	return cli.RelativeTime(t.Now, t.NextFireAt)
}

func NewTriggerCommand() *cobra.Command {
	cmd := cli.Group(&cobra.Command{
		Use:   "trigger",
		Short: "Schedule runs; list, fire, pause or delete triggers",
	})
	cmd.AddCommand(newTriggerListCommand(), newTriggerFireCommand())
	verbcmd.AddVerbs(cmd, "trigger apply", "trigger pause", "trigger resume", "trigger delete")
	return cmd
}
