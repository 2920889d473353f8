package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newServerPauseCommand() *cobra.Command {
	sc := &serverChange{
		participle: "paused",
		effect:     func(f serverFuture) string { return handOver(f, "they wait for one") },
		do: func(ctx context.Context, c *center.Center, s center.ServerRecord) error {
			return c.Servers().Pause(ctx, s.UUID, actor())
		},
	}
	return sc.command(&cobra.Command{
		Use:   "pause SERVER",
		Short: "Pause a server: it hands its queues over to other servers",
		Long: `Pause a server. It finishes what it has in flight and hands its queues over to
other servers, until "rota server resume". While there is no other server, its
queues wait.`,
		Example: "  rota server pause web1:4711\n  rota server pause web1 --dry-run         all servers of a host",
	})
}

func newServerResumeCommand() *cobra.Command {
	sc := &serverChange{
		participle: "resumed",
		effect:     func(serverFuture) string { return "it may own queues again" },
		do: func(ctx context.Context, c *center.Center, s center.ServerRecord) error {
			return c.Servers().Resume(ctx, s.UUID, actor())
		},
	}
	return sc.command(&cobra.Command{
		Use:     "resume SERVER",
		Short:   "Resume a paused or drained server: it may own queues again",
		Long:    `Resume a paused or drained server. It may own queues again.`,
		Example: "  rota server resume web1:4711",
	})
}
