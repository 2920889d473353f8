package mysql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	driver "github.com/go-sql-driver/mysql"

	"github.com/dutyrota/rota/internal/sqldb"
)

func probe(ctx context.Context, db *sql.DB) (*sqldb.Dialect, error) {
	d, err := askVendor(ctx, db)
	if err != nil {
		return nil, err
	}
	var readOnly int
	if err := db.QueryRowContext(ctx, "SELECT @@global.read_only").Scan(&readOnly); err != nil {
		return nil, fmt.Errorf("ask whether the server is read-only: %w", err)
	}
	if readOnly != 0 {
		return nil, sqldb.TakesNoWrites("the database is read-only (read_only = 1 on this server: a replica?): " +
			"connect to the primary")
	}
	if d == tidb {
		return d, nil
	}
	if err := checkBinaryLog(ctx, db); err != nil {
		return nil, err
	}
	return replication(ctx, db, d)
}

var versionStart = regexp.MustCompile(`^(\d+)\.(\d+)`)

// checkVersion returns an error if version, the result of VERSION(), is less than leastMajor.leastMinor.
func checkVersion(kind, version string, leastMajor, leastMinor int) error {
	m := versionStart.FindStringSubmatch(version)
	if m == nil {
		return fmt.Errorf("%s %q: cannot read the version", kind, version)
	}
	major, errMajor := strconv.Atoi(m[1])
	minor, errMinor := strconv.Atoi(m[2])
	if err := errors.Join(errMajor, errMinor); err != nil {
		return fmt.Errorf("%s %q: cannot read the version: %w", kind, version, err)
	}
	if major < leastMajor || major == leastMajor && minor < leastMinor {
		return fmt.Errorf("%s %s is too old: %d.%d or newer is needed", kind, version, leastMajor, leastMinor)
	}
	return nil
}

// checkTables returns an error for a table whose engine has no transactions: the fence would guard nothing.
func checkTables(ctx context.Context, db *sql.DB) error {
	var table, engine string
	err := db.QueryRowContext(ctx, `SELECT table_name, engine FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name LIKE 'schedule\_%' AND table_type = 'BASE TABLE' AND engine <> 'InnoDB'
		ORDER BY table_name LIMIT 1`).Scan(&table, &engine)
	if sqldb.NoRows(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ask for the engines: %w", err)
	}
	return fmt.Errorf("table %s has the engine %s, which has no transactions: ALTER TABLE %s ENGINE = InnoDB", table,
		engine, table)
}

// notes returns what an operator should know. The isolation level is that of dealers, the server's default.
func notes(ctx context.Context, db *sql.DB) ([]sqldb.Note, error) {
	var isolation string
	if err := db.QueryRowContext(ctx, "SELECT @@global."+isolationVariable(ctx, db)).Scan(&isolation); err != nil {
		return nil, fmt.Errorf("ask for the isolation: %w", err)
	}
	isolation = strings.ReplaceAll(isolation, "-", " ")
	durable, err := durabilityNotes(ctx, db)
	return append([]sqldb.Note{
		sqldb.IsolationNote(isolation, isolation == "REPEATABLE READ" || isolation == "READ COMMITTED"),
		{Kind: "DATABASE", OK: true, Finding: "all tables have the engine InnoDB"}, // checkTables refuses others
	}, durable...), err
}

// isolationVariable returns the name of the variable that holds the isolation level. MySQL 8 no longer has the old
// name, and MariaDB before 11.1 does not have the new one.
func isolationVariable(ctx context.Context, db *sql.DB) string {
	var name, value string
	if err := db.QueryRowContext(ctx, "SHOW VARIABLES LIKE 'transaction_isolation'").Scan(&name, &value); err == nil {
		return "transaction_isolation"
	}
	return "tx_isolation"
}

// utcIfUTF8 is the value of time_zone on each connection. Where the connection's character set is not utf8mb4, it is
// the name of no time zone, so that the server refuses the connection's settings: the question costs no round trip.
// The URL alone does not decide about the character set: init_connect can change it, and a server may disregard the
// handshake.
const utcIfUTF8 = `IF(@@character_set_client = 'utf8mb4' AND @@character_set_connection = 'utf8mb4', '+00:00',
	CONCAT('` + charsetMark + `', @@character_set_client, ' ', @@character_set_connection))`

// charsetMark begins the time zone that utcIfUTF8 makes of two character sets.
const charsetMark = "charset "

// unknownTimeZone is the number of the server's answer to such a time zone.
const unknownTimeZone = 1298

// charsetError returns the error of a connection whose character set utcIfUTF8 does not accept, otherwise nil. where is
// what sets the character set.
func charsetError(err error, where string) error {
	var e *driver.MySQLError
	if !errors.As(err, &e) || e.Number != unknownTimeZone {
		return nil
	}
	_, sets, marked := strings.Cut(e.Message, "'"+charsetMark)
	client, connection, two := strings.Cut(strings.TrimSuffix(sets, "'"), " ")
	if !marked || !two {
		return nil
	}
	return fmt.Errorf("the connection's character set is %s (character_set_client) and %s (character_set_connection), "+
		"must be utf8mb4: "+
		"in other character sets a parameter can end its quotes; charset=utf8mb4 in %s sets it", client, connection, where)
}

// readCommitted is a connector whose sessions read at READ COMMITTED. The statement has no variable, because the
// variable has another name on MySQL 8 than on MariaDB before 11.1.
type readCommitted struct{ sqldriver.Connector }

