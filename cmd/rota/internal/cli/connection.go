package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/schema"
)

// AddConnectionFlags adds the flags of all commands that connect to a database.
func AddConnectionFlags(cmd *cobra.Command) {
	cmd.Flags().StringP("config", "c", "rota.yaml", "configuration file; given by hand, it wins over the environment")
	config.AddFlags(cmd.Flags(), "database", "database_file")
	_ = cmd.MarkFlagFilename("database-file") // fails for unknown flags only
	cmd.Flags().BoolP("verbose", "v", false, "show on stderr which database is used, and where its URL comes from")
}

// AddDataFlags adds the flags of the commands that use data databases.
func AddDataFlags(cmd *cobra.Command) { config.AddFlags(cmd.Flags(), "data", "data_file") }

// Kinds returns the kinds of the databases of a configuration by their URLs: of the roster under the empty name, and of
// the data databases.
func Kinds(conn config.Connection) (map[string]schema.Dialect, error) {
	of, err := center.DialectOf(anydb.URL(conn.Database))
	kinds := map[string]schema.Dialect{"": of}
	for _, d := range usedData(conn) {
		of, wrong := center.DialectOf(anydb.URL(d.URL))
		kinds[d.Name] = of
		if err == nil && wrong != nil {
			err = fmt.Errorf("data.%s: %w", d.Name, wrong)
		}
	}
	return kinds, err
}

// usedData returns the data databases that the command uses.
func usedData(conn config.Connection) []config.DataDatabase {
	return slices.DeleteFunc(slices.Clone(conn.Data), func(d config.DataDatabase) bool { return d.URL == "" })
}

// AddData adds the data databases of a configuration to the center. It connects to none.
func AddData(c *center.Center, conn config.Connection) error {
	for _, d := range usedData(conn) {
		if _, err := c.FenceIn(d.Name, anydb.URL(d.URL)); err != nil {
			return err
		}
	}
	return nil
}

// ConfigPath returns the path of the configuration file.
func ConfigPath(cmd *cobra.Command) string {
	return cmd.Flag("config").Value.String()
}

// ReadConnection reads the connection for a command that can do without a
// rota.yaml: without -c, it reads rota.yaml only if the file exists.
func ReadConnection(cmd *cobra.Command) (config.Connection, error) {
	path := ConfigPath(cmd)
	if _, err := os.Stat(path); err != nil && !cmd.Flags().Changed("config") {
		path = ""
	}
	c, err := config.LoadConnection(path, cmd.Flags())
	if err != nil {
		return c, Usage(err)
	}
	return c, nil
}

// LoadConnection is ReadConnection, and shows the connection with -v.
func LoadConnection(cmd *cobra.Command) (config.Connection, error) {
	c, err := ReadConnection(cmd)
	if err == nil {
		ShowConnection(cmd, c)
	}
	return c, err
}

// ShowConnection writes to stderr, with -v, which roster the command uses. It does not write the password. If the value
// is not a URL, it has no address, and the command is about to refuse it.
func ShowConnection(cmd *cobra.Command, c config.Connection) {
	verbose, err := cmd.Flags().GetBool("verbose")
	address := anydb.URL(c.Database).Address
	if err != nil || !verbose || address == "" {
		return
	}
	line := "rota: database " + address + " from " + c.DatabaseFrom
	if cmd.Flags().Lookup("own-sign") != nil {
		line += ", own_sign " + cmp.Or(c.OwnSign, center.DefaultOwnSign)
	}
	SayError(cmd, line)
}

// openConnection never creates the tables: a mistyped URL must not make a second
// roster.
func openConnection(ctx context.Context, conn config.Connection) (*ops.Client, error) {
	if _, err := Kinds(conn); err != nil {
		return nil, Usage(err)
	}
	to := anydb.URL(conn.Database)
	c, err := center.Open(ctx, to, center.Options{
		OwnSign: conn.OwnSign, Schema: center.SchemaRequire, FailUnreachable: true,
	})
	if to.Local && (errors.Is(err, schema.ErrMissing) || errors.Is(err, fs.ErrNotExist)) { // a worker makes them here
		return nil, fmt.Errorf("%w; if a worker has just started, it is making the tables: look again in a moment", err)
	}
	if err != nil {
		return nil, err
	}
	if err := AddData(c, conn); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return ops.New(c), nil
}

// AddRosterFlags adds the flags of the commands that work on a roster.
func AddRosterFlags(cmd *cobra.Command) {
	AddConnectionFlags(cmd)
	config.AddFlags(cmd.Flags(), "own_sign")
}

// WithRoster opens the roster for one command and closes it afterwards.
func WithRoster(cmd *cobra.Command, f func(ctx context.Context, c *ops.Client) error) (err error) {
	c, err := OpenRoster(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err = f(cmd.Context(), c); !errors.Is(err, center.ErrUnknownTask) {
		return err
	}
	if names, _ := c.Tasks().Names(cmd.Context()); len(names) == 0 { // else, or if they cannot be read, it is another name
		return fmt.Errorf("%w, as there is none yet; if a worker has just started, it is making its own: look again in a "+
			"moment", err)
	}
	return err
}

// OpenRoster opens the roster of the command's flags.
func OpenRoster(cmd *cobra.Command) (*ops.Client, error) {
	conn, err := LoadConnection(cmd)
	if err != nil {
		return nil, err
	}
	return openConnection(cmd.Context(), conn)
}

// Actor returns user@host, which the events record for a change.
func Actor() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return AtHost(name)
}

// AtHost returns name@host.
func AtHost(name string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}

// SettingsOf returns the settings of the tasks of a file.
func SettingsOf(tasks []config.Task) (settings []ops.TaskSettings) {
	for _, t := range tasks {
		settings = append(settings, ops.TaskSettings{Name: t.Name, Settings: t.Settings, Given: t.Given})
	}
	return settings
}
