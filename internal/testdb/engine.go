package testdb

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// engine is what the kinds of server differ in, beside the commands in server.sh.
type engine struct {
	daemon   string // the program that serves
	variable string // in the environment: the URL of a server to use
	url      string // of an empty database on a private server; %d is the port
	packages string // what Debian calls it
}

var engines = map[string]engine{
	Postgres: {"postgres", "ROTA_TEST_POSTGRES_URL", "postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", "postgresql"},
	MySQL:    {"mariadbd", "ROTA_TEST_MYSQL_URL", "mysql://root@127.0.0.1:%d/test", "mariadb-server"},
	Pooler:   {"pgbouncer", "ROTA_TEST_PGBOUNCER_URL", "", "pgbouncer"},
}

// Needs returns the servers that tests on a kind of database may start: its own, and for PostgreSQL the
// connection pooler, too.
func Needs(kind string) []string {
	switch kind {
	case Postgres:
		return []string{Postgres, Pooler}
	case MySQL:
		return []string{MySQL}
	}
	return nil
}

// Package returns the name of Debian's package that holds the programs of a kind of server.
func Package(kind string) string { return engines[kind].packages }

// Variable returns the name of the environment variable that holds the URL of the server for the given
// kind, or "" if that kind has no servers.
func Variable(kind string) string { return engines[kind].variable }

// Installed tells whether the programs are there that [StartServer] needs.
func Installed(kind string) bool {
	return slices.ContainsFunc(searchPath(), func(dir string) bool {
		_, err := exec.LookPath(filepath.Join(dir, engines[kind].daemon))
		return err == nil
	})
}

// searchPath returns where to look for the programs of the servers: where Debian puts PostgreSQL, newest
// version first, then PATH, and then the directories that it lacks for some users.
func searchPath() []string {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // fails for a malformed pattern only
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir))) // 0, the oldest, for another name
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	dirs = append(dirs, filepath.SplitList(os.Getenv("PATH"))...)
	return append(dirs, "/usr/local/sbin", "/usr/sbin")
}
