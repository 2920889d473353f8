package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

// change changes what the command's argument names. subject is how the command
// prints it.
type change func(ctx context.Context, c *center.Center, name string) (subject string, err error)

// changeCommand completes a command that changes what its one argument names,
// and prints the subject and what was done.
func changeCommand(cmd *cobra.Command, names lister, change change, done string) *cobra.Command {
	_, argument, _ := strings.Cut(cmd.Use, " ")
	cmd.Args = arguments(argument)
	cmd.ValidArgsFunction = complete(names)
	var o output
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
			subject, err := change(ctx, c, args[0])
			if err != nil {
				return err
			}
			return o.done(cmd, subject, done)
		})
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o)
	return cmd
}
