package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/demo"
)

func newDemoCommand() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See several workers share one table of work, and proof that they did it right",
		Long: `See several workers share one table of work: three processes settle 20,000
orders in 8 queues, a fourth joins, one is killed. At the end SELECTs prove that
each order took effect exactly once, how many queues moved, and how long the
take-over lasted. Exit 0, or 1 if anything is off.

Nothing is needed: it works in a SQLite file in a temporary folder. With --db it
works on your PostgreSQL or MySQL, in a schema or a database of its own, called
rota_demo_ and something random, which it removes at the end; the user must be
allowed to create one. A sqlite:FILE must not exist yet, and is removed too.`,
		Example: `  rota demo
  rota demo --keep demo-files
  rota demo --db postgres://postgres@127.0.0.1/postgres`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out = cmd.OutOrStdout()
			// Also when the terminal or the reader of our pipe goes away, the workers are to be ended and the folder removed.
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
			defer stop()
			return demo.Run(ctx, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Database, "db", "", "URL of the database to use: postgres://, mysql:// or sqlite:FILE")
	flags.StringVar(&o.Keep, "keep", "", "empty or new directory in which everything stays for reading")
	flags.BoolVar(&o.Plain, "plain", false, "write lines also on a terminal (as with NO_COLOR)")
	flags.DurationVar(&o.Timeout, "timeout", demo.DefaultTimeout, "give up after this time")
	return cmd
}
