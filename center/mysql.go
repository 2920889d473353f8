package center

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/dutyrota/rota/schema"
)

var mysqlDialect = &dialect{
	name: schema.MySQL,
	now:  "UTC_TIMESTAMP(6)",
	ago:  func(ms string) string { return "UTC_TIMESTAMP(6) - INTERVAL " + ms + " * 1000 MICROSECOND" },
	// STRAIGHT_JOIN looks up the listed rows by their key. With IN, the optimizer may read the whole
	// roster, and InnoDB locks what is read.
	listed: ` FROM JSON_TABLE(?, '$[*]' COLUMNS (id VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS v
		STRAIGHT_JOIN schedule_queue AS q ON q.task_type = ? AND q.own_sign = ? AND q.queue_id = v.id`,
	// Else it reads an index, of a thousand servers all that come before.
	byKey:         " FORCE INDEX (PRIMARY)",
	share:         " LOCK IN SHARE MODE", // MariaDB has no FOR SHARE
	skipLocked:    " FOR UPDATE SKIP LOCKED",
	listedServers: mysqlListedServers,
	lockServers:   " FOR UPDATE",
	deleteServers: `DELETE s` + mysqlListedServers,
	upsertItem: ` ON DUPLICATE KEY UPDATE queue_id = VALUES(queue_id), state = VALUES(state), attempts = VALUES(attempts),
		last_error = VALUES(last_error), next_attempt_at = VALUES(next_attempt_at)`,
	// STRAIGHT_JOIN as above. SET goes from left to right
	// (L6): what reads an old value stands before what overwrites it.
	change: `UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
			id VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.id',
			old_cur VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.old_cur',
			old_epoch BIGINT PATH '$.old_epoch',
			cur VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.cur',
			req VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.req',
			bump BIGINT PATH '$.bump', plan BIGINT PATH '$.plan')) AS v
		STRAIGHT_JOIN schedule_queue AS q ON q.task_type = ? AND q.own_sign = ? AND q.queue_id = v.id
		SET q.req_since = CASE WHEN v.req IS NULL THEN NULL WHEN q.req_server = v.req THEN q.req_since ELSE {now} END,
		q.cur_since = CASE WHEN v.bump = 0 THEN q.cur_since WHEN v.cur IS NULL THEN NULL ELSE {now} END,
		q.cur_server = v.cur, q.req_server = v.req, q.epoch = q.epoch + v.bump, q.plan_version = v.plan, q.gmt_modified = {now}
		WHERE q.epoch = v.old_epoch AND q.cur_server <=> v.old_cur`,
	time:     utc,
	classify: classifyMySQL,
}

const mysqlListedServers = ` FROM JSON_TABLE(?, '$[*]' COLUMNS (id VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS v
	STRAIGHT_JOIN schedule_server AS s ON s.uuid = v.id`

func classifyMySQL(err error) class {
	if errors.Is(err, mysql.ErrInvalidConn) {
		return classBroken
	}
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return classOther
	}
	switch e.Number {
	case 1213, 1205, 3572, 1020, 9007: // deadlock, lock wait, NOWAIT, changed since the snapshot, TiDB's conflict
		return classRollback
	case noSuchHandler, needReprepare:
		return classRollback
	case 1969, 3024, 1317: // took too long, by MariaDB's limit and MySQL's; killed
		return classInterrupted
	case 1040, 1047, 1053, 1152, 1927, 2006, 2013, 3169, 4031: // too many connections, no quorum, shutdown, killed, gone away, idle too long
		return classBroken
	case 1062:
		return classDuplicate
	case 1146:
		return classNoTable
	case 1290, 1792, 1836:
		return classReadOnly
	}
	return classRefused
}

// mysqlConnector turns mysql://user:password@host:port/db?param=value into a connector, and
// forces what correctness needs.
func mysqlConnector(u *url.URL, role role) (driver.Connector, error) {
	address := "tcp(" + u.Host + ")"
	params := u.Query()
	if socket := params.Get("socket"); socket != "" {
		address = "unix(" + socket + ")"
		params.Del("socket")
	}
	cfg, err := mysql.ParseDSN(address + "/?" + params.Encode())
	if err != nil {
		return nil, err
	}
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.DBName = strings.TrimPrefix(u.Path, "/")
	if cfg.DBName == "" {
		return nil, errors.New("the URL names no database: mysql://user@host:3306/DATABASE")
	}
	cfg.ParseTime = true
	cfg.ClientFoundRows = true // affected rows are matched rows, or a compare-and-set would lie
	cfg.InterpolateParams = true
	cfg.RejectReadOnly = true // after a fail-over the pool leaves the old primary
	cfg.MultiStatements = false
	cfg.Logger = &mysql.NopLogger{} // it would write to stderr what its errors say as well, among lines of JSON
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	cfg.Params["time_zone"] = "'+00:00'"
	if cfg.Timeout == 0 {
		cfg.Timeout = ioTimeout
	}
	if role != roleDealers {
		cfg.Params["sql_mode"] = "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'" // nothing is cut off silently
		// The end of a context closes the connection and not the statement: that would go on waiting in the
		// server for a lock, by default for 50 s, with the lock row in its hand.
		cfg.Params["innodb_lock_wait_timeout"] = "1"
		// A host that vanishes without a word would keep the lock row until TCP notices, in hours. MariaDB alone
		// has the variable, and alone reads what stands in such a comment.
		cfg.Params["time_zone"] += " /*M!100300 , idle_transaction_timeout = 10 */"
	}
	if role.brief() {
		cfg.ReadTimeout, cfg.WriteTimeout = ioTimeout, ioTimeout
	}
	if role == roleSchema {
		// What changes a table waits until nobody uses it, by default for a day, and everybody who comes meanwhile waits
		// behind it. It is tried again.
		cfg.Params["lock_wait_timeout"] = "2"
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	if role != roleBeat {
		return connector, nil
	}
	// The heartbeats alone: a server holds 16,382 statements (max_prepared_stmt_count) for all its programs together, and
	// half a dozen are what the heartbeats of a process need. What stands between, such as ProxySQL, must send a
	// statement to where it is known: the driver knows it by the number that came back, and not by a name of its own.
	always := func(context.Context, driverConn, net.Conn) bool { return true }
	return preparingConnector{connector, always, unpreparedMySQL, 8}, nil
}

// What the servers answer about prepared statements.
const (
	noSuchHandler = 1243
	tooManyHeld   = 1461 // max_prepared_stmt_count
	needReprepare = 1615 // a table has changed, again and again
)

func unpreparedMySQL(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && slices.Contains([]uint16{noSuchHandler, tooManyHeld, needReprepare}, e.Number)
}
