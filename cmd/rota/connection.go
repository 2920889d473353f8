package main

import (
	"cmp"
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/ops"
)

// addVerbose adds -v, with which the command says which roster it uses.
func addVerbose(cmd *cobra.Command) {
	cmd.Flags().BoolP("verbose", "v", false, "show on stderr which database is used, and where its URL comes from")
}

// readConnection reads the connection for a command that can do without a
// rota.yaml: without -c, it reads rota.yaml only if the file exists.
func readConnection(cmd *cobra.Command) (config.Connection, error) {
	path := configPath(cmd)
	if _, err := os.Stat(path); err != nil && !cmd.Flags().Changed("config") {
		path = ""
	}
	c, err := config.LoadConnection(path, cmd.Flags())
	if err != nil {
		return c, usageError{err}
	}
	return c, nil
}

// loadConnection is readConnection, and shows the connection with -v.
func loadConnection(cmd *cobra.Command) (config.Connection, error) {
	c, err := readConnection(cmd)
	if err == nil {
		showConnection(cmd, c)
	}
	return c, err
}

// showConnection writes to stderr, with -v, which roster the command uses. It does not write the password. If the value
// is not a URL, it has no address, and the command is about to refuse it.
func showConnection(cmd *cobra.Command, c config.Connection) {
	verbose, err := cmd.Flags().GetBool("verbose")
	address := anydb.URL(c.Database).Address
	if err != nil || !verbose || address == "" {
		return
	}
	line := "rota: database " + address + " from " + c.DatabaseFrom
	if cmd.Flags().Lookup("own-sign") != nil {
		line += ", own_sign " + cmp.Or(c.OwnSign, center.DefaultOwnSign)
	}
	sayError(cmd, line)
}

// openConnection never creates the tables: a mistyped URL must not make a second
// roster.
func openConnection(ctx context.Context, conn config.Connection) (*ops.Client, error) {
	if _, err := center.DialectOf(anydb.URL(conn.Database)); err != nil {
		return nil, usageError{err}
	}
	c, err := center.Open(ctx, anydb.URL(conn.Database), center.Options{
		OwnSign: conn.OwnSign, Schema: center.SchemaRequire, FailUnreachable: true,
	})
	if err != nil {
		return nil, err
	}
	return ops.New(c), nil
}
