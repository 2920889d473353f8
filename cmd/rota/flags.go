package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/config"
)

const defaultConfig = "rota.yaml"

// addConnectionFlags adds the flags of all commands that connect to a database.
func addConnectionFlags(cmd *cobra.Command) {
	cmd.Flags().StringP("config", "c", defaultConfig, "configuration file; given by hand, it wins over the environment")
	addDatabaseFlag(cmd)
	addVerbose(cmd)
}

func addDatabaseFlag(cmd *cobra.Command) {
	config.AddFlags(cmd.Flags(), "database", "database_file")
	_ = cmd.MarkFlagFilename("database-file") // fails for unknown flags only
}

func addOwnSignFlag(cmd *cobra.Command) { config.AddFlags(cmd.Flags(), "own_sign") }

func configPath(cmd *cobra.Command) string {
	return cmd.Flag("config").Value.String()
}

// choice is a flag that takes one of a few values.
type choice struct {
	value  string
	values []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "word" }

// Set implements pflag.Value.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.values, s) {
		return fmt.Errorf("must be %s", alternatives(c.values))
	}
	c.value = s
	return nil
}

// addChoice adds the flag and its completion.
func addChoice(cmd *cobra.Command, c *choice, name, short, usage string) {
	cmd.Flags().VarP(c, name, short, usage+": "+alternatives(c.values))
	// fails for unknown flags only
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.values, cobra.ShellCompDirectiveNoFileComp))
}

// alternatives returns "a, b or c" for two values or more.
func alternatives(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}
