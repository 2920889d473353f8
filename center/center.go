package center

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
	"github.com/dutyrota/rota/schema"
)

// SchemaMode says what Open does about missing tables. Open never upgrades tables: only "rota migrate up" does.
type SchemaMode string

// The modes of the schema. The zero value is SchemaAuto.
const (
	SchemaAuto    SchemaMode = "auto"    // create on SQLite or a loopback host, refuse elsewhere
	SchemaCreate  SchemaMode = "create"  // create on any host
	SchemaRequire SchemaMode = "require" // never create
)

// Options are the settings of a Center. The zero value is ready to use.
type Options struct {
	// OwnSign separates environments that share one database: servers and queues of different own_signs never meet.
	// Defaults to BASE. At most 50 bytes.
	OwnSign string

	// Schema says what Open does if the tables are missing. Defaults to SchemaAuto: Open creates them on SQLite or a
	// loopback host and returns an error on other hosts, so that a mistyped URL cannot make a second roster.
	Schema SchemaMode

	// DealerConns is how many connections Center.DB opens at most, for the dealers of all task types together, and how
	// many of them stay open between two batches. A connection that was idle for a minute is closed. An executor that
	// needs one waits while all are in use. So a dealer that holds a connection, for instance inside InTx, and asks for
	// a second one can wait for ever: leave out the bound, or let it be twice the executors. Each data database has a
	// pool with this bound. The roster has at most 5 connections of its own: 4 for its transactions and one for
	// heartbeats. Defaults to no bound, and 16 that stay open.
	DealerConns int

	// Logger gets messages that no call returns as an error. docs/logging.md lists the names of the fields. Defaults to no
	// output.
	Logger *slog.Logger

	// FailUnreachable makes Open return ErrUnreachable if the database cannot be reached or takes no writes. Defaults to
	// false: Open waits for the database until its context is done, and logs that once a minute. Errors that waiting
	// does not mend, such as those of a wrong password, an unknown database or TLS, are returned at once in any case.
	FailUnreachable bool

	// BeforeTables is called by Open, once, from its goroutine, when the server has answered and before Open looks for the
	// tables and creates them. The Center has connections by then (DB, FenceIn) and knows its Dialect; nothing else may be
	// called. Open closes the Center after an error and returns the error as it is, and leaves a database without tables
	// as it was. Defaults to nothing.
	BeforeTables func(context.Context, *Center) error

	// IdleTxTimeout is how long a fenced transaction may be idle, with its client silent between two statements, before
	// the database ends it and its effects are lost (F6). A host that vanishes inside such a transaction keeps its queues
	// for as long. It also ends a healthy transaction that pauses for longer, for instance for an HTTP call inside InTx.
	// On PostgreSQL it applies to each fenced transaction, of any pool. On MySQL and MariaDB it counts in whole seconds,
	// and applies to all transactions of DB and to none of other pools: InTx logs a warning if theirs may be idle for
	// longer. SQLite ignores it. At most 24 h. Defaults to 1 min. A negative value leaves the database's own setting,
	// which is no limit unless an administrator has set one.
	IdleTxTimeout time.Duration

	// ReplyTimeout is how long a connection of DB waits for the server to answer a statement, or to take it. Then the
	// statement fails and the connection is closed. Otherwise a server that is frozen, and a proxy that has forgotten its
	// connections, would keep the queues of the calls that wait for it, while heartbeats go on over another server. On
	// MariaDB the server itself ends the statement at that age, so that it does not go on. A shorter limit in the URL
	// stays. Connections of the program's own connector have the limits of their driver, and SQLite has none. At most 24
	// h. Defaults to 1 min on a Galera cluster, where one node can freeze alone, and for data databases, and to 15 min
	// elsewhere. A negative value is no limit.
	ReplyTimeout time.Duration

	// OnLock is called after each transaction that held the lock row of a task type, with the time from the lock to the
	// reply to the commit. No other server can rebalance, join or hand over during that time. The goroutine that called
	// the Center calls it, concurrently with others; it must not block. Defaults to nothing.
	OnLock func(taskType string, held time.Duration)

	// OnRunEnd is called with each run that this Center has ended, after the commit, so at most once for each end of a
	// run in all processes together; a commit whose reply was lost is not reported. It is not called for the slots of
	// triggers that are skipped. The goroutine that called the Center, or one of a manager, calls it, concurrently with
	// others; it must not block. Defaults to nothing.
	OnRunEnd func(runs.Run)
}

