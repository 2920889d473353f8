package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/dutyrota/rota/internal/sqldb"
)

// preparedStatements limits how many statements a connection for heartbeats prepares. The heartbeats of a process need
// about six.
const preparedStatements = 8

// connector turns mysql://user:password@host:port/db?param=value into a connector for a role.
func connector(u *sqldb.URL, role sqldb.Role, o sqldb.PoolOptions) (sqldriver.Connector, error) {
	plain, err := newHosts(u, role, o, nil)
	if err != nil {
		return nil, err
	}
	if role != sqldb.RoleHeartbeat {
		waiting, err := newHosts(u, role, o, map[string]string{syncVariable: syncWait})
		return sessions(role, plain, waiting), err
	}
	// Only heartbeats are prepared: a server holds at most 16,382 statements for all clients together
	// (max_prepared_stmt_count). A proxy such as ProxySQL does no harm: the driver names a statement by the number that
	// the server has given it, so that the proxy must send the statement to that server.
	always := func(context.Context, sqldb.Conn, net.Conn) bool { return true }
	return sqldb.Preparing{
		Connector: leaving(plain), MayPrepare: always, Unprepared: unprepared,
		MaxStatements: preparedStatements,
	}, nil
}

// sessions returns a connector whose sessions have what a role needs and what no variable in a connector's
// configuration can give. waiting is the connector whose sessions wait for the cluster.
func sessions(role sqldb.Role, plain, waiting sqldriver.Connector) sqldriver.Connector {
	switch role {
	case sqldb.RoleStore:
		return leaving(readCommitted{&causal{Connector: plain, waiting: waiting}})
	case sqldb.RoleDealers, sqldb.RoleSchema:
		return leaving(&causal{Connector: plain, waiting: waiting})
	case sqldb.RoleHeartbeat: // must not wait (F7)
	}
	return leaving(plain)
}

// leaving returns a connector whose connections end when the server is read-only. The driver can do that by itself
// (rejectReadOnly), but then says "driver: bad connection" instead of the reason.
func leaving(c sqldriver.Connector) sqldriver.Connector {
	return sqldb.Leaving{Connector: c, Classify: classify, Ended: ended}
}

// config reads the URL, except for its hosts.
func config(u *sqldb.URL) (*driver.Config, error) {
	if u.Database == "" {
		return nil, errors.New("database URL: no database; want mysql://user@host:3306/DATABASE")
	}
	query := maps.Clone(u.Query)
	query.Del("socket")
	if !query.Has("tls") && !local(u) {
		query.Set("tls", tlsUnverified)
	}
	cfg, err := driver.ParseDSN("/?" + query.Encode())
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	cfg.TLS = nil // ParseDSN has made it of tls and of a default host; NewConnector makes it again, for each host
	cfg.User, cfg.Passwd, cfg.DBName = u.User, u.Password, u.Database
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	return cfg, nil
}

