// Package testdb gives tests fresh, empty databases on PostgreSQL, MySQL, MariaDB and SQLite.
//
// ROTA_TEST_POSTGRES_URL, ROTA_TEST_MYSQL_URL and ROTA_TEST_MARIADB_URL name the servers. Their users need the right to
// create databases. If a variable is unset, the first use in a process starts a private throw-away server from installed
// binaries. It ends with the process, also if the process is killed. A test fails if it cannot get its database: a suite
// that skips unreachable databases proves nothing. ROTA_TEST_DATABASES, a comma-separated list of kinds, selects fewer
// databases.
//
// MySQL and MariaDB understand most of each other's SQL, and differ where it matters. The tests of packages that hold
// SQL of ours run on both (see [EveryEngine]), all others on one of them.
//
// ROTA_TEST_BIN names the directory of the programs of another version of a server. ROTA_TEST_ALSO names what clusters
// need and [Needs] does not have, so that package run installs it. With pgbouncer, standby or patroni in it, the
// PostgreSQL server of package run is behind a PgBouncer, has a synchronous standby, or is the primary of a cluster.
//
// The data of private servers and the SQLite files are in /dev/shm if 4 GB are free there, and in /tmp otherwise.
// ROTA_TEST_DIR names another directory.
//
// Tests never use a server that runs on the machine unless a variable names it.
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

// The kinds of database. TiDB is for make engine-tidb: only a list in ROTA_TEST_DATABASES names it, and tests whose SQL
// is that of one kind do not know it.
const (
	Postgres = "postgres"
	MySQL    = "mysql"
	MariaDB  = "mariadb"
	SQLite   = "sqlite"
	TiDB     = "tidb"
)

// Pooler is PgBouncer. It stands in front of a PostgreSQL server and is no kind of database.
const Pooler = "pgbouncer"

// What clusters need: see [Standby], [StartCluster] and [Galera].
const (
	standby = "standby"
	patroni = "patroni"
	etcd    = "etcd"
	galera  = "galera"
)

// Each runs f as a subtest for each wanted kind of database, with the URL of a database of its own (see [URL]). The
// subtests have the names of the kinds. They run one after the other unless f calls t.Parallel.
func Each(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	for _, kind := range Kinds(t) {
		t.Run(kind, func(t *testing.T) { f(t, URL(t, kind)) })
	}
}

// EachIfLong is Each, and with -short it runs f on SQLite alone. It is for tests of what is above the SQL, such as texts
// and the arguments of commands. The SQL below has tests of its own on each kind.
func EachIfLong(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	if testing.Short() && slices.Contains(Kinds(t), SQLite) {
		t.Run(SQLite, func(t *testing.T) { f(t, URL(t, SQLite)) })
		return
	}
	Each(t, f)
}

// Kinds returns the kinds of database on which the tests of a package run. After [EveryEngine] these are PostgreSQL,
// MySQL, MariaDB and SQLite. Without it one of MySQL and MariaDB is enough: MySQL, or MariaDB with -short, which makes
// and drops a database in a quarter of the time. ROTA_TEST_DATABASES selects fewer; MySQL and MariaDB stand in for each
// other then.
func Kinds(t testing.TB) []string {
	t.Helper()
	kinds := wanted(t)
	if everyEngine || !slices.Contains(kinds, MySQL) || !slices.Contains(kinds, MariaDB) {
		return kinds
	}
	spared := MariaDB
	if testing.Short() {
		spared = MySQL
	}
	return slices.DeleteFunc(kinds, func(kind string) bool { return kind == spared })
}

var everyEngine bool

// EveryEngine makes the tests of a package run on MySQL and on MariaDB. The TestMain of a package that holds SQL of ours
// calls it, before it runs the tests.
func EveryEngine() { everyEngine = true }

// wanted is [Wanted] for tests.
func wanted(t testing.TB) []string {
	t.Helper()
	kinds, err := Wanted()
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// skipUnwanted skips the test if ROTA_TEST_DATABASES omits the kind.
func skipUnwanted(t testing.TB, kind string) {
	t.Helper()
	if !slices.Contains(wanted(t), kind) {
		t.Skipf("ROTA_TEST_DATABASES omits %s", kind)
	}
}

// URL returns the URL of a fresh, empty database of the given kind. When the test ends, URL cuts the connections that
// are still open to it and drops it. URL skips the test if ROTA_TEST_DATABASES omits the kind.
func URL(t testing.TB, kind string) string {
	t.Helper()
	skipUnwanted(t, kind)
	if kind == SQLite {
		return "sqlite:" + filepath.Join(ownDir(t), "rota.db")
	}
	server, err := shared[kind]()
	if err != nil {
		t.Fatal(err)
	}
	return fresh(t, server.URL())
}

// Own returns a private server of the given kind, for a test that stops or kills it. It ends with the test. Own skips
// the test if ROTA_TEST_DATABASES omits the kind, or if the kind has a URL in the environment but no installed
// binaries. The options are those of the server's command line.
func Own(t testing.TB, kind string, options ...string) *Server {
	t.Helper()
	skipUnwanted(t, kind)
	if os.Getenv(Variable(kind)) != "" && !Installed(kind) {
		t.Skipf("%s is not installed here; %s names a server that the test cannot stop", kind, Variable(kind))
	}
	server, err := start(planOf(kind, "SERVE="+strings.Join(options, " ")))
	return kept(t, server, err)
}

// kept returns the server and closes it when the test ends.
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

// shared is the servers of this process, by kind. They stay referenced: otherwise the garbage collector would close
// the pipe to the keeper, which ends the server.
var shared = map[string]func() (*Server, error){
	Postgres: sync.OnceValues(func() (*Server, error) { return given(Postgres) }),
	MySQL:    sync.OnceValues(func() (*Server, error) { return given(MySQL) }),
	MariaDB:  sync.OnceValues(func() (*Server, error) { return given(MariaDB) }),
	TiDB:     sync.OnceValues(func() (*Server, error) { return given(TiDB) }),
}

// given returns the server whose URL is in the environment, or starts one.
func given(kind string) (*Server, error) {
	url := os.Getenv(Variable(kind))
	if url == "" {
		return StartServer(kind)
	}
	if scheme, _, _ := strings.Cut(engines[kind].url, "://"); !strings.HasPrefix(url, scheme+"://") {
		return nil, fmt.Errorf("%s must start with %s://", Variable(kind), scheme)
	}
	return &Server{url: url}, nil
}

// Wanted returns the kinds of database that tests may use: all but TiDB, unless ROTA_TEST_DATABASES names others.
func Wanted() ([]string, error) {
	usual := []string{Postgres, MySQL, MariaDB, SQLite}
	all := append(slices.Clone(usual), TiDB)
	list := os.Getenv("ROTA_TEST_DATABASES")
	if list == "" {
		return usual, nil
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
