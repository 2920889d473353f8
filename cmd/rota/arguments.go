package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// noArgs refuses all arguments.
func noArgs(cmd *cobra.Command, args []string) error { return arguments()(cmd, args) }

// arguments checks the number of arguments. A name in brackets is optional, and
// "..." at the end of the last name allows any number.
func arguments(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		var missing []string
		for _, name := range names[min(len(args), len(names)):] {
			if !strings.HasPrefix(name, "[") {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			return usageError{fmt.Errorf("%s: missing argument %s (see %s --help)", subcommand(cmd), strings.Join(missing, " "),
				cmd.CommandPath())}
		}
		several := len(names) > 0 && strings.Contains(names[len(names)-1], "...")
		if len(args) > len(names) && !several {
			return usageError{fmt.Errorf("%s: unexpected argument %q (see %s --help)", subcommand(cmd), args[len(names)],
				cmd.CommandPath())}
		}
		return nil
	}
}

// subcommand is the command's path without the program's name, which starts
// each error line.
func subcommand(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// firstArg returns the first argument, or "" without arguments.
func firstArg(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// atLeastOne refuses a flag's value below 1.
func atLeastOne(flag string, n int) error {
	if n < 1 {
		return usageError{fmt.Errorf("--%s (%d) must be at least 1", flag, n)}
	}
	return nil
}
