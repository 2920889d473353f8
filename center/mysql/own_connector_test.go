package mysql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// ownConfig returns the configuration of a program that makes its own connections.
func ownConfig(t *testing.T, url string) *driver.Config {
	t.Helper()
	u, err := sqldb.ParseURL(url, "mysql", "mysql")
	if err != nil {
		t.Fatal(err)
	}
	cfg := driver.NewConfig()
	cfg.User, cfg.Passwd, cfg.DBName = u.User, u.Password, u.Database
	cfg.Net, cfg.Addr = "tcp", u.Hosts[0].String()
	cfg.Params = map[string]string{}
	cfg.ParseTime, cfg.ClientFoundRows, cfg.InterpolateParams = true, true, true
	cfg.Logger = &driver.NopLogger{}
	return cfg
}

func ownConnectorOf(t *testing.T, cfg *driver.Config) sqldriver.Connector {
	t.Helper()
	c, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// openOver asks the server what center.Open asks over connections of the program's own connector.
func openOver(t *testing.T, c sqldriver.Connector) error {
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
	if _, err := d.Probe(t.Context(), pool); err != nil {
		return err
	}
	return d.CheckTables(t.Context(), pool)
}

// tables returns the URL of a database with the roster's tables.
func tables(t *testing.T) (url string) {
	t.Helper()
	url = testdb.URL(t, testdb.MySQL)
	if _, _, err := schema.Up(t.Context(), open(t, url, sqldb.RoleSchema), schema.MySQL); err != nil {
		t.Fatal(err)
	}
	return url
}

// Connections on which the statements of the roster would mean something else are refused with the option.
func TestConnectorRefusesOptions(t *testing.T) {
	t.Parallel()
	url := tables(t)
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*driver.Config){
		"": func(*driver.Config) {},
		"clientFoundRows of the connection (false) must be true: ":     func(c *driver.Config) { c.ClientFoundRows = false },
		"parseTime of the connection (false) must be true: ":           func(c *driver.Config) { c.ParseTime = false },
		"loc of the connection (America/New_York) must be UTC: ":       func(c *driver.Config) { c.Loc = newYork },
		"must be 2000-01-02 03:04:05.123456 (timeTruncate)":            func(c *driver.Config) { must(t, c.Apply(driver.TimeTruncate(time.Second))) },
		"the connection's character set is gbk":                        func(c *driver.Config) { must(t, c.Apply(driver.Charset("gbk", ""))) },
		"charset=utf8mb4 in the configuration of the driver":           func(c *driver.Config) { must(t, c.Apply(driver.Charset("latin1", ""))) },
		"foreign_key_checks of the connection (0) must be 1: ":         func(c *driver.Config) { c.Params["foreign_key_checks"] = "0" },
		"unique_checks of the connection (0) must be 1: ":              func(c *driver.Config) { c.Params["unique_checks"] = "0" },
		"sql_auto_is_null of the connection (1) must be 0: ":           func(c *driver.Config) { c.Params["sql_auto_is_null"] = "1" },
		"sql_log_bin of the connection (0) must be 1: ":                func(c *driver.Config) { c.Params["sql_log_bin"] = "0" },
		"sql_safe_updates of the connection (1) must be 0: ":           func(c *driver.Config) { c.Params["sql_safe_updates"] = "1" },
		"sql_select_limit of the connection (9) must be 1844674407370": func(c *driver.Config) { c.Params["sql_select_limit"] = "9" },
	} {
		for _, interpolate := range []bool{true, false} {
			cfg := ownConfig(t, url)
			cfg.InterpolateParams = interpolate
			change(cfg)
			err := openOver(t, ownConnectorOf(t, cfg))
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A session has the variables that the same role has with URL, whatever the program's own connector has set.
func TestConnectorSetsVariables(t *testing.T) {
	t.Parallel()
	for kind, query := range map[string]string{
		testdb.MySQL: `SELECT CONCAT_WS(' ', @@time_zone, @@autocommit, @@sql_mode, @@innodb_lock_wait_timeout, @@net_write_timeout,
			@@wait_timeout, @@max_execution_time, @@lock_wait_timeout, @@transaction_isolation)`,
		testdb.MariaDB: `SELECT CONCAT_WS(' ', @@time_zone, @@autocommit, @@sql_mode, @@innodb_lock_wait_timeout, @@net_write_timeout,
			@@idle_transaction_timeout, @@max_statement_time, @@lock_wait_timeout, @@tx_isolation)`,
	} {
		t.Run(kind, func(t *testing.T) { testConnectorSetsVariables(t, testdb.URL(t, kind), query) })
	}
}

func testConnectorSetsVariables(t *testing.T, url, query string) {
	for _, role := range roles {
		options := sqldb.PoolOptions{IdleTxTimeout: time.Minute}
		cfg := ownConfig(t, url)
		cfg.Params["time_zone"], cfg.Params["autocommit"] = "'+05:00'", "0"
		if role != sqldb.RoleDealers {
			cfg.Params["sql_mode"], cfg.Params["innodb_lock_wait_timeout"] = "''", "50"
		}
		var got [2]string
		for i, d := range []sqldb.Database{URL(url), Connector(ownConnectorOf(t, cfg))} {
			pool, err := d.Pool(role, options)
			must(t, err)
			defer pool.Close()
			must(t, pool.QueryRowContext(t.Context(), query).Scan(&got[i]))
		}
		if got[0] != got[1] {
			t.Errorf("role %d: the session has\n%s\nwant\n%s", role, got[1], got[0])
		}
	}
}

// A user who may not write needs no found rows: an operator's program only reads.
func TestConnectorOfAReader(t *testing.T) {
	t.Parallel()
	url := tables(t)
	admin := open(t, url, sqldb.RoleStore)
	cfg := ownConfig(t, url)
	for _, statement := range []string{"CREATE USER ownreader@'%'", "GRANT SELECT ON " + cfg.DBName + ".* TO ownreader@'%'"} {
		_, err := admin.ExecContext(t.Context(), statement)
		must(t, err)
	}
	cfg.User, cfg.Passwd = "ownreader", ""
	must(t, openOver(t, ownConnectorOf(t, cfg)))
}

// The question for found rows leaves no row behind.
func TestConnectorLeavesNoRow(t *testing.T) {
	t.Parallel()
	url := tables(t)
	must(t, openOver(t, ownConnectorOf(t, ownConfig(t, url))))
	var n int
	must(t, open(t, url, sqldb.RoleStore).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM schedule_task_running").Scan(&n))
	if n != 0 {
		t.Errorf("%d rows are left, want none", n)
	}
}

// wrapped is a connector whose connections wrap hides something of.
type wrapped struct {
	sqldriver.Connector
	wrap func(sqldriver.Conn) sqldriver.Conn
}

// Connect implements driver.Connector.
func (w wrapped) Connect(ctx context.Context) (sqldriver.Conn, error) {
	conn, err := w.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return w.wrap(conn), nil
}

// Some of the methods of a connection. The other ones stay hidden.
type (
	bare   struct{ sqldriver.Conn }
	noExec struct {
		sqldriver.Conn
		sqldriver.QueryerContext
	}
	noPrepare struct {
		noExec
		sqldriver.ExecerContext
	}
	noBegin struct {
		noPrepare
		sqldriver.ConnPrepareContext
	}
)

// hiding is a connection of a wrapper that reports errors in its own words.
type hiding struct{ sqldb.Conn }

// QueryContext implements driver.QueryerContext.
func (h hiding) QueryContext(ctx context.Context, query string, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	rows, err := h.Conn.QueryContext(ctx, query, args)
	if err != nil && !errors.Is(err, sqldriver.ErrSkip) {
		err = fmt.Errorf("query: %v", err) //nolint:errorlint // this is what the test is about
	}
	return rows, err
}

// A connector that cannot give what the roster needs is refused with the reason.
func TestConnectorRefusesWrappers(t *testing.T) {
	t.Parallel()
	c := ownConnectorOf(t, ownConfig(t, tables(t)))
	for want, wrap := range map[string]func(sqldb.Conn) sqldriver.Conn{
		"":                       func(c sqldb.Conn) sqldriver.Conn { return struct{ sqldb.OwnConn }{c} },
		"have no QueryContext":   func(c sqldb.Conn) sqldriver.Conn { return bare{c} },
		"have no ExecContext":    func(c sqldb.Conn) sqldriver.Conn { return noExec{c, c} },
		"have no PrepareContext": func(c sqldb.Conn) sqldriver.Conn { return noPrepare{noExec{c, c}, c} },
		"have no BeginTx: a statement could not end with its context": func(c sqldb.Conn) sqldriver.Conn {
			return noBegin{noPrepare{noExec{c, c}, c}, c}
		},
		"is not an error of go-sql-driver/mysql": func(c sqldb.Conn) sqldriver.Conn { return hiding{c} },
	} {
		err := openOver(t, wrapped{c, func(conn sqldriver.Conn) sqldriver.Conn { return wrap(conn.(sqldb.Conn)) }})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := openOver(t, nil); err == nil || err.Error() != "mysql.Connector: the connector is nil" {
		t.Errorf("without a connector: %v", err)
	}
}

// A refused connection is closed.
func TestConnectorClosesWhatItRefuses(t *testing.T) {
	t.Parallel()
	closed := 0
	c := wrapped{ownConnectorOf(t, ownConfig(t, testdb.URL(t, testdb.MySQL))), func(conn sqldriver.Conn) sqldriver.Conn {
		return counting{conn, &closed}
	}}
	pool, err := Connector(c).Pool(sqldb.RoleStore, sqldb.PoolOptions{})
	must(t, err)
	defer func(p *sql.DB) { must(t, p.Close()) }(pool)
	if err := pool.PingContext(t.Context()); err == nil || closed != 1 {
		t.Errorf("error %v, %d connections closed, want an error and 1", err, closed)
	}
}

type counting struct {
	sqldriver.Conn
	closed *int
}

// Close implements driver.Conn.
func (c counting) Close() error {
	*c.closed++
	return c.Conn.Close()
}
