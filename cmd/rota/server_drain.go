package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plural"
)

// serverDrain is the command's flags.
type serverDrain struct {
	force bool
	wait  time.Duration
}

func newServerDrainCommand() *cobra.Command {
	d := &serverDrain{}
	sc := &serverChange{participle: "drained", effect: d.effect, do: d.do}
	cmd := sc.command(&cobra.Command{
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
		Example: `  rota server drain web1:4711 && rota server list --watch
  rota server drain web1:4711 --force
  rota server drain web1 --dry-run         all servers of a host`,
	})
	cmd.Flags().BoolVar(&d.force, "force", false, "do not wait for what is in flight, except for fenced transactions")
	cmd.Flags().DurationVar(&d.wait, "wait", 30*time.Second, "with --force: how long to wait for the fenced transactions of each server")
	return cmd
}

func (d *serverDrain) do(ctx context.Context, c *center.Center, s center.ServerRecord) error {
	if !d.force {
		_, err := c.Servers().Drain(ctx, s.UUID, false, actor())
		return err
	}
	locked, err := c.Servers().ForceDrain(ctx, s.UUID, d.wait, actor())
	if err == nil && len(locked) > 0 {
		err = fmt.Errorf("drain server %s: after %s, a transaction of the server still locks the rows of queues %s: end the process, or its session in the database, then drain again",
			s.UUID, d.wait, strings.Join(locked, ", "))
	}
	return err
}

func (d *serverDrain) effect(f serverFuture) string {
	const alone = "it works on until one can"
	switch {
	case !d.force || f.Queues == 0:
		return handOver(f, alone)
	case f.others == 0:
		return fmt.Sprintf("its %s no owner until another server can take over", plural.Of(f.Queues, "queue has", "queues have"))
	}
	return fmt.Sprintf("its %s to %s at once", plural.Of(f.Queues, "queue goes", "queues go"), plural.Of(f.others, "other server", "other servers"))
}
