package center

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/schema"
)

// guard refuses, at the start, a database in which the roster's promises cannot hold.
func (c *Center) guard(ctx context.Context, mode SchemaMode) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := c.address.ping(ctx, c.store); err != nil {
		return err
	}
	check := map[schema.Dialect]func(context.Context) error{
		schema.Postgres: c.guardPostgres,
		schema.MySQL:    c.guardMySQL,
		schema.SQLite:   c.guardSQLite,
	}[c.dialect.name]
	if err := check(ctx); err != nil {
		return err
	}
	if err := c.guardSchema(ctx, mode); err != nil {
		return err
	}
	return c.guardEngine(ctx)
}

// openTimeout bounds Open: connect, look round, create the tables if that is to be done.
const openTimeout = 30 * time.Second

func (c *Center) guardSchema(ctx context.Context, mode SchemaMode) error {
	err := schema.Check(ctx, c.store, c.dialect.name)
	if !errors.Is(err, schema.ErrMissing) {
		return err
	}
	if mode == SchemaRequire || mode == SchemaAuto && !c.address.loopback {
		return err
	}
	if err := c.createTables(ctx); err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	c.log.WithField("database", c.address.String()).Info("created the roster's tables")
	return nil
}

func (c *Center) createTables(ctx context.Context) error {
	db := c.store
	if c.address.path != memory {
		own, err := c.address.open(roleSchema)
		if err != nil {
			return err
		}
		defer own.Close() // what it did is done
		db = own
	}
	_, _, err := schema.Up(ctx, db, c.dialect.name)
	return err
}

func (c *Center) guardPostgres(ctx context.Context) error {
	var version int
	var name, readOnly string
	var standby bool
	err := c.store.QueryRowContext(ctx, `SELECT CAST(current_setting('server_version_num') AS integer),
		current_setting('server_version'), current_setting('transaction_read_only'), pg_is_in_recovery()`).
		Scan(&version, &name, &readOnly, &standby)
	switch {
	case err != nil:
		return fmt.Errorf("ask for the version: %w", err)
	case version < 140000:
		return fmt.Errorf("PostgreSQL %s is too old: 14 or newer is needed", name)
	case standby:
		return errors.New("this PostgreSQL is a standby (a replica): connect to the primary")
	case readOnly == "on":
		return errors.New("this PostgreSQL is read-only (default_transaction_read_only): a roster needs to write")
	}
	return nil
}

func (c *Center) guardMySQL(ctx context.Context) error {
	var version string
	var readOnly int
	if err := c.store.QueryRowContext(ctx, "SELECT VERSION(), @@global.read_only").Scan(&version, &readOnly); err != nil {
		return fmt.Errorf("ask for the version: %w", err)
	}
	if err := oldMySQL(version); err != nil {
		return err
	}
	if readOnly != 0 {
		return errors.New("this server is read-only (read_only = 1: a replica?): connect to the primary")
	}
	var name, value string
	err := c.store.QueryRowContext(ctx, "SHOW VARIABLES LIKE 'wsrep_on'").Scan(&name, &value)
	c.writeFence = err == nil && strings.EqualFold(value, "ON") // no such variable is no error: MySQL has no Galera
	return nil
}

var mysqlVersion = regexp.MustCompile(`^(\d+)\.(\d+)`)

func oldMySQL(version string) error {
	kind, least := "MySQL", [2]int{8, 0}
	if strings.Contains(version, "MariaDB") {
		kind, least = "MariaDB", [2]int{10, 6}
	}
	m := mysqlVersion.FindStringSubmatch(version)
	if m == nil {
		return fmt.Errorf("%s %q: cannot read the version", kind, version)
	}
	major, errMajor := strconv.Atoi(m[1])
	minor, errMinor := strconv.Atoi(m[2])
	if err := errors.Join(errMajor, errMinor); err != nil {
		return fmt.Errorf("%s %q: cannot read the version: %w", kind, version, err)
	}
	if major < least[0] || major == least[0] && minor < least[1] {
		return fmt.Errorf("%s %s is too old: %d.%d or newer is needed", kind, version, least[0], least[1])
	}
	return nil
}

func (c *Center) guardSQLite(ctx context.Context) error {
	var mode string
	if err := c.store.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return fmt.Errorf("ask for the journal mode: %w", err)
	}
	if mode != "wal" && c.address.path != memory {
		return fmt.Errorf("the file is in journal mode %s and cannot be put into WAL mode: is it read-only, or on a network file system?", mode)
	}
	return nil
}

// guardEngine refuses tables that a non-transactional engine of MySQL holds: they would take
// part in no transaction, and the fence would guard nothing.
func (c *Center) guardEngine(ctx context.Context) error {
	if c.dialect.name != schema.MySQL {
		return nil
	}
	var table, engine string
	err := c.store.QueryRowContext(ctx, `SELECT table_name, engine FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name LIKE 'schedule\_%' AND table_type = 'BASE TABLE' AND engine <> 'InnoDB'
		ORDER BY table_name LIMIT 1`).Scan(&table, &engine)
	if noRows(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ask for the engines: %w", err)
	}
	return fmt.Errorf("table %s has the engine %s, which has no transactions: ALTER TABLE %s ENGINE = InnoDB", table, engine, table)
}
