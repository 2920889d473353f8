package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// helpWidth is the width of the narrowest terminals.
const helpWidth = 80

func newRootCommand() *cobra.Command {
	root := group(&cobra.Command{
		Use:   "rota",
		Short: "A duty roster for workers, in the SQL database that you already have",
		Long: `Rota keeps a duty roster in a SQL database: which worker process owns which
queue (a part of the data) right now. Workers share the queues evenly, hand them
over without overlap, and take over the queues of a worker that has crashed.`,
		Example: `  rota demo                     show workers at work; needs no database
  rota worker -c rota.yaml      run the tasks of a file
  rota migrate up               create or upgrade the roster's tables
  rota top                      show task types and servers
  rota doctor                   list problems and how to solve them`,
		SilenceErrors: true, // run prints them
		SilenceUsage:  true,
	})
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages ",
		fmt.Sprintf("Flags.FlagUsagesWrapped %d ", helpWidth)))
	addVersionFlag(root)
	root.AddCommand(newDemoCommand(), newWorkerCommand(), newMigrateCommand(), newVersionCommand(),
		newTaskCommand(), newQueueCommand(), newServerCommand(), newItemCommand(), newRunCommand(), newTriggerCommand(),
		newEventCommand(),
		newPlanCommand(), newDoctorCommand(), newTopCommand(), newConsoleCommand(), newWitnessCommand())
	return root
}
