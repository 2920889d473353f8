package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Connector returns the database to which the connections of c lead, for a program that makes its own: with tokens of a
// cloud instead of a password (mysql.BeforeConnect), its own TLS configuration or dialer, or a tracing wrapper. The
// driver below it must be go-sql-driver/mysql. center.Open closes the pools that it makes from c, and not c itself.
//
// The roster sets the session variables that URL sets, in one more round trip for each new connection. In another one
// it asks for what it cannot set, and refuses a connection that differs, with the option and the reason: parseTime,
// loc, the character set, and variables such as foreign_key_checks. center.Open also refuses a connector without
// clientFoundRows, with timeTruncate, or with a wrapper that hides the errors of the driver; it assumes that c makes
// all its connections alike.
//
// It cannot ask for these options of c, and relies on them:
//
//   - checkConnLiveness, the driver's default. Without it, a connection that the server has closed fails a heartbeat.
//   - readTimeout and writeTimeout. Without them, a call that waits for a frozen node of a cluster does not end (F10).
//   - rejectReadOnly=true, if the connections of c are of a wrapper and lack a method of those of the driver. Without
//     it, the pool stays with the old primary after a fail-over. The roster closes all other connections by itself when
//     the server is read-only, and says so in the error, which the driver with rejectReadOnly does not.
//
// With interpolateParams=true a statement is one round trip, otherwise three. Unlike URL, Connector prepares no
// heartbeats, does not know whether the server is on this host, and so creates the tables only with
// center.SchemaCreate.
func Connector(c sqldriver.Connector) sqldb.Database {
	if c == nil {
		return sqldb.Database{Err: errors.New("mysql.Connector: the connector is nil")}
	}
	return sqldb.Database{
		Dialect: dialect,
		Address: fmt.Sprintf("mysql (connections of %T)", c),
		Connector: func(r sqldb.Role, o sqldb.PoolOptions) (sqldriver.Connector, error) {
			return sessions(r, newOwn(c, r, o, nil), newOwn(c, r, o, map[string]string{syncVariable: syncWait})), nil
		},
		Probe: func(ctx context.Context, db *sql.DB) (*sqldb.Dialect, error) {
			d, err := probe(ctx, db)
			if err == nil {
				err = checkDriver(ctx, db)
			}
			return d, err
		},
		CheckTables: func(ctx context.Context, db *sql.DB) error {
			if err := checkTables(ctx, db); err != nil {
				return err
			}
			return checkFoundRows(ctx, db)
		},
		Notes:   ownNotes,
		Node:    node,
		CheckTx: checkTx,
	}
}

// own is a connector of the program. It sets the variables of the roster in each session, and refuses connections on
// which the roster's statements would mean something else.
type own struct {
	sqldriver.Connector
	set string // a statement
}

// newOwn returns a connector for a role. variables are set beside those that the connections of URL have.
func newOwn(c sqldriver.Connector, role sqldb.Role, o sqldb.PoolOptions, variables map[string]string) own {
	cfg := driver.NewConfig()
	cfg.Params = map[string]string{}
	force(cfg, role, o, variables)
	var assignments []string
	for _, name := range slices.Sorted(maps.Keys(cfg.Params)) {
		assignments = append(assignments, name+" = "+cfg.Params[name])
	}
	return own{c, "SET " + strings.Join(assignments, ", ")}
}

// Connect implements driver.Connector.
func (o own) Connect(ctx context.Context) (sqldriver.Conn, error) {
	return sqldb.ConnectOwn(ctx, o.Connector, o.prepare)
}

func (o own) prepare(ctx context.Context, conn sqldb.OwnConn) error {
	_, err := conn.ExecContext(ctx, o.set, nil)
	if refused := charsetError(err, "the configuration of the driver"); refused != nil {
		return refused
	}
	if err != nil {
		return fmt.Errorf("set the variables of the session: %w", err)
	}
	return askSession(ctx, conn)
}

// required are the variables of a session that correctness needs. params refuses them in a URL.
var required = []struct{ name, value, why string }{
	{"foreign_key_checks", "1", "a dealer could break its own tables"},
	{"unique_checks", "1", "two rows could have one key"},
	{"sql_auto_is_null", "0", "IS NULL would find rows that are not NULL"},
	{"sql_log_bin", "1", "a replica would lack what is written"},
	{"sql_safe_updates", "0", "the roster's statements would fail"},
	{"sql_select_limit", "18446744073709551615", "the roster would read a part of its rows"},
}

// sample is a time in UTC, and sampleText is the same time in SQL. A driver that reads or writes times in another way
// turns one into something else than the other.
var sample = time.Date(2000, 1, 2, 3, 4, 5, 123_456_000, time.UTC)

const sampleText = "2000-01-02 03:04:05.123456"

// askSession returns an error that names the first variable with a wrong value, or the option with which the driver
// misreads times.
func askSession(ctx context.Context, conn sqldb.OwnConn) error {
	columns := []string{"CAST('" + sampleText + "' AS DATETIME(6))"}
	for _, v := range required {
		columns = append(columns, "@@"+v.name)
	}
	row, err := sqldb.Row(ctx, conn, "SELECT "+strings.Join(columns, ", "))
	if err != nil {
		return fmt.Errorf("ask for the variables of the session: %w", err)
	}
	read, parsed := row[0].(time.Time)
	switch {
	case !parsed:
		return errors.New("parseTime of the connection (false) must be true: times are read as times")
	case !read.Equal(sample):
		return fmt.Errorf("loc of the connection (%s) must be UTC: the tables hold UTC", read.Location())
	}
	for i, v := range required {
		if value := sqldb.ValueText(row[i+1]); value != v.value {
			return fmt.Errorf("%s of the connection (%s) must be %s: %s", v.name, value, v.value, v.why)
		}
	}
	return nil
}

