// Package rostercmd is the commands that show a roster and change it: those of task types, queues, servers, items and
// events, and plan and migrate.
package rostercmd

import (
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/verbcmd"
)

// Commands returns the commands of the package.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		verbcmd.Group(&cobra.Command{
			Use:   "migrate",
			Short: "Create, upgrade or inspect the roster's tables",
			Long: `Create, upgrade or inspect the roster's tables, and create those of data
databases.

The URL of the database comes from --database or --database-file, else from the
file of -c, else from ROTA_DATABASE or ROTA_DATABASE_FILE, else from rota.yaml
in this directory. -v says from where.`,
		}, newMigrateUpCommand(), newMigrateStatusCommand()),
		verbcmd.Group(&cobra.Command{
			Use:   "task",
			Short: "List task types; change their settings; pause or delete them",
			Long: `List task types; change their settings; pause or delete them.

All environments (own_sign) share the settings of a task type. Each environment
has queues, workers and a pause of its own.`,
		}, newTaskListCommand(), newTaskShowCommand(), newTaskApplyCommand(), newTaskWaitCommand()),
		verbcmd.Group(&cobra.Command{
			Use:   "queue",
			Short: "List queues and their owners; add, remove, split and merge queues",
		}, newQueueListCommand()),
		verbcmd.Group(&cobra.Command{
			Use:   "item",
			Short: "List failed items; retry or drop them",
		}, newItemListCommand()),
		verbcmd.Group(&cobra.Command{
			Use:   "event",
			Short: "List and follow the events of queues and workers",
		}, newEventListCommand()),
		verbcmd.Group(&cobra.Command{
			Use:   "data",
			Short: "List data databases, which hold the items of queues",
		}, newDataListCommand()),
		newPlanCommand(),
	}
}
