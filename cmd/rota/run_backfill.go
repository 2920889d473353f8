package main

import (
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// newRunBackfillCommand makes the command of the verb, which has subcommands, too. Without a task type it shows its
// help, like other commands with subcommands.
func newRunBackfillCommand() *cobra.Command {
	cmd := (&verbCommand{call: ops.Find("run backfill").Call()}).command()
	start := cmd.RunE
	cmd.Args = arguments("[TASK]")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return start(cmd, args)
	}
	cmd.AddCommand(newBackfillListCommand(), newBackfillShowCommand())
	addVerbs(cmd, "run backfill pause", "run backfill resume", "run backfill cancel")
	return cmd
}

var plannedColumns = []column[runs.PlannedSlot]{
	{title: "SLOT", text: func(s runs.PlannedSlot) string { return timeText(s.ScheduledAt) }},
	{title: "ACTION", text: func(s runs.PlannedSlot) string { return s.Action }},
	{title: "STATE", text: func(s runs.PlannedSlot) string { return orDash(s.State) }, color: byMeaning[runs.PlannedSlot]},
	{title: "RUN", text: func(s runs.PlannedSlot) string { return orDash(s.RunID) }, dropRank: 1},
	{title: "REASON", text: func(s runs.PlannedSlot) string { return oneLine(s.Message) }, dropRank: 2, truncate: true},
}
