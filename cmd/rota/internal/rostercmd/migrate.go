package rostercmd

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/schema"
)

func newMigrateUpCommand() *cobra.Command {
	var o cli.Output
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Create the tables, or upgrade them to this program's version",
		Long: `Create the tables, or upgrade them to this program's version. It changes nothing
if they have that version. Several processes may run it at once.`,
		Example: `  rota migrate up -c rota.yaml
  rota migrate up --database postgres://app@db/shop?sslmode=verify-full`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := cli.LoadConnection(cmd)
			if err != nil {
				return err
			}
			from, to, err := center.Migrate(cmd.Context(), anydb.URL(conn.Database))
			if err != nil {
				return err
			}
			return o.Done(cmd, anydb.URL(conn.Database).Address, migratedText(from, to), records.M("from_version", from),
				records.M("version", to))
		},
	}
	cli.AddConnectionFlags(cmd)
	cli.AddOutputFlags(cmd, &o)
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

func newMigrateStatusCommand() *cobra.Command {
	var o cli.Output
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "List the migrations and when each was applied",
		Example: "  rota migrate status --database sqlite:shop.db",
		Args:    cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := cli.LoadConnection(cmd)
			if err != nil {
				return err
			}
			list, err := center.MigrationStatus(cmd.Context(), anydb.URL(conn.Database))
			if err != nil {
				return err
			}
			return o.Write(cmd.OutOrStdout(), cli.TableResult(migrationRecords(list), migrationRow))
		},
	}
	cli.AddConnectionFlags(cmd)
	cli.AddOutputFlags(cmd, &o)
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

func migrationRow(m migrationRecord) cli.Row {
	applied := "pending"
	if !m.AppliedAt.IsZero() {
		applied = cli.TimeText(m.AppliedAt)
	}
	return cli.Row{cli.Figure("VERSION", m.Version), cli.Text("NAME", m.Name), cli.Text("APPLIED", applied)}
}