// force sets the variables, and what correctness needs.
func force(cfg *driver.Config, role sqldb.Role, o sqldb.PoolOptions, variables map[string]string) {
	maps.Copy(cfg.Params, variables)
	cfg.ParseTime = true
	cfg.ClientFoundRows = true // affected rows are matched rows, or a compare-and-set would lie
	cfg.InterpolateParams = true
	cfg.RejectReadOnly = false // leaving does that, and says why
	cfg.MultiStatements = false
	cfg.CheckConnLiveness = true
	cfg.Loc = time.UTC
	cfg.Params["autocommit"] = "1"   // against a global autocommit=0, too: no other server would see a heartbeat
	cfg.Logger = &driver.NopLogger{} // it would write to stderr, among lines of JSON, what its errors say as well
	cfg.Params["time_zone"] = utcIfUTF8 + tidbSession
	if !strings.Contains(cfg.ConnectionAttributes, "program_name:") {
		cfg.ConnectionAttributes = strings.TrimPrefix(cfg.ConnectionAttributes+",program_name:rota", ",")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = sqldb.IOTimeout
	}
	if role != sqldb.RoleDealers {
		cfg.Params["sql_mode"] = "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'" // nothing is cut off silently
		// The end of a context closes the connection and does not end the statement. Without this setting the statement
		// would wait in the server for a lock, by default for 50 s, while its transaction holds the lock row.
		cfg.Params["innodb_lock_wait_timeout"] = "1"
		// A client that is stopped while it reads a large roster takes no rows. By default the server waits for a minute.
		cfg.Params["net_write_timeout"] = "10"
	}
	if role == sqldb.RoleStore || role == sqldb.RoleSchema {
		// A process that is stopped, or a host that vanishes, would otherwise keep the lock row until TCP notices, after
		// hours.
		limitIdle(cfg, 10*time.Second)
	}
	if role.Brief() {
		cfg.ReadTimeout, cfg.WriteTimeout = sqldb.IOTimeout, sqldb.IOTimeout
		// The server ends a statement that the program has given up (sqldb.IOTimeout), which would keep the lock row for as
		// long as it runs. The variable of MySQL limits SELECT only. MariaDB does not read the second comment.
		delete(cfg.Params, "max_statement_time") // the driver sets the URL's after or before it
		delete(cfg.Params, "max_execution_time")
		cfg.Params["time_zone"] += " /*M!100300 , max_statement_time = 10 */ /*" + ofMySQL +
			" , max_execution_time = 10000 */"
	}
	if role == sqldb.RoleSchema {
		// A statement that changes a table waits for all users of the table, by default for a day. New users of the
		// table wait behind it. The migration retries it.
		cfg.Params["lock_wait_timeout"] = "2"
	}
	if role == sqldb.RoleDealers {
		limitIdle(cfg, o.IdleTxTimeout)
		_, galera := variables[syncVariable]
		limitReply(cfg, o.ReplyLimit(galera))
	}
}

// ofMySQL begins a comment that MySQL and TiDB read, and MariaDB does not.
const ofMySQL = "!80000"

// limitIdle makes the server end a transaction whose client is silent (F6, L7). MariaDB and TiDB have a setting for it.
// MySQL has one for idle connections only, in a transaction or not: the pool replaces those that the server has closed.
// Each reads only its own comment.
func limitIdle(cfg *driver.Config, limit time.Duration) {
	if limit <= 0 {
		return
	}
	atMost(cfg, "M!100300", idleVariable, limit)
	atMost(cfg, "T!", idleVariableOfTiDB, limit)
	atMost(cfg, ofMySQL, "wait_timeout", limit)
}

// replyGrace is how much longer than the server a client waits for a statement that takes too long: the server's error
// says more than a closed connection, and the statement has then ended.
const replyGrace = 5 * time.Second

// limitReply limits how long a statement may take, and how long its client waits for a server that does not end it
// because it is frozen. The variable of MySQL limits SELECT only, so that on MySQL only the client has the limit.
func limitReply(cfg *driver.Config, limit time.Duration) {
	if limit <= 0 {
		return
	}
	atMost(cfg, "M!100300", "max_statement_time", limit)
	for _, timeout := range []*time.Duration{&cfg.ReadTimeout, &cfg.WriteTimeout} {
		if *timeout == 0 {
			*timeout = limit + replyGrace
		}
	}
}

// atMost limits a variable on the servers that read the comment. A shorter limit stays, because an administrator has
// set it for the server, or the program in the URL or in its own connector.
func atMost(cfg *driver.Config, comment, name string, limit time.Duration) {
	seconds := float64((limit + time.Second - 1) / time.Second) // an integer, which most of the variables are
	// In a statement that sets a variable twice, the last value counts. The driver's order of variables is random.
	if value, ok := cfg.Params[name]; ok {
		delete(cfg.Params, name)
		cfg.Params["time_zone"] += fmt.Sprintf(", %s = %s", name, value)
		if n, err := strconv.ParseFloat(value, 64); err == nil && n > 0 {
			seconds = min(seconds, n)
		}
	}
	limited := fmt.Sprintf("IF(@@%[1]s > 0 AND @@%[1]s < %[2]v, @@%[1]s, %[2]v)", name, seconds)
	if comment == ofMySQL {
		limited = "CAST(" + limited + " AS SIGNED)" // it is a DECIMAL, and MySQL wants an integer
	}
	cfg.Params["time_zone"] += fmt.Sprintf(" /*%s , %s = %s */", comment, name, limited)
}