func (o Options) withDefaults() Options {
	if o.OwnSign == "" {
		o.OwnSign = DefaultOwnSign
	}
	if o.Schema == "" {
		o.Schema = SchemaAuto
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.IdleTxTimeout == 0 {
		o.IdleTxTimeout = time.Minute
	}
	if o.OnLock == nil {
		o.OnLock = func(string, time.Duration) {}
	}
	return o
}

func (o Options) validate() error {
	if err := roster.ValidName("own_sign", o.OwnSign, roster.MaxOwnSign); err != nil {
		return err
	}
	if o.DealerConns < 0 {
		return fmt.Errorf("dealer_conns (%d) must not be negative", o.DealerConns)
	}
	if o.IdleTxTimeout > maxTimeout {
		return fmt.Errorf("idle_tx_timeout (%s) must be at most %s", o.IdleTxTimeout, maxTimeout)
	}
	if o.ReplyTimeout > maxTimeout {
		return fmt.Errorf("reply_timeout (%s) must be at most %s", o.ReplyTimeout, maxTimeout)
	}
	switch o.Schema {
	case SchemaAuto, SchemaCreate, SchemaRequire:
		return nil
	}
	return fmt.Errorf("schema (%q) must be auto, create or require", string(o.Schema))
}

// pools returns the options of the pools.
func (o Options) pools() sqldb.PoolOptions {
	return sqldb.PoolOptions{
		Create: o.Schema != SchemaRequire, IdleTxTimeout: max(o.IdleTxTimeout, 0), ReplyTimeout: o.ReplyTimeout,
	}
}

// bound sets how many connections the dealers have. A database in memory has one connection for all.
func (o Options) bound(pools *sqldb.DB) {
	if o.DealerConns > 0 && !pools.Database.Memory {
		pools.Dealers.SetMaxOpenConns(o.DealerConns)
		pools.Dealers.SetMaxIdleConns(o.DealerConns)
	}
}

// mayCreate reports whether tables that are missing in a database may be created.
func (o Options) mayCreate(db Database) bool {
	return o.Schema == SchemaCreate || o.Schema == SchemaAuto && db.Local
}

// maxTimeout is far below what the databases accept.
const maxTimeout = 24 * time.Hour

// Center is an open roster in a database. ops.New reads and changes it for operators. All methods may be called
// concurrently. They obey their context. While a transaction is open, they run only SQL.
type Center struct {
	db      *sqldb.DB
	ownSign string
	options Options
	log     *slog.Logger
	roster  *roster.Roster
	runs    *runs.Engine

	mu   sync.Mutex
	data map[string]*Data // by name

	unguarded unguarded
	commits   commits
	ownPools  ownPools
	sender    sender
	teller    *teller
}

// Database is a database that Open can open: postgres.URL, mysql.URL and sqlite.URL return one, each in a package of
// its own below this one, so that a program links only the driver that it uses. anydb.URL picks by the scheme of a URL.
type Database = sqldb.Database

// Open connects to the database and checks that it can hold a roster: version, writable, transactional tables, schema.
// It waits for a database that cannot be reached, unless Options.FailUnreachable is set. While another process creates
// or upgrades the tables, Open waits for it, for a minute; its error then names that process. It also returns the error
// of a malformed URL:
//
//	c, err := center.Open(ctx, postgres.URL(os.Getenv("ROTA_DATABASE")), center.Options{})
//
// Open forces the options that correctness needs on all connections: see the packages postgres, mysql and sqlite. The
// caller closes the Center after everything that uses it has ended.
func Open(ctx context.Context, db Database, o Options) (*Center, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if _, err := DialectOf(db); err != nil {
		return nil, err
	}
	pools, err := sqldb.Open(db, o.pools())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", db.Address, err)
	}
	o.bound(pools)
	c := &Center{db: pools, ownSign: o.OwnSign, options: o, log: o.Logger, sender: newSender(), teller: newTeller()}
	c.roster = &roster.Roster{
		DB: pools, OwnSign: o.OwnSign, PlannerVersion: plan.Version, OnLock: o.OnLock,
		IdleTxTimeout: max(o.IdleTxTimeout, 0),
	}
	c.roster.OnInvalid, c.roster.OnLineHeld = c.logInvalid, c.logLineHeld
	c.roster.OnGiven = c.given
	c.runs = c.newEngine(o.OnRunEnd)
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Center) open(ctx context.Context) error {
	g := guard{c}
	if err := g.reach(ctx, g.server); err != nil {
		return fmt.Errorf("open %s: %w", c.db.Database.Address, sqldb.OneLine(err))
	}
	if c.options.BeforeTables != nil {
		if err := c.options.BeforeTables(ctx, c); err != nil {
			return err
		}
	}
	if err := g.reach(ctx, g.tables); err != nil {
		return fmt.Errorf("open %s: %w", c.db.Database.Address, sqldb.OneLine(err))
	}
	return nil
}

// logInvalid logs a value in the database that no server can work with.
func (c *Center) logInvalid(ctx context.Context, taskType string, v roster.InvalidValue) {
	c.log.LogAttrs(ctx, slog.LevelError, fmt.Sprintf("invalid value in the database: %s", v),
		slog.String("task_type", taskType), slog.String("own_sign", c.ownSign),
		slog.String("table", v.Table), slog.String("row", v.Row), slog.String("column", v.Column))
}

