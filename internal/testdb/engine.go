package testdb

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// engine has what differs between the kinds of server, except the commands in server.sh.
type engine struct {
	daemon   string // the program of the server
	variable string // the environment variable with the URL of a server to use
	url      string // of an empty database on a private server; %d is the port
	packages string // those of Debian, separated by blanks; empty if there are none
}

var engines = map[string]engine{
	Postgres: {
		"postgres", "ROTA_TEST_POSTGRES_URL", "postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable",
		"postgresql",
	},
	TiDB:   {"tidb-server", "ROTA_TEST_TIDB_URL", "mysql://root@127.0.0.1:%d/test", ""}, // make engine-tidb builds it
	MySQL:  {"mariadbd", "ROTA_TEST_MYSQL_URL", "mysql://root@127.0.0.1:%d/test", "mariadb-server"},
	Pooler: {"pgbouncer", "ROTA_TEST_PGBOUNCER_URL", "", "pgbouncer"},

	standby: {daemon: "postgres", packages: "postgresql"},
	patroni: {daemon: "patroni", packages: "patroni"},
	etcd:    {daemon: "etcd", packages: "etcd-server"},
	galera:  {daemon: "mariadbd", packages: "mariadb-server galera-4 rsync"},
}

// Needs returns the kinds of server that tests on a kind of database may start: its own and, for PostgreSQL, the
// connection pooler.
func Needs(kind string) []string {
	switch kind {
	case Postgres:
		return []string{Postgres, Pooler}
	case MySQL:
		return []string{MySQL}
	case TiDB:
		return []string{TiDB, MySQL} // for the client of MySQL
	}
	return nil
}

// Also returns what ROTA_TEST_ALSO names beside the kinds of database.
func Also() (kinds []string, err error) {
	known := []string{Pooler, standby, patroni, etcd, galera}
	for kind := range strings.SplitSeq(os.Getenv("ROTA_TEST_ALSO"), ",") {
		switch {
		case kind == "":
		case slices.Contains(known, kind):
			kinds = append(kinds, kind)
		default:
			return nil, fmt.Errorf("ROTA_TEST_ALSO names %q: want a comma-separated list of %s", kind, strings.Join(known, ", "))
		}
	}
	return kinds, nil
}

// Packages returns the packages of Debian with the programs of a kind of server, or nil if there are none.
func Packages(kind string) []string { return strings.Fields(engines[kind].packages) }

// Variable returns the environment variable with the URL of the server of a kind, or "" if the kind has no servers.
func Variable(kind string) string { return engines[kind].variable }

// Installed reports whether the programs are installed that [StartServer] needs.
func Installed(kind string) bool {
	if kind == galera {
		_, err := galeraProvider()
		return err == nil
	}
	return slices.ContainsFunc(searchPath(), func(dir string) bool {
		_, err := exec.LookPath(filepath.Join(dir, engines[kind].daemon))
		return err == nil
	})
}

// searchPath returns the directories to search for the programs of the servers: ROTA_TEST_BIN, the directories of
// PostgreSQL in Debian, newest version first, then PATH, then directories that the PATH of some users lacks.
func searchPath() []string {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // fails only for a malformed pattern
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir))) // 0 counts as the oldest version
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	return slices.Concat(filepath.SplitList(os.Getenv("ROTA_TEST_BIN")), dirs, filepath.SplitList(os.Getenv("PATH")),
		[]string{"/usr/local/sbin", "/usr/sbin"})
}
