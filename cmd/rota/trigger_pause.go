package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newTriggerPauseCommand() *cobra.Command {
	return triggerPauseCommand(&cobra.Command{
		Use:   "pause NAME",
		Short: "Pause a trigger; it misses its slots",
		Long: `Pause a trigger. When it is resumed, its misfire says which of the missed slots
fire. Open runs continue.`,
		Example: "  rota trigger pause nightly",
	}, true, "paused; it misses its slots")
}

func newTriggerResumeCommand() *cobra.Command {
	return triggerPauseCommand(&cobra.Command{
		Use:   "resume NAME",
		Short: "Resume a paused trigger",
		Long: `Resume a paused trigger, or a trigger in ERROR after its row was corrected. Its
misfire says which of the missed slots fire.`,
		Example: "  rota trigger resume nightly",
	}, false, "resumed")
}

func triggerPauseCommand(cmd *cobra.Command, pause bool, done string) *cobra.Command {
	cmd.Args = arguments("NAME")
	cmd.ValidArgsFunction = complete(listTriggers)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
			change := c.Triggers().Resume
			if pause {
				change = c.Triggers().Pause
			}
			if err := change(ctx, args[0], actor()); err != nil {
				return err
			}
			cmd.Printf("%s$%s: %s\n", args[0], c.OwnSign(), done)
			return nil
		})
	}
	addRosterFlags(cmd)
	return cmd
}
