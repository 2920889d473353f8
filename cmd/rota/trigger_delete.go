package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newTriggerDeleteCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a trigger; its runs stay",
		Long: `Delete a trigger. Its runs stay. A later trigger of the same name fires none of
its slots again.`,
		Example:           "  rota trigger delete nightly\n  rota trigger delete nightly --yes",
		Args:              arguments("NAME"),
		ValidArgsFunction: complete(listTriggers),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				return deleteTrigger(ctx, cmd, o, c, args[0])
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o)
	addYes(cmd)
	return cmd
}

// deleteTrigger does not ask about an unknown trigger: Triggers.Delete refuses it.
func deleteTrigger(ctx context.Context, cmd *cobra.Command, o output, c *center.Center, name string) error {
	triggers, err := c.Triggers().List(ctx, center.TriggerFilter{Name: name})
	if err == nil && len(triggers) > 0 {
		err = confirm(cmd, fmt.Sprintf("delete trigger %s$%s, which starts runs of %s", name, c.OwnSign(), triggers[0].Target))
	}
	if err != nil {
		return err
	}
	if err := c.Triggers().Delete(ctx, name, actor()); err != nil {
		return err
	}
	return o.done(cmd, name+"$"+c.OwnSign(), "deleted")
}
