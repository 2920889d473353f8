package center

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/dutyrota/rota/schema"
)

// role is what a pool of connections is for.
type role int

const (
	roleStore   role = iota // transactions under the lock row
	roleBeat                // heartbeats only: nothing can queue in front of them (S1)
	roleDealers             // the user's
	roleSchema              // migrations
)

// brief reports that the statements are, so that one which takes long has met a dead network. A dealer's may be anything,
// and a migration makes an index as long as the table is.
func (r role) brief() bool { return r == roleStore || r == roleBeat }

// address is a database URL that was understood.
type address struct {
	dialect   *dialect
	url       *url.URL
	path      string // SQLite's file
	mustExist bool   // do not make that file
	loopback  bool   // on this host, so that a mistyped URL cannot make a second roster elsewhere
}

// parseURL understands postgres://, mysql:// and sqlite: URLs.
func parseURL(raw string) (*address, error) {
	if path, ok := strings.CutPrefix(raw, "sqlite:"); ok {
		return sqliteAddress(path)
	}
	u, err := url.Parse(raw)
	if err != nil {
		// The error of url.Parse quotes the URL, its password included.
		return nil, fmt.Errorf("database URL: not a URL; want postgres://..., mysql://... or sqlite:FILE")
	}
	switch u.Scheme {
	case "postgres", "postgresql":
		withSSLMode(u)
		return &address{dialect: postgres, url: u, loopback: loopback(u)}, nil
	case "mysql":
		return &address{dialect: mysqlDialect, url: u, loopback: loopback(u)}, nil
	case "":
		return nil, fmt.Errorf("database URL %q: no scheme; want postgres://..., mysql://... or sqlite:FILE", u.Redacted())
	}
	return nil, fmt.Errorf("database URL %q: unknown scheme %q; want postgres, mysql or sqlite", u.Redacted(), u.Scheme)
}

// DialectOf returns the kind of database that a URL names, without connecting to it. It fails for
// what Open would not understand.
func DialectOf(url string) (schema.Dialect, error) {
	a, err := parseURL(url)
	if err != nil {
		return "", err
	}
	return a.dialect.name, nil
}

func sqliteAddress(path string) (*address, error) {
	path = strings.TrimPrefix(path, "//") // sqlite:///abs/path is what other tools write
	if path == "" {
		return nil, fmt.Errorf("database URL %q: no file; want sqlite:FILE", "sqlite:")
	}
	if path != memory && !filepath.IsAbs(path) {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("database URL %q: %w", "sqlite:"+path, err)
		}
		path = abs
	}
	return &address{dialect: sqliteDialect, path: path, loopback: true}, nil
}

// memory is SQLite's name of a database that lives as long as its one connection.
const memory = ":memory:"

// loopback reports that the URL's server is on this host.
func loopback(u *url.URL) bool {
	q := u.Query()
	host := u.Hostname()
	if h := q.Get("host"); h != "" {
		host = h
	}
	if q.Get("socket") != "" || strings.HasPrefix(host, "/") || host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// String is the URL without its password.
func (a *address) String() string {
	if a.dialect.name == schema.SQLite {
		return "sqlite:" + a.path
	}
	return a.url.Redacted()
}

// open returns a pool; it does not connect yet.
func (a *address) open(r role) (*sql.DB, error) {
	switch a.dialect.name {
	case schema.SQLite:
		return sql.Open("sqlite", sqliteDSN(a.path, r, a.mustExist))
	case schema.Postgres:
		connector, err := postgresConnector(a.url.String(), r)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(connector), nil
	case schema.MySQL:
		connector, err := mysqlConnector(a.url, r)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(connector), nil
	}
	return nil, fmt.Errorf("no driver for %s", a.dialect.name)
}

// ping connects, so that an unreachable database is told in one line.
func (a *address) ping(ctx context.Context, db *sql.DB) error {
	if _, err := os.Stat(a.path); a.mustExist && errors.Is(err, fs.ErrNotExist) && a.path != "" {
		return errors.New(`there is no such file: run "rota migrate up"`)
	}
	if err := db.PingContext(ctx); err != nil {
		return fmt.Errorf("cannot connect: %w", err)
	}
	return nil
}
