package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newServerPauseCommand() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:   "pause SERVER",
		Short: "Pause a server: it hands its queues over to other servers",
		Long: `Pause a server. It finishes what it has in flight and hands its queues over to
other servers, until "rota server resume".`,
		Example: "  rota server pause web1:4711",
	}, listServers, changeServer((*center.Servers).Pause), "paused; its queues go to other servers as it finishes what it has in flight")
}

func newServerResumeCommand() *cobra.Command {
	return changeCommand(&cobra.Command{
		Use:     "resume SERVER",
		Short:   "Resume a paused or drained server: it may own queues again",
		Example: "  rota server resume web1:4711",
	}, listServers, changeServer((*center.Servers).Resume), "resumed; it may own queues again")
}

// changeServer applies a method of the bundle to the server with the given name.
func changeServer(do func(s *center.Servers, ctx context.Context, uuid, actor string) error) change {
	return func(ctx context.Context, c *center.Center, name string) (string, error) {
		s, err := c.Servers().Find(ctx, name)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s (%s)", s.UUID, s.TaskType), do(c.Servers(), ctx, s.UUID, actor())
	}
}
