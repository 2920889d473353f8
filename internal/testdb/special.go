package testdb

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Pooled returns a PgBouncer in transaction mode in front of the PostgreSQL database at the given URL. The URL of the
// PgBouncer leads to the same database. It is private, has eight connections to the server, and ends with the test. If
// ROTA_TEST_PGBOUNCER_URL is set and the database is on the server of ROTA_TEST_POSTGRES_URL, Pooled returns that
// PgBouncer instead, which a test cannot stop.
func Pooled(t testing.TB, database string) *Server {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	given := os.Getenv(engines[Pooler].variable)
	if given != "" && sameHost(u, os.Getenv(engines[Postgres].variable)) {
		pooler, err := url.Parse(given)
		if err != nil {
			t.Fatal(err)
		}
		u.Host, u.User = pooler.Host, pooler.User
		return &Server{url: u.String()}
	}
	server, err := StartPooler(database)
	return kept(t, server, err)
}

// StartPooler starts the PgBouncer of [Pooled] in front of the server of a PostgreSQL database. It leads to all
// databases of the server.
func StartPooler(database string) (*Server, error) {
	own, err := url.Parse(database)
	if err != nil {
		return nil, err
	}
	target := fmt.Sprintf("host=%s port=%s user='%s'", own.Hostname(), own.Port(), quoted(own.User.Username()))
	if password, ok := own.User.Password(); ok {
		target += fmt.Sprintf(" password='%s'", quoted(password))
	}
	own.RawQuery = "sslmode=disable"
	return start(plan{kind: Pooler, env: []string{"TARGET=" + target}, url: func(port int) string {
		own.Host = fmt.Sprintf("127.0.0.1:%d", port)
		return own.String()
	}})
}

func sameHost(u *url.URL, raw string) bool {
	other, err := url.Parse(raw)
	return err == nil && other.Host == u.Host
}

// quoted escapes a value of a connection string.
func quoted(s string) string { return strings.ReplaceAll(s, "'", "''") }

// Standby returns a PostgreSQL server that follows another server asynchronously, through a [Proxy], and has all that
// the other one had. To make the standby stay behind, cut the connection and refuse new ones. SELECT pg_promote() makes
// it a primary. It ends with the test.
func Standby(t testing.TB, primary *Server) (*Server, *Proxy) {
	t.Helper()
	through, proxy := Through(t, primary.URL())
	server, err := startStandby(through)
	return kept(t, server, err), proxy
}

// Replicated returns two MariaDB servers. The second one replicates the first one asynchronously after [Follow]. They
// end with the test.
func Replicated(t testing.TB) (primary, replica *Server) {
	t.Helper()
	var servers [2]*Server
	for i := range servers {
		server, err := start(plan{
			kind: MariaDB, env: []string{fmt.Sprintf("SERVE=--log-bin --server-id=%d", i+1)},
			url: func(port int) string { return fmt.Sprintf(engines[MariaDB].url, port) },
		})
		servers[i] = kept(t, server, err)
	}
	return servers[0], servers[1]
}

// Follow is the statements with which a MariaDB server begins to replicate another one.
func Follow(primary *Server) []string {
	u, _ := url.Parse(primary.URL()) // its own URL
	return []string{
		fmt.Sprintf("CHANGE MASTER TO MASTER_HOST = '%s', MASTER_PORT = %s, MASTER_USER = '%s'",
			u.Hostname(), u.Port(), u.User.Username()),
		"START SLAVE",
	}
}

// Starting returns a private PostgreSQL server that does not finish its start: it answers each connection that it is
// starting up (57P03), until finish is called. Then it answers as any other. It ends with the test.
func Starting(t testing.TB) (server *Server, finish func()) {
	t.Helper()
	server = Own(t, Postgres)
	// It recovers from an archive that answers when a file is gone. The keeper waits meanwhile.
	hold := filepath.Join(server.dir, "data", "hold")
	must(t, run(server, `ALTER SYSTEM SET restore_command = 'while [ -e hold ]; do sleep 0.05; done; false'`,
		`COPY (SELECT 1) TO PROGRAM 'cat >/dev/null; touch hold recovery.signal'`))
	must(t, server.Stop())
	started := make(chan error, 1)
	go func() { started <- server.Start() }()
	finish = sync.OnceFunc(func() {
		must(t, os.Remove(hold))
		must(t, <-started)
	})
	t.Cleanup(finish)
	// Until it listens, it answers nothing.
	u, err := url.Parse(server.URL())
	must(t, err)
	for {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", u.Host)
		if err == nil {
			must(t, conn.Close())
			return server, finish
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// OwnDisk returns a private PostgreSQL server with a disk that the test can fill: see [Server.Fill]. It ends with the
// test. Without the right to mount, the test is skipped.
func OwnDisk(t testing.TB) *Server {
	t.Helper()
	if err := exec.Command("unshare", "--mount", "true").Run(); err != nil || os.Geteuid() != 0 {
		t.Skipf("a disk that can be filled takes root and mount: %v", err)
	}
	server, err := start(plan{
		kind: Postgres, disk: 96,
		env: []string{"INITDB=--wal-segsize=1", "SERVE=-c min_wal_size=2MB -c max_wal_size=8MB"},
		url: func(port int) string { return fmt.Sprintf(engines[Postgres].url, port) },
	})
	return kept(t, server, err)
}
