package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newServerPauseCommand() *cobra.Command {
	return serverPauseCommand(&cobra.Command{
		Use:   "pause SERVER",
		Short: "Pause a server: it hands its queues over to other servers",
		Long: `Pause a server. It finishes what it has in flight and hands its queues over to
other servers, until "rota server resume".`,
		Example: "  rota server pause web1:4711",
	}, true, "paused; its queues go to other servers as it finishes what it has in flight")
}

func newServerResumeCommand() *cobra.Command {
	return serverPauseCommand(&cobra.Command{
		Use:     "resume SERVER",
		Short:   "Resume a paused or drained server: it may own queues again",
		Example: "  rota server resume web1:4711",
	}, false, "resumed; it may own queues again")
}

func serverPauseCommand(cmd *cobra.Command, pause bool, done string) *cobra.Command {
	cmd.Args = arguments("SERVER")
	cmd.ValidArgsFunction = complete(listServers)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
			s, err := c.Servers().Find(ctx, args[0])
			if err != nil {
				return err
			}
			change := c.Servers().Resume
			if pause {
				change = c.Servers().Pause
			}
			if err := change(ctx, s.UUID, actor()); err != nil {
				return err
			}
			cmd.Printf("%s (%s): %s\n", s.UUID, s.TaskType, done)
			return nil
		})
	}
	addRosterFlags(cmd)
	return cmd
}
