package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newServerCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "server",
		Short: "See who works; pause, drain and resume a server",
		Long: `See who works; pause, drain and resume a server. A server is one process's
registration for one task type. It may be named by the beginning of its uuid,
host:pid, if no other begins like that.`,
	})
	cmd.AddCommand(newServerListCommand(), newServerPauseCommand(true), newServerPauseCommand(false), newServerDrainCommand())
	return cmd
}

func newServerListCommand() *cobra.Command {
	var o output
	var f center.ServerFilter
	var gone bool
	limit := 100
	cmd := &cobra.Command{
		Use:   "list [TASK]",
		Short: "List the servers and what they do",
		Example: `  rota server list --watch
  rota server list settle --host web1
  rota server list --gone                who has left or died`,
		Args:              arguments("[TASK]"),
		ValidArgsFunction: complete(taskNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := positive("limit", limit); err != nil {
				return err
			}
			return show(cmd, o, func(ctx context.Context, c *center.Center) (reply, error) {
				f.TaskType = first(args)
				if err := mustExist(ctx, c, f.TaskType); err != nil {
					return reply{}, err
				}
				if gone {
					servers, err := c.GoneServers(ctx, f, limit)
					return reply{servers, func(s screen) string { return render(s, servers, goneFields) }}, err
				}
				servers, err := c.Servers(ctx, f)
				return reply{servers, func(s screen) string { return render(s, servers, serverFields) }}, err
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o, true)
	cmd.Flags().StringVar(&f.Host, "host", "", "only those of this host")
	completeFlag(cmd, "host", hostNames)
	cmd.Flags().BoolVar(&gone, "gone", false, "those that are gone instead")
	cmd.Flags().IntVar(&limit, "limit", limit, "how many of those that are gone")
	return cmd
}

// positive refuses a limit that would show nothing.
func positive(flag string, n int) error {
	if n < 1 {
		return usageError{fmt.Errorf("--%s (%d): must be at least 1", flag, n)}
	}
	return nil
}

type server = center.ServerRecord

var serverFields = []field[server]{
	{title: "SERVER", text: func(s server) string { return s.UUID }, uuid: true},
	{title: "TASK", text: func(s server) string { return s.TaskType }},
	{title: "STATE", text: stateOf, color: byMeaning[server]},
	{title: "BEAT", text: func(s server) string { return age(&s.HeartbeatAge) }, right: true, spare: 1},
	{title: "QUEUES", text: func(s server) string { return number(s.Queues) }, right: true},
	{title: "GIVES", text: func(s server) string { return number(s.Requested) }, right: true, spare: 6},
	{title: "GETS", text: func(s server) string { return number(s.Awaited) }, right: true, spare: 6},
	{title: "IN HAND", text: func(s server) string { return number(s.InHand) }, right: true, spare: 2},
	{title: "OLDEST", text: func(s server) string { return age(s.OldestInHandAge) }, right: true, spare: 3},
	{title: "DONE", text: func(s server) string { return number(s.SuccessCount) }, right: true, spare: 5},
	{title: "FAILED", text: func(s server) string { return number(s.FailureCount) }, right: true, spare: 4},
	{title: "VERSION", text: func(s server) string { return s.LibraryVersion }, spare: 7},
	{title: "LAST ERROR", text: lastError, free: true},
}

// lastError is what went wrong, and how long ago: that may be long.
func lastError(s server) string {
	if s.LastErrorAge == nil {
		return line(s.LastError)
	}
	return age(s.LastErrorAge) + " ago: " + line(s.LastError)
}

// stateOf is the state that counts: a server that is silent has none any more.
func stateOf(s server) string {
	if s.Overdue {
		return "OVERDUE"
	}
	return s.State
}

type goneServer = center.GoneServerRecord

var goneFields = []field[goneServer]{
	{title: "LEFT", text: func(s goneServer) string { return when(s.LeftTime) }},
	{title: "SERVER", text: func(s goneServer) string { return s.UUID }, uuid: true},
	{title: "TASK", text: func(s goneServer) string { return s.TaskType }},
	{title: "REASON", text: func(s goneServer) string { return s.Reason }, color: byMeaning[goneServer]},
	{title: "DONE", text: func(s goneServer) string { return number(s.SuccessCount) }, right: true, spare: 1},
	{title: "FAILED", text: func(s goneServer) string { return number(s.FailureCount) }, right: true, spare: 1},
	{title: "LAST ERROR", text: func(s goneServer) string { return line(s.LastError) }, spare: 2, free: true},
}

func newServerPauseCommand(pause bool) *cobra.Command {
	use, short, done := "pause SERVER", "Stop a server: it finishes what it has in hand, and its queues go to others", "paused; its queues go to others as it finishes what it has in hand"
	if !pause {
		use, short, done = "resume SERVER", "Let a paused or drained server have queues again", "may have queues again"
	}
	cmd := &cobra.Command{
		Use:               use,
		Short:             short,
		Example:           "  rota server " + strings.Fields(use)[0] + " web1:4711",
		Args:              arguments("SERVER"),
		ValidArgsFunction: complete(serverUUIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				s, err := resolveServer(ctx, c, args[0])
				if err != nil {
					return err
				}
				if err := c.Roster().PauseServer(ctx, s.UUID, pause, actor()); err != nil {
					return err
				}
				cmd.Printf("%s (%s): %s\n", s.UUID, s.TaskType, done)
				return nil
			})
		},
	}
	addRosterFlags(cmd)
	return cmd
}

func newServerDrainCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "drain SERVER",
		Short: "Take all queues from a server for good",
		Long: `Take all queues from a server for good: it hands over each as soon as nothing of
it is in hand, and owns nothing until "rota server resume". While there are no
other servers, it works on.

With --force nothing is waited for: its queues are others' at once. When it
learns of that, it cancels what it has in hand; the fence makes void what it
still writes to the database, and nothing else does.`,
		Example:           "  rota server drain web1:4711\n  rota server drain web1:4711 --force",
		Args:              arguments("SERVER"),
		ValidArgsFunction: complete(serverUUIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				s, err := resolveServer(ctx, c, args[0])
				if err != nil {
					return err
				}
				held, err := c.Roster().DrainServer(ctx, s.UUID, force, actor())
				if err != nil {
					return err
				}
				return drained(cmd, s, force, held)
			})
		},
	}
	addRosterFlags(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "do not wait for what it has in hand")
	return cmd
}

func drained(cmd *cobra.Command, s server, force bool, held []string) error {
	switch {
	case len(held) > 0:
		return fmt.Errorf("%s: could not take queues %s, whose rows a transaction of the server holds: end its session in the database, or the process, then drain again",
			s.UUID, strings.Join(held, ", "))
	case force:
		cmd.Printf("%s (%s): its %s taken away\n", s.UUID, s.TaskType, plural(s.Queues, "queue was", "queues were"))
	default:
		cmd.Printf("%s (%s): its %s to others as it finishes what it has in hand; watch: rota server list -w\n", s.UUID, s.TaskType, plural(s.Queues, "queue goes", "queues go"))
	}
	return nil
}
