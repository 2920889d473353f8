package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/console"
)

func newConsoleCommand() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve web pages that show the roster",
		Long: `Serve web pages that show who owns which queue, what is late and what fails.

The pages change nothing. Only clients on this host may look: requests that a
proxy has forwarded are refused. Use an SSH tunnel to look from elsewhere:
ssh -L 8330:localhost:8330 HOST.

However many people look, each query runs at most once a second. While the
database is away, the pages show what they read last.`,
		Example: `  rota console                        http://localhost:8330/
  rota console --http localhost:9000`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				return serveConsole(ctx, cmd, c, address)
			})
		},
	}
	addRosterFlags(cmd)
	cmd.Flags().StringVar(&address, "http", "localhost:8330", "serve at this `ADDRESS`; port 0 takes a free one")
	return cmd
}

// serveConsole serves the console until a signal.
func serveConsole(ctx context.Context, cmd *cobra.Command, c *center.Center, address string) error {
	if err := checkLoopback(address); err != nil {
		return usageError{err}
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	handler, err := console.Handler(c, console.Options{})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serve the console: %w", err)
	}
	server := newConsoleServer(handler)
	fmt.Fprintf(cmd.OutOrStdout(), "console of %s: http://%s/\n", c.OwnSign(), listener.Addr()) //nolint:errcheck // it serves all the same
	context.AfterFunc(ctx, func() { shutDown(ctx, server) })
	if err := server.Serve(limitConnections(listener, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the console: %w", err)
	}
	return nil
}

// checkLoopback refuses an address at which nobody could look: the console answers clients on this host only.
func checkLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--http (%s): %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--http (%s) must be localhost or another loopback address: the console has no passwords", address)
	}
	return nil
}

// newConsoleServer limits the time for which a client can hold a connection.
func newConsoleServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          stdlog.New(io.Discard, "", 0),
	}
}

// shutDown ends the server. Clients get a second for their last answer.
func shutDown(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
}
