// Package consolecmd is the commands that serve the console: rota console, and rota demo.
package consolecmd

import (
	"context"
	"fmt"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/daemon"
	"github.com/dutyrota/rota/cmd/rota/internal/redact"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/ops"
)

// New returns the command rota console.
func New() *cobra.Command {
	var s consoleServer
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve web pages that show the roster, and change it",
		Long: `Serve web pages that show who owns which queue, what is late and what fails.

Without other flags the pages change nothing, and only clients on this host may
look: requests that a proxy has forwarded are refused, and changes that a page
of another site has sent (by their Origin or Referer). Use an SSH tunnel to look
from elsewhere: ssh -L 8330:localhost:8330 HOST.

--passwords makes people sign in by HTTP Basic; "rota console password" makes
the lines of its file. A changed file takes effect within two seconds. A browser
keeps the password until it is closed, so nobody can sign out: use a proxy with
single sign-on if you need that. --user-header trusts a proxy that has signed
people in. With either of the two the console serves other hosts too.

--allow-changes lets people use the rights that they have; events name them.
With --own-sign they change only that environment, and no settings if the
database has others, which share them.

However many people look, each query runs at most once in two seconds. While the
database is away, the pages show what they read last.`,
		Example: `  rota console                        http://localhost:8330/
  rota console --http localhost:9000
  rota console --allow-changes        everybody on this host may change things
  rota console --http :8330 --passwords people --tls-cert c.pem --tls-key k.pem
  rota console --http :8330 --user-header X-Forwarded-User --proxy 10.1.0.0/16`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(); err != nil {
				return cli.Usage(err)
			}
			log := daemon.NewLogger(cmd.ErrOrStderr(), redact.URLs)
			options, err := s.options(log)
			if err != nil {
				return cli.Usage(err)
			}
			connection, err := cli.ReadConnection(cmd)
			if err != nil {
				return err
			}
			options.OwnSignOnly = connection.OwnSign != ""
			return cli.WithRoster(cmd, func(ctx context.Context, c *ops.Client) error {
				return s.serve(ctx, cmd, c, options, log)
			})
		},
	}
	cli.AddRosterFlags(cmd)
	cli.AddDataFlags(cmd)
	s.addFlags(cmd)
	cmd.AddCommand(newConsolePasswordCommand())
	return cmd
}

// serve serves the console until a signal.
func (s consoleServer) serve(ctx context.Context, cmd *cobra.Command, c *ops.Client, o console.Options,
	log logrus.FieldLogger,
) error {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	handler, err := console.Handler(c.Center, o)
	if err != nil {
		return err
	}
	listener, err := daemon.Listen(ctx, s.address)
	if err != nil {
		return fmt.Errorf("serve the console: %w", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "console of %s: %s://%s/\n", c.OwnSign(), s.scheme(), listener.Addr()) //nolint:errcheck // it serves all the same
	if err := daemon.Serve(ctx, daemon.NewServer(handler, log), listener, s.tlsCert, s.tlsKey); err != nil {
		return fmt.Errorf("serve the console: %w", err)
	}
	return nil
}
