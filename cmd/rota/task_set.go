package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
)

func newTaskSetCommand() *cobra.Command {
	a := &taskChange{}
	cmd := &cobra.Command{
		Use:   "set TASK SETTING=VALUE...",
		Short: "Change single settings of a task type",
		Long: `Change single settings of a task type. Values are written as in rota.yaml; an
empty value sets the default. The command shows each difference before it
writes, and does what rota task apply does with it.`,
		Example: `  rota task set settle fetch_number=100 rate_per_second=50
  rota task set settle max_in_flight= --dry-run
  rota task set regions 'queues=[north, south, west]'
  rota task set report 'cron=0 0 2 * * ?'`,
		Args:              arguments("TASK", "SETTING=VALUE", "[SETTING=VALUE...]"),
		ValidArgsFunction: complete(listTasks, listSettings),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, given, err := config.Assign(args[1:])
			if err != nil {
				return usageError{err}
			}
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				if _, err := c.Tasks().Settings(ctx, args[0]); err != nil {
					return err
				}
				d, err := c.Tasks().CompareGiven(ctx, args[0], settings, given)
				if err != nil {
					return err
				}
				d.Left = nil // it names what changes
				return a.apply(ctx, c, []center.SettingsDiff{d})
			})
		},
	}
	addRosterFlags(cmd)
	a.addFlags(cmd)
	return cmd
}
