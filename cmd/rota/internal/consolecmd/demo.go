package consolecmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/daemon"
	"github.com/dutyrota/rota/cmd/rota/internal/demo"
	"github.com/dutyrota/rota/cmd/rota/internal/redact"
	"github.com/dutyrota/rota/console"
)

// NewDemo returns the command rota demo.
func NewDemo() *cobra.Command {
	var o demo.Options
	var withConsole bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show several workers share a table of work, and prove the result",
		Long: `Show several workers share a table of work: three processes settle 20,000 orders
in 8 queues, a fourth joins, and one is killed. At the end SELECTs prove that
each order took effect exactly once and that no queue moved without need;
--proof prints them. The exit code is 0, or 1 if the demo failed.

The demo uses a SQLite file in a temporary directory, which it removes at the
end. With --keep the file stays, beside the workers' rota.yaml and their logs.
With --database the tables are in a database of yours: PostgreSQL, MariaDB,
MySQL or TiDB. It must exist, and have no tables named orders or schedule_...
The demo removes its tables at the end, unless there is --keep.

With --console the demo serves web pages, and its workers go on with new orders
until Ctrl-C: pause them, drain them, or kill one and watch.`,
		Example: `  rota demo
  rota demo --console
  rota demo --database postgres://app@localhost/demo
  rota demo --keep demo-files && rota task list -c demo-files/rota.yaml`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out = cmd.OutOrStdout()
			if withConsole {
				o.Console = serveDemo
			}
			// The demo also ends its workers and removes its folder when the terminal or the reader of its pipe is gone.
			ctx, stop := daemon.WhileRead(cmd.Context(), os.Stdout)
			defer stop()
			ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return demo.Run(ctx, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Database, "database", "", "URL of a database for the demo's tables (default a SQLite file)")
	flags.StringVar(&o.Keep, "keep", "", "empty or new directory for rota.yaml, the logs and the SQLite file; they stay")
	flags.BoolVar(&o.Proof, "proof", false, "print the SELECTs of the proof and their answers")
	flags.BoolVar(&withConsole, "console", false, "serve the console on this host, and go on until Ctrl-C")
	flags.DurationVar(&o.Timeout, "timeout", demo.DefaultTimeout, "time limit")
	return cmd
}

// serveDemo serves the console of the demo, where everybody on this host may change things.
func serveDemo(ctx context.Context, c *center.Center) (address string, stop func(), err error) {
	handler, err := console.Handler(c,
		console.Options{Access: console.Loopback(console.Actor{Name: cli.AtHost("demo"), May: everything})})
	if err != nil {
		return "", nil, err
	}
	listener, err := daemon.Listen(ctx, defaultConsole)
	if err != nil { // another console is there
		listener, err = daemon.Listen(ctx, "localhost:0")
	}
	if err != nil {
		return "", nil, fmt.Errorf("serve the console: %w", err)
	}
	server := daemon.NewServer(handler, daemon.NewLogger(io.Discard, redact.URLs))
	return fmt.Sprintf("http://%s/", listener.Addr()), daemon.Start(ctx, server, listener, func(error) {}), nil
}
