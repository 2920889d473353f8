package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/schema"
)

func newMigrateStatusCommand() *cobra.Command {
	var o output
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
			return o.write(cmd.OutOrStdout(), tableResult(migrationRecords(list), migrationColumns))
		},
	}
	addConnectionFlags(cmd)
	addOutputFlags(cmd, &o)
	return cmd
}

// migrationRecord is a migration. Its zero AppliedAt is null in JSON.
type migrationRecord struct {
	Version   int64     `json:"version"`
	Name      string    `json:"name"`
	AppliedAt time.Time `json:"applied_at"`
}

func migrationRecords(list []schema.Migration) []migrationRecord {
	records := make([]migrationRecord, len(list))
	for i, m := range list {
		records[i] = migrationRecord(m)
	}
	return records
}

var migrationColumns = []column[migrationRecord]{
	{title: "VERSION", text: func(m migrationRecord) string { return number(m.Version) }, right: true},
	{title: "NAME", text: func(m migrationRecord) string { return m.Name }},
	{title: "APPLIED", text: func(m migrationRecord) string {
		if m.AppliedAt.IsZero() {
			return "pending"
		}
		return timeText(m.AppliedAt)
	}},
}
