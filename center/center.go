package center

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/runs"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/schema"
)

// SchemaMode says what Open does about missing tables. It never upgrades: that is done by
// "rota migrate up" alone.
type SchemaMode string

// The modes of the schema. The zero value is SchemaAuto.
const (
	SchemaAuto    SchemaMode = "auto"    // create on SQLite or a loopback host, elsewhere refuse
	SchemaCreate  SchemaMode = "create"  // create on any host
	SchemaRequire SchemaMode = "require" // never create
)

// Options are the settings of a Center. The zero value is ready to use.
type Options struct {
	// OwnSign separates environments that share one database: servers and queues of different
	// own_signs never meet. Defaults to BASE. At most 50 bytes.
	OwnSign string

	// Schema says what to do when the tables are missing. Defaults to SchemaAuto: they are created
	// on SQLite or a loopback host, and elsewhere Open refuses, so that a mistyped URL cannot make
	// a second roster.
	Schema SchemaMode

	// Logger gets what is worth knowing and is not an error of a call. Defaults to silence.
	Logger logrus.FieldLogger

	// OnLock is told after each transaction that held the lock row of a task type for how long it did, from the
	// lock to the answer to the commit. While it is held nobody else can plan, join or hand over. It is called
	// by whoever called the Center, concurrently, and must not block. Defaults to nothing.
	OnLock func(taskType string, held time.Duration)
}

func (o Options) withDefaults() Options {
	if o.OwnSign == "" {
		o.OwnSign = DefaultOwnSign
	}
	if o.Schema == "" {
		o.Schema = SchemaAuto
	}
	if o.Logger == nil {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		o.Logger = silent
	}
	if o.OnLock == nil {
		o.OnLock = func(string, time.Duration) {}
	}
	return o
}

func (o Options) validate() error {
	if err := roster.ValidName("own_sign", o.OwnSign, 50); err != nil {
		return err
	}
	switch o.Schema {
	case SchemaAuto, SchemaCreate, SchemaRequire:
		return nil
	}
	return fmt.Errorf("schema (%q) must be auto, create or require", string(o.Schema))
}

// Center is an open roster: the database, and the verbs that read and change who owns what. All
// methods may be called concurrently. They obey their context, and hold no transaction while
// anything but SQL runs.
type Center struct {
	db      *sqldb.DB
	ownSign string
	log     logrus.FieldLogger
	roster  *roster.Roster
	runs    *runs.Engine
}

// Database is a database that Open can open: postgres.URL, mysql.URL and sqlite.URL return one, each in a package of its
// own below this one, so that a program links only the driver that it uses. anydb.URL picks by the scheme of a URL.
type Database = sqldb.Database

// Open connects to the database and checks that it can hold a roster: version, writable, transactional tables, schema.
// It returns the error of a malformed URL, too:
//
//	c, err := center.Open(ctx, postgres.URL(os.Getenv("ROTA_DATABASE")), center.Options{})
//
// What correctness needs is forced on the connections: see the packages postgres, mysql and sqlite. The caller closes
// the Center after everything that uses it has ended.
func Open(ctx context.Context, db Database, o Options) (*Center, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if _, err := DialectOf(db); err != nil {
		return nil, err
	}
	pools, err := sqldb.Open(db, o.Schema != SchemaRequire)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", db.Address, err)
	}
	c := &Center{db: pools, ownSign: o.OwnSign, log: o.Logger}
	c.roster = &roster.Roster{DB: pools, OwnSign: o.OwnSign, OnLock: o.OnLock}
	d := Settings{}.WithDefaults()
	c.runs = runs.NewEngine(c.roster, o.Logger, runs.Defaults{
		MaxRecoveries: d.MaxRecoveries, QueueMaxAttempts: d.QueueMaxAttempts, QueueRetry: d.QueueRetry, RunTimeout: d.RunTimeout,
	})
	if err := c.guard(ctx, o.Schema); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", db.Address, oneLine(err)), c.Close())
	}
	return c, nil
}

// Close closes all connections, those of DB included.
func (c *Center) Close() error { return c.db.Close() }

// DB returns the pool for dealers: the roster's own database, with the safe options forced, apart
// from the connections that the roster itself uses. Its size is not limited; the settings'
// thread_number bounds what Rota asks of it.
func (c *Center) DB() *sql.DB { return c.db.Dealers }

// Dialect returns the kind of database.
func (c *Center) Dialect() schema.Dialect { return c.db.Name }

// OwnSign returns the environment that this Center works in.
func (c *Center) OwnSign() string { return c.ownSign }

// DialectOf returns the kind of a database, without connecting to it. It returns the error of a malformed URL.
func DialectOf(db Database) (schema.Dialect, error) {
	if db.Err != nil {
		return "", db.Err
	}
	if db.Dialect == nil {
		return "", errors.New("no database: want postgres.URL(...), mysql.URL(...) or sqlite.URL(...)")
	}
	return db.Dialect.Name, nil
}

// Migrate brings the schema of a database to this program's version, and returns the versions before and after. Several
// processes may do it at once. Only ctx bounds how long a migration may take; one that the transactions of others stop is
// tried again for a minute. On PostgreSQL it waits for the users of a table, and later users wait behind it.
func Migrate(ctx context.Context, db Database) (from, to int64, err error) {
	err = withRole(ctx, db, sqldb.RoleSchema, func(pool *sql.DB) error {
		from, to, err = schema.Up(ctx, pool, db.Dialect.Name)
		return err
	})
	return from, to, err
}

// MigrationStatus lists the migrations of a database, the pending ones included.
func MigrationStatus(ctx context.Context, db Database) (list []schema.Migration, err error) {
	err = withRole(ctx, db, sqldb.RoleStore, func(pool *sql.DB) error {
		list, err = schema.Status(ctx, pool, db.Dialect.Name)
		return err
	})
	return list, err
}

// withRole calls f with a connected pool. Only a migration creates a database that does not exist.
func withRole(ctx context.Context, db Database, r sqldb.Role, f func(*sql.DB) error) error {
	if _, err := DialectOf(db); err != nil {
		return err
	}
	pool, err := db.Pool(r, r == sqldb.RoleSchema)
	if err != nil {
		return fmt.Errorf("open %s: %w", db.Address, err)
	}
	err = sqldb.Connect(ctx, pool)
	if err == nil {
		err = f(pool)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", db.Address, oneLine(err)), pool.Close())
	}
	return pool.Close()
}

// IsTransient reports that an error came from the connection or from a collision, so that the
// same call may succeed later.
func (c *Center) IsTransient(err error) bool {
	return c.db.Transient(err)
}
