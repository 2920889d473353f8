package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// DB is an open database: a pool for each role, and counts of the attempts. Its methods may be called concurrently.
type DB struct {
	*Dialect // of Database, until the caller of Open has set what Probe returns
	Database Database

	Store     *sql.DB // transactions of the roster
	Heartbeat *sql.DB // one connection, for heartbeats only
	Dealers   *sql.DB // for the code of the user

	mu     sync.Mutex
	counts Counts
}

// storeConns is the size of the store's pool.
const storeConns = 4

// IdleDealerConns is the number of idle connections that stay open for dealers. With the default of database/sql, two,
// a process with more executors would connect again for each batch.
const IdleDealerConns = 16

// maxIdleTime is how long an idle connection stays open, except for the connection of heartbeats: a process at rest has
// few connections, so that a hundred of them do not use up those of a server.
const maxIdleTime = time.Minute

// Open opens the pools. It does not connect.
func Open(d Database, o PoolOptions) (*DB, error) {
	db := &DB{Dialect: d.Dialect, Database: d, counts: Counts{Errors: map[Class]int64{}}}
	pools := []struct {
		pool      **sql.DB
		role      Role
		max, idle int
	}{
		{&db.Store, RoleStore, storeConns, storeConns},
		{&db.Heartbeat, RoleHeartbeat, 1, 1},
		{&db.Dealers, RoleDealers, 0, IdleDealerConns},
	}
	if d.Dialect.OneWriter {
		pools[0].max, pools[0].idle = 1, 1 // the roster's writers wait for the pool, which is fair, and not for busy_timeout
	}
	for _, p := range pools {
		if d.Memory && db.Store != nil {
			*p.pool = db.Store // a database in memory has one connection
			continue
		}
		pool, err := d.Pool(p.role, o)
		if err != nil {
			return nil, errors.Join(err, db.Close())
		}
		pool.SetMaxOpenConns(p.max)
		pool.SetMaxIdleConns(p.idle)
		if p.role != RoleHeartbeat && !d.Dialect.OneWriter { // a connection to a file costs the server nothing
			pool.SetConnMaxIdleTime(idleTime(d.Dialect, p.role, o))
		}
		*p.pool = pool
	}
	return db, nil
}

// idleTime returns how long an idle connection of a pool stays open. It is less than the limit for transactions of
// dealers, which MySQL applies to idle connections as well (F6).
func idleTime(d *Dialect, r Role, o PoolOptions) time.Duration {
	if r == RoleDealers && d.IdleLimit == "" && o.IdleTxTimeout > 0 {
		return min(maxIdleTime, o.IdleTxTimeout/2)
	}
	return maxIdleTime
}

// Close closes all pools, and returns what a database answers to that, as SQLite does when it cannot write its file.
// The driver of a server sends a farewell, and on a connection that was broken before it gets an error without an
// answer. Close does not return that: the connection is closed all the same. Otherwise a program that has handed
// everything over would end as failed, because a firewall has reset its idle connections.
func (db *DB) Close() error {
	var errs []error
	closed := map[*sql.DB]bool{nil: true}
	for _, pool := range []*sql.DB{db.Dealers, db.Heartbeat, db.Store} {
		if !closed[pool] {
			closed[pool] = true
			err := pool.Close()
			if class := db.Class(err); class != Broken && class != Other {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Each calls scan for each row that a query on the store returns.
func (db *DB) Each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	return db.On(db.Store).Each(ctx, scan, query, args...)
}

// On reads on another pool than the store, or in a transaction.
func (db *DB) On(q Queryer) Reading { return Reading{q, db.Dialect} }

// QueryRow asks the store for one row.
func (db *DB) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return db.Store.QueryRowContext(ctx, db.SQL(query), args...)
}

// Exec runs a statement on the store, outside of transactions, and returns how many rows it matched.
func (db *DB) Exec(ctx context.Context, query string, args ...any) (int, error) {
	return Affected(Single{db.Store}.ExecContext(ctx, db.SQL(query), args...))
}

// Repeat does what Exec does for a statement whose repetition does no harm: it tries again as [DB.Retry] does. Of a
// statement whose reply was lost, it returns the rows that the repetition matched.
func (db *DB) Repeat(ctx context.Context, query string, args ...any) (matched int, err error) {
	err = db.Retry(ctx, func() (clean bool, err error) {
		matched, err = db.Exec(ctx, query, args...)
		return true, err
	})
	return matched, err
}

// Clock returns the time of the database, in UTC.
func (db *DB) Clock(ctx context.Context) (time.Time, error) {
	return Value[time.Time](ctx, db, "SELECT {now}")
}

// Counts returns the counts so far.
func (db *DB) Counts() Counts {
	db.mu.Lock()
	defer db.mu.Unlock()
	c := db.counts
	c.Errors = maps.Clone(c.Errors)
	return c
}

// Connect opens a connection of a pool. The error of an unreachable database is one line.
func Connect(ctx context.Context, pool *sql.DB) error {
	if err := pool.PingContext(ctx); err != nil {
		return fmt.Errorf("cannot connect: %w", err)
	}
	return nil
}
