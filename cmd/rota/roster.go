package main

import (
	"context"
	"errors"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/ops"
)

// addRosterFlags adds the flags of the commands that work on a roster.
func addRosterFlags(cmd *cobra.Command) {
	addConnectionFlags(cmd)
	addOwnSignFlag(cmd)
}

// withRoster opens the roster for one command and closes it afterwards.
func withRoster(cmd *cobra.Command, f func(ctx context.Context, c *ops.Client) error) (err error) {
	c, err := openRoster(cmd.Context(), cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return f(cmd.Context(), c)
}

// openRoster opens the roster of the command's flags.
func openRoster(ctx context.Context, cmd *cobra.Command) (*ops.Client, error) {
	conn, err := loadConnection(cmd)
	if err != nil {
		return nil, err
	}
	return openConnection(ctx, conn)
}

// actor returns user@host, which the events record for a change.
func actor() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	return name + "@" + host
}
