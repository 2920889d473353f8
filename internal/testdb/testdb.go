// Package testdb gives tests fresh, empty databases on PostgreSQL, MariaDB and SQLite.
//
// The servers are those of ROTA_TEST_POSTGRES_URL and ROTA_TEST_MYSQL_URL, whose users must be allowed to
// create databases. Where a variable is unset, the first use in a process starts a private throw-away server
// from installed binaries; it ends with the process, however that ends. A database that cannot be had fails
// the test: a suite that skips what it cannot reach proves nothing. ROTA_TEST_DATABASES, a comma-separated
// list of kinds, asks for fewer.
//
// A server that happens to run on the machine is never used unless its URL was given.
package testdb

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The kinds of database, named like the schemes of their URLs. Tests of MySQL run on MariaDB.
const (
	Postgres = "postgres"
	MySQL    = "mysql"
	SQLite   = "sqlite"
)

// Pooler is PgBouncer, which stands in front of a PostgreSQL server and is no kind of database.
const Pooler = "pgbouncer"

// Each runs f as one subtest per wanted kind of database, named like the kind, with the URL of a database
// of its own as [URL] makes it. The subtests run one after the other unless f calls t.Parallel.
func Each(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	for _, kind := range Kinds(t) {
		t.Run(kind, func(t *testing.T) { f(t, URL(t, kind)) })
	}
}

// Kinds returns the kinds of database that the tests shall run on: all three, unless ROTA_TEST_DATABASES
// names fewer.
func Kinds(t testing.TB) []string {
	t.Helper()
	kinds, err := Wanted()
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// URL returns the URL of a fresh, empty database of the given kind. It is dropped when the test ends, and
// connections that are still open to it are cut. A test of a kind that ROTA_TEST_DATABASES leaves out is skipped.
func URL(t testing.TB, kind string) string {
	t.Helper()
	if !slices.Contains(Kinds(t), kind) {
		t.Skipf("ROTA_TEST_DATABASES leaves out %s", kind)
	}
	if kind == SQLite {
		return "sqlite:" + filepath.Join(t.TempDir(), "rota.db")
	}
	server, err := shared[kind]()
	if err != nil {
		t.Fatal(err)
	}
	return fresh(t, server.URL())
}

// Own returns a private server of the given kind, for a test that stops or kills it. It ends with the test.
// A test of a kind that ROTA_TEST_DATABASES leaves out is skipped, and so is one of a kind that has a URL in
// the environment but no installed binaries.
func Own(t testing.TB, kind string) *Server {
	t.Helper()
	if !slices.Contains(Kinds(t), kind) {
		t.Skipf("ROTA_TEST_DATABASES leaves out %s", kind)
	}
	if os.Getenv(Variable(kind)) != "" && !Installed(kind) {
		t.Skipf("%s is not installed here, only served at %s", kind, Variable(kind))
	}
	server, err := StartServer(kind)
	return kept(t, server, err)
}

// kept returns the server, which ends with the test.
func kept(t testing.TB, server *Server, err error) *Server {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// shared are the servers of this process, by kind. They are held for good: the garbage collector would close
// the pipe to the keeper of a forgotten one, which ends it.
var shared = map[string]func() (*Server, error){
	Postgres: sync.OnceValues(func() (*Server, error) { return given(Postgres) }),
	MySQL:    sync.OnceValues(func() (*Server, error) { return given(MySQL) }),
}

// given returns the server whose URL is in the environment, or starts one.
func given(kind string) (*Server, error) {
	url := os.Getenv(Variable(kind))
	if url == "" {
		return StartServer(kind)
	}
	if !strings.HasPrefix(url, kind+"://") {
		return nil, fmt.Errorf("%s must start with %s://", Variable(kind), kind)
	}
	return &Server{url: url}, nil
}

// Wanted returns what [Kinds] does, for programs that are not tests.
func Wanted() ([]string, error) {
	all := []string{Postgres, MySQL, SQLite}
	list := os.Getenv("ROTA_TEST_DATABASES")
	if list == "" {
		return all, nil
	}
	var kinds []string
	for kind := range strings.SplitSeq(list, ",") {
		kind = strings.TrimSpace(kind)
		if !slices.Contains(all, kind) {
			return nil, fmt.Errorf("ROTA_TEST_DATABASES names %q: want a comma-separated list of %s",
				kind, strings.Join(all, ", "))
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}
