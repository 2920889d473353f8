package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newTriggerPauseCommand() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "pause NAME",
		Short: "Pause a trigger; it misses its slots",
		Long: `Pause a trigger. When it is resumed, its misfire says which of the missed slots
fire. Open runs continue.`,
		Example: "  rota trigger pause nightly",
	}, listTriggers, changeTrigger((*center.Triggers).Pause), "paused; it misses its slots")
}

func newTriggerResumeCommand() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "resume NAME",
		Short: "Resume a paused trigger",
		Long: `Resume a paused trigger, or a trigger in ERROR after its row was corrected. Its
misfire says which of the missed slots fire.`,
		Example: "  rota trigger resume nightly",
	}, listTriggers, changeTrigger((*center.Triggers).Resume), "resumed")
}

// changeTrigger applies a method of the bundle to a trigger of this environment.
func changeTrigger(do func(t *center.Triggers, ctx context.Context, name, actor string) error) change {
	return func(ctx context.Context, c *center.Center, name string) (string, error) {
		return name + "$" + c.OwnSign(), do(c.Triggers(), ctx, name, actor())
	}
}