// logLineHeld logs that another session holds the advisory lock in front of a lock row that was free.
func (c *Center) logLineHeld(ctx context.Context, taskType string) {
	c.log.LogAttrs(ctx, slog.LevelWarn, "a session that is no transaction of the roster holds the advisory lock in "+
		"front of the lock row: see pg_locks",
		slog.String("task_type", taskType), slog.String("own_sign", c.ownSign))
}

// DialectOf returns the kind of a database by its URL, without connecting to it. Center.Dialect returns what the server
// has said. DialectOf returns the error of a malformed URL.
func DialectOf(db Database) (schema.Dialect, error) {
	if db.Err != nil {
		return "", db.Err
	}
	if db.Dialect == nil {
		return "", errors.New("no database: want postgres.URL(...), mysql.URL(...) or sqlite.URL(...)")
	}
	return db.Dialect.Name, nil
}

// Close closes all connections, also the connections of DB and of data databases. It returns no error for connections
// that were broken before.
func (c *Center) Close() error {
	errs := []error{c.db.Close()}
	for _, d := range c.AllData() {
		errs = append(errs, d.db.Close())
	}
	return errors.Join(errs...)
}

// DB returns the pool for dealers: connections to the roster's database with the forced options, separate from the
// connections for the roster's own statements. Options.DealerConns bounds its size. Without that, the setting
// thread_number bounds how many connections Rota's calls of dealers use. A connection that was idle for a minute is
// closed.
func (c *Center) DB() *sql.DB { return c.db.Dealers }

// Dialect returns the kind of database, by the vendor and the version of the server.
func (c *Center) Dialect() schema.Dialect { return c.db.Name }

// DefaultOwnSign is the environment of a Center if Options.OwnSign is empty.
const DefaultOwnSign = roster.DefaultOwnSign

// OwnSign returns the environment that this Center works in.
func (c *Center) OwnSign() string { return c.ownSign }

// IsTransient reports whether the connection or a conflict with another transaction caused the error, so that the same
// call may succeed later.
func (c *Center) IsTransient(err error) bool {
	return c.db.Transient(err)
}

// IsDataError reports whether the database has refused a value or a row: it is too long or out of range, or it violates
// a constraint. Of other vendors than the roster's, only those of data databases are recognised. An error of Rota about
// a text that no database could store as it is, such as a cursor with NUL, is one, too.
func (c *Center) IsDataError(err error) bool {
	if _, is := errors.AsType[*sqldb.TextError](err); is {
		return true
	}
	return isDataError(c.db, err) || slices.ContainsFunc(c.AllData(), func(d *Data) bool { return d.isDataError(err) })
}

func isDataError(db *sqldb.DB, err error) bool {
	class := db.Class(err)
	return class == sqldb.BadData || class == sqldb.Duplicate
}

// CheckWrite returns an error if the database does not accept writes: ErrUnreachable if it does not answer. Its
// statement changes no row.
func (c *Center) CheckWrite(ctx context.Context) error {
	_, err := c.db.Exec(ctx, `UPDATE schedule_server SET beat_count = beat_count WHERE uuid = ''`)
	if err != nil && (c.db.Class(err) == sqldb.Broken || errors.Is(err, context.DeadlineExceeded)) {
		return unreachable{err}
	}
	return err
}

// Roster returns the ownership protocol: register, heartbeat, rebalance, release, leave. It is for package manager, and
// its type is internal: users and operators use package ops and those below it.
func (c *Center) Roster() *roster.Roster { return c.roster }

// Engine returns the engine of runs, for package manager. Operators use it through package ops.
func (c *Center) Engine() *runs.Engine { return c.runs }

// In returns a Center for another environment of the same database. They share their connections: Close of either
// closes both. The other Center has no data databases.
func (c *Center) In(ownSign string) (*Center, error) {
	o := Options{OwnSign: ownSign}.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	other := &Center{
		db: c.db, ownSign: o.OwnSign, options: c.options, log: c.log, roster: c.roster.In(o.OwnSign), sender: newSender(),
		teller: newTeller(),
	}
	other.roster.OnInvalid, other.roster.OnLineHeld = other.logInvalid, other.logLineHeld
	other.roster.OnGiven = other.given
	other.runs = other.newEngine(c.options.OnRunEnd)
	return other, nil
}

func (c *Center) newEngine(onEnd func(runs.Run)) *runs.Engine {
	d := Settings{}.WithDefaults()
	return runs.NewEngine(c.roster, c.log, runs.Defaults{
		MaxRecoveries: d.MaxRecoveries, QueueMaxAttempts: d.QueueMaxAttempts, QueueRetry: d.QueueRetry,
		RunTimeout: d.RunTimeout,
	}, onEnd, c.WakeInTx)
}
