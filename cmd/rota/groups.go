package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// group makes a command that only has subcommands. Without arguments it shows
// its help; it refuses an unknown subcommand in one line.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	cmd.DisableFlagsInUseLine = true
	cmd.Args = cobra.ArbitraryArgs // cobra's own error has four lines
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

func newMigrateCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "migrate",
		Short: "Create, upgrade or inspect the roster's tables",
		Long: `Create, upgrade or inspect the roster's tables.

The URL of the database comes from --database or --database-file, else from the
file of -c, else from ROTA_DATABASE or ROTA_DATABASE_FILE, else from rota.yaml
in this directory. -v says from where.`,
	})
	cmd.AddCommand(newMigrateUpCommand(), newMigrateStatusCommand())
	return cmd
}

func newTaskCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "task",
		Short: "List task types; change their settings; pause or delete them",
		Long: `List task types; change their settings; pause or delete them.

All environments (own_sign) share the settings of a task type. Each environment
has queues, servers and a pause of its own.`,
	})
	cmd.AddCommand(newTaskListCommand(), newTaskShowCommand(), newTaskApplyCommand())
	addVerbs(cmd, "task set", "task pause", "task resume", "task delete")
	return cmd
}

func newQueueCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "queue",
		Short: "List queues and their owners; add or remove named queues",
	})
	cmd.AddCommand(newQueueListCommand())
	addVerbs(cmd, "queue add", "queue remove", "queue pin", "queue unpin")
	return cmd
}

func newServerCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "server",
		Short: "List servers; pause, drain or resume a server",
		Long: `List servers; pause, drain or resume a server.

A server is the registration of one process for one task type. SERVER is its
uuid; host:pid, for all servers of a process; or a host, for all its servers.`,
	})
	cmd.AddCommand(newServerListCommand())
	addVerbs(cmd, "server pause", "server resume", "server drain", "server weight")
	return cmd
}

func newItemCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "item",
		Short: "List failed items; retry or drop them",
	})
	cmd.AddCommand(newItemListCommand())
	addVerbs(cmd, "item retry", "item drop")
	return cmd
}

func newEventCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "event",
		Short: "List and follow the events of queues and servers",
	})
	cmd.AddCommand(newEventListCommand())
	return cmd
}

func newRunCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "run",
		Short: "Submit, list, backfill and wait for runs; cancel, rerun, pause, resume or ack",
		Long: `Submit, list, backfill and wait for runs; cancel, rerun, pause, resume or ack a
run.

A run sweeps all queues of a task type of mode RUN once. RUN is the id of a run,
or the name of a task type, which stands for its newest run.`,
	})
	cmd.AddCommand(newRunSubmitCommand(), newRunListCommand(), newRunShowCommand(), newRunWaitCommand(),
		newRunBackfillCommand())
	addVerbs(cmd, "run cancel", "run rerun", "run pause", "run resume", "run ack")
	return cmd
}

func newTriggerCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "trigger",
		Short: "Schedule runs; list, fire, pause or delete triggers",
	})
	cmd.AddCommand(newTriggerListCommand(), newTriggerFireCommand())
	addVerbs(cmd, "trigger apply", "trigger pause", "trigger resume", "trigger delete")
	return cmd
}
