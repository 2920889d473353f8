package testdb

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	cached   bool   // its programs are in the user's cache: see [MySQLCache]
}

var engines = map[string]engine{
	Postgres: {
		"postgres", "ROTA_TEST_POSTGRES_URL", "postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable",
		"postgresql", false,
	},
	TiDB:    {"tidb-server", "ROTA_TEST_TIDB_URL", "mysql://root@127.0.0.1:%d/test", "", false}, // make engine-tidb builds it
	MySQL:   {"mysqld", "ROTA_TEST_MYSQL_URL", "mysql://root@127.0.0.1:%d/test", "", true},
	MariaDB: {"mariadbd", "ROTA_TEST_MARIADB_URL", "mysql://root@127.0.0.1:%d/test", "mariadb-server", false},
	Pooler:  {"pgbouncer", "ROTA_TEST_PGBOUNCER_URL", "", "pgbouncer", false},

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
	case MySQL, MariaDB:
		return []string{kind}
	case TiDB:
		return []string{TiDB, MariaDB} // for the client of MariaDB
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
	return Program(kind, engines[kind].daemon) != ""
}

// Program returns the path of a program of a kind of server, such as the one that dumps a database, or "" if it is not
// installed.
func Program(kind, name string) string {
	for _, dir := range searchPath(kind) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// searchPath returns the directories to search for the programs of a kind of server: ROTA_TEST_BIN, the directories of
// PostgreSQL in Debian, newest version first, then PATH, then directories that the PATH of some users lacks. MySQL is in
// the user's cache instead, because a mysqld on the PATH may be MariaDB under another name.
func searchPath(kind string) []string {
	given := filepath.SplitList(os.Getenv("ROTA_TEST_BIN"))
	usual := slices.Concat(filepath.SplitList(os.Getenv("PATH")), []string{"/usr/local/sbin", "/usr/sbin"})
	if engines[kind].cached {
		return slices.Concat(given, newestFirst(filepath.Join(MySQLCache(), "mysql-*"), filepath.Base))
	}
	version := func(dir string) string { return filepath.Base(filepath.Dir(dir)) }
	return slices.Concat(given, newestFirst("/usr/lib/postgresql/*/bin", version), usual)
}

// newestFirst returns the directories that match a pattern, by the numbers in their versions.
func newestFirst(pattern string, version func(dir string) string) []string {
	dirs, _ := filepath.Glob(pattern) // fails only for a malformed pattern
	numbers := func(dir string) (list []int) {
		for _, text := range digits.FindAllString(version(dir), -1) {
			n, _ := strconv.Atoi(text) // 0 if it is out of range
			list = append(list, n)
		}
		return list
	}
	slices.SortFunc(dirs, func(a, b string) int { return slices.Compare(numbers(b), numbers(a)) })
	return dirs
}

var digits = regexp.MustCompile(`\d+`)

// MySQLCache returns the directory in which package run unpacks MySQL once for all clones of the repository, or "" if
// this user has no cache.
func MySQLCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "rota")
}
