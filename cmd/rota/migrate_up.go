package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/records"
)

func newMigrateUpCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Create the tables, or upgrade them to this program's version",
		Long: `Create the tables, or upgrade them to this program's version. It changes nothing
if they have that version. Several processes may run it at once.`,
		Example: `  rota migrate up -c rota.yaml
  rota migrate up --database postgres://app@db/shop?sslmode=verify-full`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := loadConnection(cmd)
			if err != nil {
				return err
			}
			from, to, err := center.Migrate(cmd.Context(), anydb.URL(conn.Database))
			if err != nil {
				return err
			}
			return o.done(cmd, anydb.URL(conn.Database).Address, migratedText(from, to), records.M("from_version", from),
				records.M("version", to))
		},
	}
	addConnectionFlags(cmd)
	addOutputFlags(cmd, &o)
	return cmd
}

func migratedText(from, to int64) string {
	switch from {
	case to:
		return fmt.Sprintf("schema %d, nothing to do", to)
	case 0:
		return fmt.Sprintf("created schema %d", to)
	}
	return fmt.Sprintf("upgraded schema %d to %d", from, to)
}
