package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/records"
)

func newTriggerFireCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "fire NAME",
		Short: "Make a run of a trigger now and print its id",
		Long: `Make a run of a trigger now, whatever its slots and its status, and print its
id. The slots do not change. The trigger's overlap applies: if another run is
open and the new one is SKIPPED, the exit code is 1.`,
		Example: `  rota trigger fire nightly
  rota run wait $(rota trigger fire nightly)`,
		Args:              arguments("NAME"),
		ValidArgsFunction: complete(listTriggers),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				return fireTrigger(ctx, cmd, o, c, args[0])
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o)
	return cmd
}

func fireTrigger(ctx context.Context, cmd *cobra.Command, o output, c *center.Center, name string) error {
	id, err := c.Triggers().Fire(ctx, name, actor())
	if err != nil {
		return err
	}
	if err := o.reply(cmd, id, records.Object{records.M("run_id", id)}); err != nil {
		return err
	}
	r, err := c.Runs().Get(ctx, id)
	if err == nil && r.State == center.RunSkipped {
		err = endError(r.Run)
	}
	return err
}
