// Package stage gives the benchmarks their databases, and reads from the servers what they have done: statements,
// rows, and processor time.
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
)

// Name is what people call a kind of database here.
func Name(kind string) string {
	return map[string]string{Postgres: "PostgreSQL", MySQL: "MariaDB"}[kind]
}

// Server is a database server: that of the environment (see package testdb), or a private one.
type Server struct {
	Kind    string
	Version string

	url     string
	private *testdb.Server // nil: somebody else's
}

// Start starts a server of a kind, or takes the one whose URL is in the environment.
func Start(ctx context.Context, kind string) (s *Server, err error) {
	s = &Server{Kind: kind, url: os.Getenv(testdb.Variable(kind))}
	if s.url == "" {
		if s.private, err = testdb.StartServer(kind); err != nil {
			return nil, err
		}
		s.url = s.private.URL()
	}
	if err := s.readVersion(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("ask the %s server for its version: %w", kind, err), s.Close())
	}
	return s, nil
}

func (s *Server) readVersion(ctx context.Context) error {
	db, err := s.Fresh(ctx)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	query := map[string]string{Postgres: "SHOW server_version", MySQL: "SELECT VERSION()"}[s.Kind]
	if err := db.QueryRowContext(ctx, query).Scan(&s.Version); err != nil {
		return err
	}
	s.Version = Name(s.Kind) + " " + s.Version
	return nil
}

// Close ends a private server.
func (s *Server) Close() error {
	if s.private == nil {
		return nil
	}
	return s.private.Close()
}

// Database is a database of its own, with the roster's tables.
type Database struct {
	*center.Center
	*sql.DB // the Center's pool for dealers
	URL     string
	Server  *Server
	drop    func(context.Context) error
}

// Fresh creates a database and opens a Center on it.
func (s *Server) Fresh(ctx context.Context) (*Database, error) {
	url, drop, err := testdb.Create(ctx, s.url)
	if err != nil {
		return nil, err
	}
	c, err := center.Open(ctx, anydb.URL(url), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		return nil, errors.Join(err, drop(ctx))
	}
	return &Database{Center: c, DB: c.DB(), URL: url, Server: s, drop: drop}, nil
}

// Close closes the Center and drops the database, even if ctx is done. An error leaves the database behind, on a
// server that ends soon.
func (d *Database) Close(ctx context.Context) {
	_ = d.Center.Close()
	_ = d.drop(context.WithoutCancel(ctx))
}

// Do executes statements in turn.
func (d *Database) Do(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if _, err := d.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// Number asks for a number.
func (d *Database) Number(ctx context.Context, query string, args ...any) (n int64, err error) {
	if err := d.QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("%s: %w", query, err)
	}
	return n, nil
}

// Progress tells on the standard error what is going on.
func Progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// StartAll starts a server of each kind, or takes those of the environment. The caller closes them with [CloseAll].
func StartAll(ctx context.Context) (servers []*Server, err error) {
	for _, kind := range []string{Postgres, MySQL} {
		s, err := Start(ctx, kind)
		if err != nil {
			return nil, errors.Join(err, CloseAll(servers))
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// CloseAll ends the servers that are private.
func CloseAll(servers []*Server) error {
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// ForTest is StartAll for a test; the servers end with it.
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
