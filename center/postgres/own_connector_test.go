package postgres

import (
	"context"
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// askOver asks the server for its version over connections of the program's own connector.
func askOver(t *testing.T, c driver.Connector) error {
	t.Helper()
	d := Connector(c)
	if d.Err != nil {
		return d.Err
	}
	pool, err := d.Pool(sqldb.RoleStore, sqldb.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	_, err = d.Probe(t.Context(), pool)
	return err
}

// Connections on which the statements of the roster would mean something else are refused with the setting.
func TestConnectorRefusesSettings(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.Postgres)
	for option, want := range map[string]string{
		"-c application_name=mine":            "",
		"-c synchronous_commit=remote_apply":  "",
		"-c synchronous_commit=off":           "", // the roster's transactions set it
		"-c standard_conforming_strings=off":  "standard_conforming_strings of the connection (off) must be on: ",
		"-c session_replication_role=replica": "session_replication_role of the connection (replica) must be origin: ",
		"-c transform_null_equals=on":         "transform_null_equals of the connection (on) must be off: ",
		"-c default_transaction_read_only=on": "this connection is read-only (it sets default_transaction_read_only)",
	} {
		cfg, err := pq.NewConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Options = option
		c, err := pq.NewConnectorConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		err = askOver(t, c)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", option, err, want)
		}
	}
}

// bare is a connector whose connections have only the methods of driver.Conn.
type bare struct{ driver.Connector }

// Connect implements driver.Connector.
func (bare) Connect(context.Context) (driver.Conn, error) { return bareConn{}, nil }

type bareConn struct{}

// Prepare implements driver.Conn.
func (bareConn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }

// Close implements driver.Conn.
func (bareConn) Close() error { return nil }

// Begin implements driver.Conn.
func (bareConn) Begin() (driver.Tx, error) { return nil, driver.ErrSkip }

// A connector that cannot give what the roster needs is refused with the reason.
func TestConnectorRefusesDrivers(t *testing.T) {
	for want, c := range map[string]driver.Connector{
		"postgres.Connector: the connector is nil": nil,
		"have no QueryContext":                     bare{},
	} {
		if err := askOver(t, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
