package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newRootCommand() *cobra.Command {
	root := group(&cobra.Command{
		Use:   "rota",
		Short: "A duty roster for workers, in the SQL database that you already have",
		Long: `Rota keeps a duty roster in a SQL database: which worker process owns which
queue (a part of the data) right now. Workers share the queues evenly, hand them
over without overlap, and take over those of the dead.`,
		Example: `  rota demo                     see it at work, with nothing installed
  rota worker -c rota.yaml      run the tasks of a file
  rota migrate up               create or upgrade the roster's tables
  rota top                      see who works
  rota doctor                   see what is wrong, and what to do about it`,
		SilenceErrors: true, // run prints them
		SilenceUsage:  true,
	})
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages ", fmt.Sprintf("Flags.FlagUsagesWrapped %d ", helpWidth)))
	root.AddCommand(newDemoCommand(), newWorkerCommand(), newMigrateCommand(), newVersionCommand(),
		newTaskCommand(), newQueueCommand(), newServerCommand(), newItemCommand(), newRunCommand(), newTriggerCommand(), newEventCommand(),
		newPlanCommand(), newDoctorCommand(), newTopCommand())
	return root
}

// helpWidth is that of the smallest terminals.
const helpWidth = 80

// group makes a command that only holds others: alone it shows its help, and
// it refuses what it does not know in one line.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	cmd.DisableFlagsInUseLine = true
	cmd.Args = cobra.ArbitraryArgs // cobra's own refusal takes four lines
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		hint := "see " + cmd.CommandPath() + " --help"
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return usageError{fmt.Errorf("unknown command %q for %s (%s)", args[0], cmd.CommandPath(), hint)}
	}
	return cmd
}

// noArgs refuses arguments of a command that takes only flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%s takes no argument %q (see %[1]s --help)", cmd.CommandPath(), args[0])}
}
