package main

import (
	"fmt"
	"net/url"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/schema"
)

func newMigrateCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "migrate",
		Short: "Create, upgrade or look at the roster's tables",
		Long: `Create, upgrade or look at the roster's tables.

The database is --database, or ROTA_DATABASE, or that of the file (-c, or
rota.yaml in this directory).`,
	})
	cmd.AddCommand(newMigrateUpCommand(), newMigrateStatusCommand())
	return cmd
}

func newMigrateUpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring the tables to this program's version",
		Long: `Bring the tables to this program's version. Nothing happens where they have it
already; several may do it at once.`,
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
			cmd.Println(redacted(conn.Database) + ": " + outcome(from, to))
			return nil
		},
	}
	addConnectionFlags(cmd)
	return cmd
}

func outcome(from, to int64) string {
	switch from {
	case to:
		return fmt.Sprintf("schema %d, nothing to do", to)
	case 0:
		return fmt.Sprintf("created schema %d", to)
	}
	return fmt.Sprintf("upgraded schema %d to %d", from, to)
}

func newMigrateStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "List the migrations, and when each was applied",
		Example: "  rota migrate status --database sqlite:shop.db",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := loadConnection(cmd)
			if err != nil {
				return err
			}
			list, err := center.MigrationStatus(cmd.Context(), anydb.URL(conn.Database))
			if err != nil {
				return err
			}
			cmd.Println(migrationTable(list))
			return nil
		},
	}
	addConnectionFlags(cmd)
	return cmd
}

func migrationTable(list []schema.Migration) string {
	t := newTable("VERSION", "NAME", "APPLIED")
	for _, m := range list {
		applied := "pending"
		if !m.AppliedAt.IsZero() {
			applied = m.AppliedAt.UTC().Format(time.RFC3339)
		}
		t.AppendRow(table.Row{m.Version, m.Name, applied})
	}
	return t.Render()
}

// redacted is a URL that may be shown.
func redacted(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "the database" // center has understood what net/url does not
	}
	return u.Redacted()
}