// Connect implements driver.Connector.
func (r readCommitted) Connect(ctx context.Context) (sqldriver.Conn, error) {
	conn, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	session := conn.(sqldriver.ExecerContext) // the driver's connections implement it
	if _, err := session.ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", nil); err != nil {
		return nil, errors.Join(fmt.Errorf("set the isolation level: %w", err), conn.Close())
	}
	return conn, nil
}

// checkBinaryLog returns an error for a server that would refuse the roster's transactions (error 1665): it writes
// statements to its binary log, and what a statement does at READ COMMITTED depends on other transactions.
func checkBinaryLog(ctx context.Context, db *sql.DB) error {
	values, err := show(ctx, db, "VARIABLES", "log_bin", "binlog_format")
	if err != nil {
		return fmt.Errorf("ask for the binary log: %w", err)
	}
	return refuseStatements(values["log_bin"], values["binlog_format"])
}

func refuseStatements(logBin, format string) error {
	if isOn(logBin) && format == "STATEMENT" {
		return errors.New("binlog_format is STATEMENT, with which the server refuses transactions that are READ COMMITTED: " +
			"set it to ROW or MIXED")
	}
	return nil
}

// The variables that show that several servers accept writes.
const (
	wsrepOn       = "wsrep_on"
	singlePrimary = "group_replication_single_primary_mode"
)

func isOn(value string) bool { return strings.EqualFold(value, "ON") || value == "1" }

// replication asks a server with the dialect d how it shares its data with others, and returns its dialect.
func replication(ctx context.Context, db *sql.DB, d *sqldb.Dialect) (*sqldb.Dialect, error) {
	values, err := show(ctx, db, "VARIABLES", wsrepOn, singlePrimary)
	if err != nil {
		return nil, fmt.Errorf("ask for the replication: %w", err)
	}
	return writers(values, d)
}

// writers returns the dialect by what the variables say about the servers that accept writes. A server without Galera
// or Group Replication does not know the variables. Group Replication with several primaries has stale reads as Galera
// has them, and a variable of its own against them, with which Rota is not tested: writers refuses it (F8).
func writers(values map[string]string, d *sqldb.Dialect) (*sqldb.Dialect, error) {
	if mode, known := values[singlePrimary]; known && !isOn(mode) {
		return nil, fmt.Errorf("this server is set to a Group Replication with several primaries (%s = %s), "+
			"in which the fence does not hold: "+
			"switch the group to single-primary mode", singlePrimary, mode)
	}
	if isOn(values[wsrepOn]) {
		return d.WithWriteFence(), nil
	}
	return d, nil
}

// node asks the node of Galera behind a connection for its name and for the setting of the session.
func node(ctx context.Context, conn *sql.Conn) (sqldb.Node, error) {
	values, err := show(ctx, conn, "VARIABLES", "wsrep_node_name", syncVariable)
	if err != nil {
		return sqldb.Node{}, fmt.Errorf("ask a node for its name: %w", err)
	}
	status, err := show(ctx, conn, "STATUS", "wsrep_cluster_size")
	if err != nil {
		return sqldb.Node{}, fmt.Errorf("ask a node for the size of its cluster: %w", err)
	}
	size, _ := strconv.Atoi(status["wsrep_cluster_size"]) // 0 if the server has no cluster
	return sqldb.Node{Name: values["wsrep_node_name"], Size: size, SyncWait: values[syncVariable]}, nil
}

// queryer is a pool or a connection.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// show returns the values of variables or of the status. It leaves out names that the server does not know.
func show(ctx context.Context, q queryer, what string, names ...string) (map[string]string, error) {
	rows, err := q.QueryContext(ctx, "SHOW "+what+" WHERE Variable_name IN ("+sqldb.Marks(len(names))+")",
		sqldb.Args(names)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	values := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		values[strings.ToLower(name)] = value
	}
	return values, rows.Err()
}

// With syncWait in syncVariable, SELECT and BEGIN (1) and UPDATE and DELETE (2) wait until their node has applied what
// the cluster has committed (F7). Without 2, a guarded UPDATE on a node that lags reports a miss.
const (
	syncVariable = "wsrep_sync_wait"
	syncWait     = "3"
)

// causal is a connector whose sessions wait for the cluster if the server is a node of Galera. It asks the server at
// the first connection, because a server without Galera does not know the variable.
type causal struct {
	sqldriver.Connector // for a server without Galera
	waiting             sqldriver.Connector

	mu     sync.Mutex
	chosen sqldriver.Connector // nil until the server has answered
}

// Connect implements driver.Connector.
func (c *causal) Connect(ctx context.Context) (sqldriver.Conn, error) {
	if chosen := c.choice(); chosen != nil {
		return chosen.Connect(ctx)
	}
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	galera, err := isGalera(ctx, conn.(sqldriver.QueryerContext)) // the driver's connections implement it
	if err == nil && !galera {
		c.choose(c.Connector)
		return conn, nil
	}
	if err := errors.Join(err, conn.Close()); err != nil {
		return nil, fmt.Errorf("ask whether the server is a node of Galera: %w", err)
	}
	c.choose(c.waiting)
	return c.waiting.Connect(ctx)
}

func (c *causal) choice() sqldriver.Connector {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.chosen
}

func (c *causal) choose(connector sqldriver.Connector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chosen = connector
}

// isGalera reports whether a server replicates with Galera. A server that does not know the variable returns no row.
func isGalera(ctx context.Context, conn sqldriver.QueryerContext) (bool, error) {
	row, err := sqldb.Row(ctx, conn, "SHOW VARIABLES LIKE '"+wsrepOn+"'")
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil && isOn(sqldb.ValueText(row[1])), err
}
