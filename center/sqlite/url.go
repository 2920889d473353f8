package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/dutyrota/rota/internal/sqldb"
)

// memory is SQLite's name of a database that ends with its one connection.
const memory = ":memory:"

// URL returns the database in the file of sqlite:/path/to/file.db. For sqlite::memory: it returns a database in memory,
// which only this process can use, for tests. center.Open returns the error of a malformed URL.
func URL(raw string) sqldb.Database {
	path, err := parse(raw)
	if err != nil {
		return sqldb.Database{Err: err}
	}
	return sqldb.Database{
		Dialect: dialect,
		Address: "sqlite:" + path,
		Local:   true,
		Memory:  path == memory,
		Connector: func(r sqldb.Role, o sqldb.PoolOptions) (driver.Connector, error) {
			return newConnector(path, r, o.Create)
		},
		Probe: func(ctx context.Context, db *sql.DB) (*sqldb.Dialect, error) {
			return dialect, probe(ctx, db, path)
		},
		CheckTx: checkTx,
	}
}

func newConnector(path string, r sqldb.Role, create bool) (driver.Connector, error) {
	pool, err := sql.Open("sqlite", "") // the driver's own functions are those of the value that it has registered
	if err != nil {
		return nil, err
	}
	var c driver.Connector = sqldb.Leaving{
		Connector: connector{pool.Driver(), path, dataSource(path, r, create), create}, Ended: ended,
	}
	if r.Brief() {
		c = preparing(c)
	}
	return c, pool.Close()
}

// connector opens a file. Unless it may create the file, a file that is missing is an error of the connection and not
// of the pool, as a server that is away is: a data database may come later.
type connector struct {
	driver       driver.Driver
	path, source string
	create       bool
}

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return c.driver }

// Connect implements driver.Connector.
func (c connector) Connect(context.Context) (driver.Conn, error) {
	if _, err := os.Stat(c.path); !c.create && errors.Is(err, fs.ErrNotExist) {
		// The driver says only that it cannot open the file.
		return nil, missing{}
	}
	conn, err := c.driver.Open(c.source)
	if err != nil {
		if dir := filepath.Dir(c.path); c.path != memory {
			if _, none := os.Stat(dir); errors.Is(none, fs.ErrNotExist) {
				err = fmt.Errorf("%w: there is no folder %s", err, dir)
			}
		}
		return nil, err
	}
	return whole{conn.(driverConn)}, nil
}

// driverConn is what a connection of the driver is.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// whole is a connection of the driver with what it lacks of a sqldb.Conn.
type whole struct{ driverConn }

// CheckNamedValue implements driver.NamedValueChecker: database/sql converts the values.
func (whole) CheckNamedValue(*driver.NamedValue) error { return driver.ErrSkip }

// ended reports whether SQLite has rolled the transaction back, and not only the statement: when a statement that
// writes was interrupted, and at some other errors, such as a full disk. Then another one can begin, which the Commit
// or Rollback of the caller ends.
func ended(c sqldb.Conn, _ error) bool {
	_, within := c.ExecContext(context.Background(), "BEGIN", nil)
	return within == nil
}

// missing is fs.ErrNotExist with what to do.
type missing struct{}

func (missing) Error() string { return `there is no such file: run "rota migrate up"` }

func (missing) Is(target error) bool { return target == fs.ErrNotExist }

// parse returns the absolute path of the file, or memory.
func parse(raw string) (string, error) {
	scheme, path, found := strings.Cut(raw, ":")
	if !found || !strings.EqualFold(scheme, "sqlite") {
		_, err := sqldb.ParseURL(raw, "sqlite:FILE")
		return "", err
	}
	path = strings.TrimPrefix(path, "//") // other tools write sqlite:///abs/path
	if path == "" {
		return "", errors.New("database URL: no file; want sqlite:FILE")
	}
	if _, params, _ := strings.Cut(path, "?"); strings.Contains(params, "=") { // a question mark alone may be in a name
		return "", sqldb.URLError("want sqlite:FILE without parameters: the roster sets those that it needs, and any other " +
			"could change what its statements mean")
	}
	if path == memory || filepath.IsAbs(path) {
		return path, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("database URL %q: %w", "sqlite:"+path, err)
	}
	return abs, nil
}

// dataSource returns the name of the database for the driver. Every transaction takes the write lock at its start:
// one that reads first and writes later would fail with SQLITE_BUSY_SNAPSHOT at once, however patient its
// busy_timeout.
//
// A statement that waits for the lock does not notice that its context has ended. So the roster's own statements wait
// briefly and are retried in Go. Those of dealers, whose code may not retry, wait longer.
func dataSource(path string, r sqldb.Role, create bool) string {
	busy := "busy_timeout(200)"
	if r == sqldb.RoleDealers {
		busy = "busy_timeout(5000)"
	}
	pragmas := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {busy, "journal_mode(WAL)", "synchronous(FULL)"},
	}
	if !create {
		pragmas.Set("mode", "rw")
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + pragmas.Encode()
}

// probe returns an error for a file that cannot be put into WAL mode.
func probe(ctx context.Context, db *sql.DB, path string) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return fmt.Errorf("ask for the journal mode: %w", err)
	}
	if mode != "wal" && path != memory {
		return fmt.Errorf("the file is in journal mode %s and cannot be put into WAL mode: is it read-only, "+
			"or on a network file system?", mode)
	}
	return nil
}
