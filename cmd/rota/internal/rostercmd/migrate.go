package rostercmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/schema"
)

func newMigrateUpCommand() *cobra.Command {
	var o cli.Output
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Create the tables, or upgrade them to this program's version",
		Long: `Create the tables of the roster, or upgrade them to this program's version. It
changes nothing if they have that version. Several processes may run it at once.

It also creates the two tables of the fence in each data database that rota.yaml
or --data names. If one of these is away, it creates those of the others, names
it, and exits 1.

On a terminal the command says for how long it has gone on, into a pipe every
30 s. It says how much is left of the data databases only: no database tells how
far it is with an upgrade of the roster's tables.`,
		Example: `  rota migrate up -c rota.yaml
  rota migrate up --database postgres://app@db/shop?sslmode=verify-full`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := cli.LoadConnection(cmd)
			if err != nil {
				return err
			}
			if _, err := cli.Kinds(conn); err != nil {
				return cli.Usage(err)
			}
			r := migration{object: anydb.URL(conn.Database).Address}
			err = cli.During(cmd.ErrOrStderr(), "upgrading the tables", 0, func(func()) (err error) {
				r.from, r.to, err = center.Migrate(cmd.Context(), anydb.URL(conn.Database))
				return err
			})
			if err != nil {
				return err
			}
			r.result = migratedText(r.from, r.to)
			err = cli.During(cmd.ErrOrStderr(), "upgrading the data databases", len(conn.Data), func(did func()) (err error) {
				r.data, err = migrateData(cmd.Context(), conn, did)
				return err
			})
			return errors.Join(o.Write(cmd.OutOrStdout(), cli.Result{Records: r.record(), Text: r.text}), err)
		},
	}
	cli.AddConnectionFlags(cmd)
	cli.AddDataFlags(cmd)
	cli.AddOutputFlags(cmd, &o)
	return cmd
}

// migration is what migrate up has done.
type migration struct {
	object, result string
	from, to       int64
	data           []dataMigration
}

// dataMigration is what migrate up has done in a data database.
type dataMigration struct {
	Name   string `json:"name"`
	Object string `json:"object"`
	Result string `json:"result"`
}

// migrateData creates the tables of the data databases, and calls did after each. It returns the errors of those in
// which it could not, behind the results of the others.
func migrateData(ctx context.Context, conn config.Connection, did func()) (list []dataMigration, err error) {
	for _, d := range conn.Data {
		db := anydb.URL(d.URL)
		switch created, failed := center.MigrateData(ctx, db); {
		case failed != nil:
			err = errors.Join(err, fmt.Errorf("data database %s: %w", d.Name, failed))
		case created:
			list = append(list, dataMigration{d.Name, db.Address, "created the tables of the fence"})
		default:
			list = append(list, dataMigration{d.Name, db.Address, "has the tables of the fence, nothing to do"})
		}
		did()
	}
	return list, err
}

// record has no member data for a roster without data databases.
func (m migration) record() records.Object {
	r := records.Object{
		records.M("object", m.object), records.M("result", m.result), records.M("from_version", m.from),
		records.M("version", m.to),
	}
	if len(m.data) > 0 {
		r = append(r, records.M("data", m.data))
	}
	return r
}

func (m migration) text(s cli.Screen) string {
	lines := []string{s.Wrap(m.object + ": " + m.result)}
	for _, d := range m.data {
		lines = append(lines, s.Wrap(d.Name+" at "+d.Object+": "+d.Result))
	}
	return strings.Join(lines, "\n")
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
			return o.Write(cmd.OutOrStdout(), cli.TableResult(list, migrationRow))
		},
	}
	cli.AddConnectionFlags(cmd)
	cli.AddOutputFlags(cmd, &o)
	return cmd
}

func migrationRow(m schema.Migration) cli.Row {
	applied := "pending"
	if !m.AppliedAt.IsZero() {
		applied = cli.TimeText(m.AppliedAt)
	}
	return cli.Row{cli.Figure("VERSION", m.Version), cli.Text("NAME", m.Name), cli.Text("APPLIED", applied)}
}
