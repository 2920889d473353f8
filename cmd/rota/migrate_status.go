package main

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/escape"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/schema"
)

func newMigrateStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "List the migrations and when each was applied",
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
			applied = timeText(m.AppliedAt)
		}
		t.AppendRow(table.Row{m.Version, escape.Text(m.Name), applied})
	}
	return t.Render()
}