// ownNotes returns what an operator should know about connections that the program makes itself.
func ownNotes(ctx context.Context, db *sql.DB) ([]sqldb.Note, error) {
	list, err := notes(ctx, db)
	if err != nil {
		return nil, err
	}
	status, err := show(ctx, db, "STATUS", "Ssl_cipher")
	if err != nil {
		return nil, fmt.Errorf("ask for TLS: %w", err)
	}
	tls := sqldb.Note{Kind: "TLS", OK: true, Finding: "encrypted; the program's own connector decides what is verified"}
	if status["ssl_cipher"] == "" {
		tls.Finding = "not encrypted, by the choice of the program's own connector"
	}
	return append(list, tls), nil
}

// checkTx asks a transaction of a pool that the program opened itself (F9). It does not ask for clientFoundRows: the
// statements of a fence change each row that they match.
func checkTx(ctx context.Context, tx *sql.Tx, idle time.Duration) (sqldb.PoolFinding, error) {
	values, err := show(ctx, tx, "VARIABLES", "character_set_client", "character_set_connection", wsrepOn, syncVariable,
		idleVariable, idleVariableOfTiDB, "wait_timeout", lockMode)
	if err != nil {
		return sqldb.PoolFinding{}, err
	}
	return sqldb.PoolFinding{Unfit: unfit(values), Warning: idleWarning(values, idle)}, nil
}

// unfit names the variable of a session in which the fence does not hold, with its value and the rule.
func unfit(values map[string]string) string {
	for _, name := range []string{"character_set_client", "character_set_connection"} {
		if values[name] != "utf8mb4" {
			return fmt.Sprintf("%s (%s) must be utf8mb4: names would be read as others, and a parameter could end its quotes",
				name, values[name])
		}
	}
	wait, _ := strconv.Atoi(values[syncVariable]) // 0 if the server does not know the variable
	if isOn(values[wsrepOn]) && wait&3 != 3 {
		return fmt.Sprintf("%s (%d) must be %s: a select on a node that lags returns items that are done", syncVariable, wait,
			syncWait)
	}
	if mode, tidb := values[lockMode]; tidb && mode != "pessimistic" {
		return fmt.Sprintf("%s (%s) must be pessimistic: the fence would lock nothing before the commit", lockMode, mode)
	}
	return ""
}

// These variables limit idle transactions on MariaDB and on TiDB. MySQL has only a limit for idle connections (F6).
const (
	idleVariable       = "idle_transaction_timeout"
	idleVariableOfTiDB = "tidb_idle_transaction_timeout"
)

// idleWarning says that the server lets transactions be idle for longer than the limit of the roster, if it does.
func idleWarning(values map[string]string, limit time.Duration) string {
	name, value := "wait_timeout", values["wait_timeout"]
	for _, variable := range []string{idleVariable, idleVariableOfTiDB} {
		if own, known := values[variable]; known {
			name = variable
			if own != "0" { // no limit but that for connections
				value = own
			}
		}
	}
	seconds, err := strconv.Atoi(value)
	if err != nil || limit <= 0 || time.Duration(seconds)*time.Second < limit+time.Second {
		return ""
	}
	return fmt.Sprintf("its transactions may be idle for longer than %s (%s = %s): for as long, "+
		"a host that vanishes inside InTx keeps its queues",
		limit, name, values[name])
}

// checkDriver refuses a driver whose errors or parameters are not as the roster needs them.
func checkDriver(ctx context.Context, db *sql.DB) error {
	var text string
	err := db.QueryRowContext(ctx, "SELECT no_such_column FROM (SELECT 1 AS n) AS t").Scan(&text)
	if !numbered(err, unknownColumn) {
		return fmt.Errorf("an error of the connections of %T is not an error of go-sql-driver/mysql (%T): "+
			"the roster could not tell a deadlock from a lost connection", db.Driver(), err)
	}
	if err := db.QueryRowContext(ctx, "SELECT CAST(? AS CHAR)", sample).Scan(&text); err != nil {
		return fmt.Errorf("ask for a time: %w", err)
	}
	if text != sampleText {
		return fmt.Errorf("a time that the connection sends (%s) must be %s (timeTruncate): times have microseconds", text,
			sampleText)
	}
	values, err := show(ctx, db, "VARIABLES", wsrepOn, "wsrep_provider")
	if err != nil {
		return fmt.Errorf("ask for the replication: %w", err)
	}
	if provider := values["wsrep_provider"]; provider != "" && provider != "none" && !isOn(values[wsrepOn]) {
		return fmt.Errorf("wsrep_on of the connection (%s) must be ON: other nodes would lack what is written",
			values[wsrepOn])
	}
	return nil
}

// checkFoundRows refuses connections whose affected rows are the changed rows. No variable shows the option: an
// UPDATE of a new row to the values that it has counts the row, or does not. The row is never committed. A user who
// may not write sends no compare-and-set.
func checkFoundRows(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback() // its error does not matter: the connection is then lost, and the row with it
	name := "?" + rand.Text()
	_, err = tx.ExecContext(ctx, "INSERT INTO schedule_task_running (task_type) VALUES (?)", name)
	if denied(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ask whether affected rows are the matched rows: %w", err)
	}
	n, err := sqldb.Affected(tx.ExecContext(ctx, "UPDATE schedule_task_running SET version = version WHERE task_type = ?",
		name))
	if err != nil {
		return fmt.Errorf("ask whether affected rows are the matched rows: %w", err)
	}
	if n != 1 {
		return errors.New("clientFoundRows of the connection (false) must be true: a compare-and-set counts the matched " +
			"rows, " +
			"not the changed ones")
	}
	return nil
}
