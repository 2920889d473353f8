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
		Short: "Show several workers share a table of work, and prove the result",
		Long: `Show several workers share a table of work: three processes settle 20,000 orders
in 8 queues, a fourth joins, and one is killed. At the end SELECTs prove that
each order took effect exactly once and that no queue moved without need;
--proof prints them. The exit code is 0, or 1 if the demo failed.

By default the demo uses a SQLite file in a temporary directory. With --db it
uses your PostgreSQL or MySQL server. There it creates a schema (MySQL: a
database) named rota_demo_ and a random suffix, and removes it at the end. The
database user needs the right to create one. With --keep the schema stays, as
rota.yaml names it, and the demo prints the statement that removes it.`,
		Example: `  rota demo
  rota demo --keep demo-files && rota task list -c demo-files/rota.yaml
  rota demo --db postgres://postgres@127.0.0.1/postgres`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out = cmd.OutOrStdout()
			// The demo also ends its workers and removes its folder when the terminal or the reader of its pipe is gone.
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
			defer stop()
			return demo.Run(ctx, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Database, "db", "", "URL of the server to use: postgres:// or mysql://")
	flags.StringVar(&o.Keep, "keep", "", "empty or new directory for rota.yaml, the logs and the SQLite file; they stay, and so does the schema of --db")
	flags.BoolVar(&o.Proof, "proof", false, "print the SELECTs of the proof and their answers")
	flags.DurationVar(&o.Timeout, "timeout", demo.DefaultTimeout, "time limit")
	return cmd
}
