package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newServerDrainCommand() *cobra.Command {
	var force bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "drain SERVER",
		Short: "Move all queues away from a server until it is resumed",
		Long: `Move all queues away from a server. It hands over each queue as soon as nothing
of it is in flight, and owns none until "rota server resume". While there is no
other server, it continues to work.

With --force the queues move at once. When the server notices, it cancels what
it has in flight. The fence rejects its late writes in fenced transactions;
other effects, such as e-mails, cannot be undone. A queue in a fenced
transaction moves when that transaction ends. The command waits for it as long
as --wait says, and then fails and names the queues that are left.`,
		Example:           "  rota server drain web1:4711\n  rota server drain web1:4711 --force",
		Args:              arguments("SERVER"),
		ValidArgsFunction: complete(listServers),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				return drainServer(ctx, cmd, c, args[0], force, wait)
			})
		},
	}
	addRosterFlags(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "do not wait for what is in flight, except for fenced transactions")
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "with --force: how long to wait for fenced transactions in flight")
	return cmd
}

func drainServer(ctx context.Context, cmd *cobra.Command, c *center.Center, name string, force bool, wait time.Duration) error {
	s, err := c.Servers().Find(ctx, name)
	if err != nil {
		return err
	}
	var locked []string
	if force {
		locked, err = c.Servers().ForceDrain(ctx, s.UUID, wait, actor())
	} else {
		_, err = c.Servers().Drain(ctx, s.UUID, false, actor())
	}
	switch {
	case err != nil:
		return err
	case len(locked) > 0:
		return fmt.Errorf("drain server %s: after %s, a transaction of the server still locks the rows of queues %s: end the process, or its session in the database, then drain again",
			s.UUID, wait, strings.Join(locked, ", "))
	case force:
		say(cmd, "%s (%s): its %s taken away\n", s.UUID, s.TaskType, plural(s.Queues, "queue was", "queues were"))
	default:
		say(cmd, "%s (%s): its %s to other servers as it finishes what it has in flight; watch with: rota server list -w\n",
			s.UUID, s.TaskType, plural(s.Queues, "queue goes", "queues go"))
	}
	return nil
}
