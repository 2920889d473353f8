// Package cli is what the commands of rota share: flags and arguments, the connection to the roster, tables and other
// output, completion, exit codes.
package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/internal/human"
)

// Command completes a command that works on a roster: it gets the flags of the roster and -o, the check of the
// arguments that its Use names, and their completion.
func Command(cmd *cobra.Command, o *Output, arguments ...Lister) *cobra.Command {
	cmd.Args = Arguments(strings.Fields(cmd.Use)[1:]...)
	cmd.ValidArgsFunction = complete(arguments...)
	AddRosterFlags(cmd)
	AddOutputFlags(cmd, o)
	return cmd
}

// Check adds a check to a command, before it connects. Its errors are those of the command line.
func Check(cmd *cobra.Command, check func(args []string) error) {
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if before != nil {
			if err := before(cmd, args); err != nil {
				return err
			}
		}
		if err := check(args); err != nil {
			return Usage(err)
		}
		return nil
	}
}

// Arguments checks the number of arguments. A name in brackets is optional, and
// "..." at the end of the last name allows any number. An empty argument is refused: it is a variable of a script that
// has no value, and would mean all or the newest.
func Arguments(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		var missing []string
		for _, name := range names[min(len(args), len(names)):] {
			if !strings.HasPrefix(name, "[") {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			return Usage(fmt.Errorf("%s: missing argument %s (see %s --help)", subcommand(cmd), strings.Join(missing, " "),
				cmd.CommandPath()))
		}
		several := len(names) > 0 && strings.Contains(names[len(names)-1], "...")
		if len(args) > len(names) && !several {
			return Usage(fmt.Errorf("%s: unexpected argument %q (see %s --help)", subcommand(cmd), args[len(names)],
				cmd.CommandPath()))
		}
		if i := slices.Index(args, ""); i >= 0 {
			name := strings.Trim(names[min(i, len(names)-1)], "[].")
			return Usage(fmt.Errorf("%s: the argument %s is empty (see %s --help)", subcommand(cmd), name,
				cmd.CommandPath()))
		}
		return nil
	}
}

// subcommand is the command's path without the program's name, which starts
// each error line.
func subcommand(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// FirstArg returns the first argument, or "" without arguments.
func FirstArg(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// Choice is a flag that takes one of a few values.
type Choice struct {
	Value  string
	Values []string
}

// String implements pflag.Value.
func (c *Choice) String() string { return c.Value }

// Type implements pflag.Value.
func (c *Choice) Type() string { return "word" }

// Set implements pflag.Value.
func (c *Choice) Set(s string) error {
	if !slices.Contains(c.Values, s) {
		return fmt.Errorf("must be %s", human.Alternatives(c.Values))
	}
	c.Value = s
	return nil
}

// AddChoice adds the flag and its completion.
func AddChoice(cmd *cobra.Command, c *Choice, name, short, usage string) {
	cmd.Flags().VarP(c, name, short, usage+": "+human.Alternatives(c.Values))
	// fails for unknown flags only
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.Values, cobra.ShellCompDirectiveNoFileComp))
}

// Group makes a command that only has subcommands. Without arguments it shows
// its help; it refuses an unknown subcommand in one line.
func Group(cmd *cobra.Command) *cobra.Command {
	cmd.DisableFlagsInUseLine = true
	cmd.Args = cobra.ArbitraryArgs // cobra's own error has four lines
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return Unknown(cmd, args[0])
	}
	return cmd
}

// Unknown returns the error of a command that has no subcommand of the name. It says which ones are like it.
func Unknown(cmd *cobra.Command, name string) error {
	hint := "see " + cmd.CommandPath() + " --help"
	cmd.SuggestionsMinimumDistance = min(2, len(name)/2) // else foo would be like top
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return Usage(fmt.Errorf("unknown command %q for %s (%s)", name, cmd.CommandPath(), hint))
}
