// Package stage gives the benchmarks their databases. It reads the statements, rows and CPU time from the counters of
// the servers.
package stage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
)

// The kinds of database, as package testdb names them.
const (
	Postgres = testdb.Postgres
	MySQL    = testdb.MySQL
	MariaDB  = testdb.MariaDB
)

// Name returns the name of a kind of database for people.
func Name(kind string) string {
	return map[string]string{Postgres: "PostgreSQL", MySQL: "MySQL", MariaDB: "MariaDB", testdb.TiDB: "TiDB"}[kind]
}

// Server is a database server: a private server, or the server of the environment (see package testdb).
type Server struct {
	Kind    string
	Version string

	url     string
	private *testdb.Server // nil for a server of the environment
}

// Start starts a private server, unless the environment has the URL of a server of this kind.
func Start(ctx context.Context, kind string) (s *Server, err error) {
	s = &Server{Kind: kind, url: os.Getenv(testdb.Variable(kind))}
	if s.url == "" {
		if s.private, err = testdb.StartServer(kind); err != nil {
			return nil, err
		}
		s.url = s.private.URL()
	}
	if err := s.readVersion(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("read the version of the %s server: %w", kind, err), s.Close())
	}
	return s, nil
}

func (s *Server) readVersion(ctx context.Context) error {
	db, err := s.Fresh(ctx)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	query := map[string]string{Postgres: "SHOW server_version", MySQL: "SELECT VERSION()", MariaDB: "SELECT VERSION()", testdb.TiDB: "SELECT VERSION()"}[s.Kind]
	if err := db.QueryRowContext(ctx, query).Scan(&s.Version); err != nil {
		return err
	}
	s.Version = Name(s.Kind) + " " + s.Version
	return nil
}

// Close stops the server if it is private.
func (s *Server) Close() error {
	if s.private == nil {
		return nil
	}
	return s.private.Close()
}

// Database is a new database with the tables of the roster.
type Database struct {
	*center.Center
	*sql.DB // the Center's pool for dealers
	URL     string
	Server  *Server
	drop    func(context.Context) error
}

// Fresh creates a database and opens a Center on it.
func (s *Server) Fresh(ctx context.Context) (*Database, error) {
	url, drop, err := s.Create(ctx)
	if err != nil {
		return nil, err
	}
	c, err := center.Open(ctx, anydb.URL(url), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		return nil, errors.Join(err, drop(ctx))
	}
	return &Database{Center: c, DB: c.DB(), URL: url, Server: s, drop: drop}, nil
}

// Create creates an empty database, and returns its URL and what drops it.
func (s *Server) Create(ctx context.Context) (url string, drop func(context.Context) error, err error) {
	return testdb.Create(ctx, s.url)
}

// Close closes the Center and drops the database, even if ctx is done. It ignores errors: the server ends soon.
func (d *Database) Close(ctx context.Context) {
	_ = d.Center.Close()
	_ = d.drop(context.WithoutCancel(ctx))
}

// Do executes the statements in order.
func (d *Database) Do(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if _, err := d.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// Number returns the number that the query selects.
func (d *Database) Number(ctx context.Context, query string, args ...any) (n int64, err error) {
	if err := d.QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("%s: %w", query, err)
	}
	return n, nil
}

// Epochs returns the sum of all epochs. Each change of owner adds one.
func (d *Database) Epochs(ctx context.Context) (int64, error) {
	return d.Number(ctx, `SELECT CAST(SUM(epoch) AS DECIMAL(20)) FROM schedule_queue`)
}

// Progress prints a line on the standard error.
func Progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// StartAll calls [Start] for each kind. The caller closes the servers with [CloseAll].
func StartAll(ctx context.Context) (servers []*Server, err error) {
	for _, kind := range []string{Postgres, MariaDB} {
		s, err := Start(ctx, kind)
		if err != nil {
			return nil, errors.Join(err, CloseAll(servers))
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// CloseAll stops the private servers.
func CloseAll(servers []*Server) error {
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// ForTest calls [StartAll], and [CloseAll] when the test ends.
func ForTest(t testing.TB) []*Server {
	t.Helper()
	servers, err := StartAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := CloseAll(servers); err != nil {
			t.Error(err)
		}
	})
	return servers
}
