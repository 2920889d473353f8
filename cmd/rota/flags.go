package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/config"
)

const defaultConfig = "rota.yaml"

// addConnectionFlags adds the flags that every command has which needs a
// database. config looks them up by name.
func addConnectionFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringP("config", "c", defaultConfig, "file to read")
	flags.String("database", "", "URL of the roster's database: postgres://, mysql:// or sqlite:FILE (ROTA_DATABASE)")
}

func configPath(cmd *cobra.Command) string {
	return cmd.Flag("config").Value.String()
}

// loadConnection is for commands that need no rota.yaml: without -c they read
// one only if it is there.
func loadConnection(cmd *cobra.Command) (config.Connection, error) {
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
