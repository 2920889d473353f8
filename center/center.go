package center

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sirupsen/logrus"

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

// DefaultOwnSign is the environment of rosters that name none.
const DefaultOwnSign = "BASE"

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
	if err := validName("own_sign", o.OwnSign, 50); err != nil {
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
	address *address
	dialect *dialect
	ownSign string
	log     logrus.FieldLogger
	onLock  func(taskType string, held time.Duration)

	store   *sql.DB // transactions under the lock row
	beat    *sql.DB // one connection, for heartbeats only
	dealers *sql.DB // the user's

	counts *counts

	writeFence bool // share locks do not reach every writer here (F3)
}

// Open connects to the database at url and checks that it can hold a roster: version, writable,
// transactional tables, schema. The forms are
//
//	postgres://user:password@host:5432/database?sslmode=verify-full
//	mysql://user:password@host:3306/database     (MySQL and MariaDB)
//	sqlite:/path/to/file.db                      (several processes of one host)
//	sqlite::memory:                              (one process, for tests)
//
// with the driver's own parameters behind the ?. Without sslmode, a PostgreSQL on a loopback
// host is spoken to in clear text, and any other must have TLS. What correctness needs is forced:
// see the package comment. The caller closes the Center after everything that uses it has ended.
func Open(ctx context.Context, url string, o Options) (*Center, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	a, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	a.mustExist = o.Schema == SchemaRequire
	c := &Center{address: a, dialect: a.dialect, ownSign: o.OwnSign, log: o.Logger, onLock: o.OnLock, counts: newCounts()}
	if err := c.openPools(); err != nil {
		return nil, fmt.Errorf("open %s: %w", a, err)
	}
	if err := c.guard(ctx, o.Schema); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", a, oneLine(err)), c.Close())
	}
	return c, nil
}

func (c *Center) openPools() error {
	pools := []struct {
		db   **sql.DB
		role role
		max  int
	}{{&c.store, roleStore, 4}, {&c.beat, roleBeat, 1}, {&c.dealers, roleDealers, 0}}
	if c.dialect.name == schema.SQLite {
		pools[0].max = 1 // one writer at a time anyway; ours queue fairly here, not by busy_timeout
	}
	for _, p := range pools {
		if c.address.path == memory && c.store != nil {
			*p.db = c.store // a database in memory is one connection
			continue
		}
		db, err := c.address.open(p.role)
		if err != nil {
			return errors.Join(err, c.Close())
		}
		db.SetMaxOpenConns(p.max)
		db.SetMaxIdleConns(max(p.max, idleDealerConns*(1-min(p.max, 1))))
		*p.db = db
	}
	return nil
}

// idleDealerConns are kept open for dealers: database/sql's two would make each batch of a
// process with more executors connect anew.
const idleDealerConns = 16

// Close closes all connections, those of DB included.
func (c *Center) Close() error {
	var errs []error
	closed := map[*sql.DB]bool{nil: true}
	for _, db := range []*sql.DB{c.dealers, c.beat, c.store} {
		if !closed[db] {
			closed[db] = true
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// DB returns the pool for dealers: the roster's own database, with the safe options forced, apart
// from the connections that the roster itself uses. Its size is not limited; the settings'
// thread_number bounds what Rota asks of it.
func (c *Center) DB() *sql.DB { return c.dealers }

// Dialect returns the kind of database.
func (c *Center) Dialect() schema.Dialect { return c.dialect.name }

// OwnSign returns the environment that this Center works in.
func (c *Center) OwnSign() string { return c.ownSign }

// Migrate brings the schema of the database at url to this program's version, and returns the
// versions before and after. Safe when several processes do it at once. Only ctx bounds how long a migration may take;
// one that others' transactions stop is tried again for a minute. On PostgreSQL it waits for who uses a table, and who
// comes later behind it.
func Migrate(ctx context.Context, url string) (from, to int64, err error) {
	err = withRole(ctx, url, roleSchema, func(db *sql.DB, d schema.Dialect) error {
		from, to, err = schema.Up(ctx, db, d)
		return err
	})
	return from, to, err
}

// MigrationStatus lists the migrations of the database at url, those to come included.
func MigrationStatus(ctx context.Context, url string) (list []schema.Migration, err error) {
	err = withRole(ctx, url, roleStore, func(db *sql.DB, d schema.Dialect) error {
		list, err = schema.Status(ctx, db, d)
		return err
	})
	return list, err
}

// withRole calls f with a pool. What is not there, only a migration makes.
func withRole(ctx context.Context, url string, r role, f func(*sql.DB, schema.Dialect) error) error {
	a, err := parseURL(url)
	if err != nil {
		return err
	}
	a.mustExist = r != roleSchema
	db, err := a.open(r)
	if err != nil {
		return fmt.Errorf("open %s: %w", a, err)
	}
	err = a.ping(ctx, db)
	if err == nil {
		err = f(db, a.dialect.name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", a, oneLine(err)), db.Close())
	}
	return db.Close()
}
