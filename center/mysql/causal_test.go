package mysql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// A server without Galera is asked once per pool, and its sessions do not set a variable that it may not know.
func TestAServerWithoutGaleraIsAskedOnce(t *testing.T) {
	d := URL(testdb.URL(t, testdb.MySQL))
	pool, err := d.Pool(sqldb.RoleDealers, sqldb.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for range 2 {
		conn, err := pool.Conn(t.Context()) // held, so that the second one is new
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		n, err := node(t.Context(), conn)
		if err != nil || n.SyncWait != "" && n.SyncWait != "0" {
			t.Errorf("%s = %s, error %v, want the default", syncVariable, n.SyncWait, err)
		}
	}
}

// F7: the first connection asks the server, and all connections that the pool gets wait for the cluster.
func TestSessionsOnGaleraWait(t *testing.T) {
	for on, want := range map[string][]string{
		"ON":  {"plain", "waiting", "waiting"},
		"OFF": {"plain", "plain"},
		"":    {"plain", "plain"}, // MySQL
	} {
		server := &fakeServer{wsrepOn: on}
		db := sql.OpenDB(&causal{Connector: server.connector("plain"), waiting: server.connector("waiting")})
		for range 2 {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		if !slices.Equal(server.made, want) {
			t.Errorf("wsrep_on = %q: connections %v, want %v", on, server.made, want)
		}
		defer db.Close()
	}
}

// A pool goes on asking until the server has answered.
func TestTheQuestionForGaleraIsAskedAgain(t *testing.T) {
	server := &fakeServer{wsrepOn: "ON", err: errors.New("wires crossed")}
	db := sql.OpenDB(&causal{Connector: server.connector("plain"), waiting: server.connector("waiting")})
	defer db.Close()
	if err := db.PingContext(t.Context()); err == nil || !strings.Contains(err.Error(), "wires crossed") {
		t.Errorf("error %v, want that of the server", err)
	}
	server.err = nil
	if err := db.PingContext(t.Context()); err != nil {
		t.Error(err)
	}
	if want := []string{"plain", "plain", "waiting"}; !slices.Equal(server.made, want) {
		t.Errorf("connections %v, want %v", server.made, want)
	}
}

// fakeServer answers the question for wsrep_on and records its connections.
type fakeServer struct {
	wsrepOn string // empty if the server does not know the variable
	err     error
	made    []string // by which connector
}

func (s *fakeServer) connector(name string) sqldriver.Connector { return fakeConnector{s, name} }

type fakeConnector struct {
	*fakeServer
	name string
}

func (c fakeConnector) Driver() sqldriver.Driver { return nil }

func (c fakeConnector) Connect(context.Context) (sqldriver.Conn, error) {
	c.made = append(c.made, c.name)
	return fakeConn{fakeServer: c.fakeServer}, nil
}

type fakeConn struct {
	sqldriver.Conn // nil: database/sql only closes the connection
	*fakeServer
}

func (fakeConn) Close() error { return nil }

func (c fakeConn) QueryContext(context.Context, string, []sqldriver.NamedValue) (sqldriver.Rows, error) {
	return &fakeRows{value: c.wsrepOn, ended: c.wsrepOn == ""}, c.err
}

type fakeRows struct {
	value string
	ended bool
}

func (*fakeRows) Columns() []string { return []string{"Variable_name", "Value"} }
func (*fakeRows) Close() error      { return nil }

func (r *fakeRows) Next(row []sqldriver.Value) error {
	if r.ended {
		return io.EOF
	}
	r.ended = true
	row[0], row[1] = []byte(wsrepOn), []byte(r.value)
	return nil
}
