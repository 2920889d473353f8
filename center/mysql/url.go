package mysql

import (
	"cmp"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"github.com/dutyrota/rota/internal/sqldb"
)

// URL returns the database at mysql://user:password@host:3306/database, or mariadb://..., with the parameters of
// go-sql-driver/mysql behind the question mark, as far as they leave the roster intact; socket=FILE connects to a
// Unix socket. A list of hosts, host1:3306,host2:3306, is tried in order; a read-only host is passed over. Off this
// host the connection is encrypted (tls=skip-verify), unless the URL says otherwise: tls=true also verifies the
// server, tls=false does without TLS. center.Open returns the error of a malformed URL.
func URL(raw string) sqldb.Database {
	u, err := sqldb.ParseURL(raw, "mysql://...", "mysql", "mariadb")
	if err != nil {
		return sqldb.Database{Err: err}
	}
	if u.Query, err = params.Check(u.Query); err != nil {
		return sqldb.Database{Err: err}
	}
	if _, err := newHosts(u, sqldb.RoleStore, sqldb.PoolOptions{}, nil); err != nil {
		return sqldb.Database{Err: err}
	}
	return sqldb.Database{
		Dialect: dialect,
		Address: u.Address(),
		Local:   local(u),
		Connector: func(r sqldb.Role, o sqldb.PoolOptions) (sqldriver.Connector, error) {
			return connector(u, r, o)
		},
		Probe:       probe,
		CheckTx:     checkTx,
		CheckTables: checkTables,
		Notes: func(ctx context.Context, db *sql.DB) ([]sqldb.Note, error) {
			list, err := notes(ctx, db)
			return append(list, tlsNote(u)), err
		},
		Node: node,
	}
}

// params says what happens to each parameter of go-sql-driver/mysql, and to the session variables that it would set.
var params = sqldb.Join(
	sqldb.Pass().Each("allowCleartextPasswords", "allowFallbackToPlaintext", "allowNativePasswords", "compress",
		"connectionAttributes", "maxAllowedPacket", "serverPubKey", "timeout", "tls",
		"readTimeout", "writeTimeout", // the roster's own connections have theirs
		"socket"), // ours: a Unix socket
	// Of these session variables, the roster's own connections have their values of the first seven.
	literal.Each("idle_transaction_timeout", "innodb_lock_wait_timeout", "lock_wait_timeout", "max_execution_time",
		"max_statement_time", "sql_mode", "wsrep_sync_wait", "innodb_snapshot_isolation", "join_buffer_size",
		"max_heap_table_size", "net_read_timeout", "net_write_timeout", "sort_buffer_size", "tmp_table_size", "wait_timeout"),
	sqldb.Params{
		"allowOldPasswords": sqldb.Refuse("the password could be read from the network"),

		// Character sets. In GBK and its kin the second byte of a character may be a backslash: interpolated, a parameter
		// would end its quotes.
		"charset": sqldb.Only(isUTF8, "must be utf8mb4: in other character sets a parameter can end its quotes"),
		"collation": sqldb.Only(isUTF8Collation, "must begin with utf8mb4_: in other character sets a parameter "+
			"can end its quotes"),
		"character_set_client":     sqldb.Refuse(useCharset),
		"character_set_connection": sqldb.Refuse(useCharset),
		"character_set_results":    sqldb.Refuse(useCharset),
		"collation_connection":     sqldb.Refuse("charset=utf8mb4 and collation set it"),

		// What statements mean, and what they return.
		"allowAllFiles":     sqldb.Refuse("the server could read the files of this host"),
		"checkConnLiveness": sqldb.Force("true", "a connection that the server has closed would fail a heartbeat"),
		"clientFoundRows":   sqldb.Force("true", "a compare-and-set counts the matched rows, not the changed ones"),
		"columnsWithAlias":  sqldb.Refuse("columns would have other names"),
		"interpolateParams": sqldb.Force("true", "a statement is one round trip"),
		"loc":               sqldb.Force("UTC", "the tables hold UTC"),
		"multiStatements":   sqldb.Force("false", "a statement is one statement"),
		"parseTime":         sqldb.Force("true", "times are read as times"),
		"rejectReadOnly":    sqldb.Force("false", "it would hide that the server is read-only; the pool leaves it anyway"),
		"strict":            sqldb.Refuse("the driver has no such mode any more"),
		"timeTruncate":      sqldb.Refuse("times have microseconds"),

		// Session variables.
		"autocommit":            sqldb.Force("1", "otherwise no other server sees a heartbeat"),
		"time_zone":             sqldb.Force("+00:00", "the tables hold UTC"),
		"transaction_isolation": isolation,
		"tx_isolation":          isolation,
		"transaction_read_only": sqldb.Refuse("a roster needs to write"),
		"tx_read_only":          sqldb.Refuse("a roster needs to write"),
		"foreign_key_checks":    sqldb.Refuse("a dealer could break its own tables"),
		"unique_checks":         sqldb.Refuse("two rows could have one key"),
		"sql_auto_is_null":      sqldb.Refuse("IS NULL would find rows that are not NULL"),
		"sql_log_bin":           sqldb.Refuse("a replica would lack what is written"),
		"sql_safe_updates":      sqldb.Refuse("the roster's statements would fail"),
		"sql_select_limit":      sqldb.Refuse("the roster would read a part of its rows"),
		"wsrep_on":              sqldb.Refuse("other nodes would lack what is written"),
	},
)

const useCharset = "charset=utf8mb4 sets it"

// literal is a session variable. The driver writes the value into a statement as it is, so that it must be one literal.
var literal = sqldb.Only(regexp.MustCompile(`^('[A-Za-z0-9_,. -]*'|[A-Za-z0-9_.-]+)$`).MatchString,
	"must be a number, a word, or words in single quotes")

var isolation = sqldb.Only(sqldb.OneOf("'READ-COMMITTED'", "'REPEATABLE-READ'", "'SERIALIZABLE'"),
	"must be 'READ-COMMITTED', 'REPEATABLE-READ' or 'SERIALIZABLE', in single quotes: otherwise the roster would read "+
		"what is never committed")

func isUTF8(charset string) bool { return strings.EqualFold(charset, "utf8mb4") }

var utf8Collation = regexp.MustCompile(`^(?i:utf8mb4_)[A-Za-z0-9_]+$`)

func isUTF8Collation(name string) bool { return utf8Collation.MatchString(name) }

const (
	defaultHost = "127.0.0.1"
	defaultPort = "3306"
)

// hosts is a connector that tries hosts in order.
type hosts []host

type host struct {
	sqldriver.Connector
	name string
}

// newHosts returns a connector to the hosts of a URL for a role. It sets the variables in each session.
func newHosts(u *sqldb.URL, role sqldb.Role, o sqldb.PoolOptions, variables map[string]string) (hosts, error) {
	cfg, err := config(u)
	if err != nil {
		return nil, err
	}
	delete(cfg.Params, syncVariable) // the URL cannot change it: heartbeats must not wait (F7)
	force(cfg, role, o, variables)
	var list hosts
	for _, address := range addresses(u) {
		own := cfg.Clone() // NewConnector keeps the name of the server in it, to verify it
		own.Net, own.Addr = address.network, address.text
		c, err := driver.NewConnector(own)
		if err != nil {
			return nil, fmt.Errorf("database URL: %w", err)
		}
		list = append(list, host{c, address.text})
	}
	return list, nil
}

type address struct{ network, text string }

// addresses returns the addresses to try.
func addresses(u *sqldb.URL) []address {
	if socket := u.Query.Get("socket"); socket != "" {
		return []address{{"unix", socket}}
	}
	if len(u.Hosts) == 0 {
		return []address{{"tcp", net.JoinHostPort(defaultHost, defaultPort)}}
	}
	var list []address
	for _, h := range u.Hosts {
		list = append(list, address{"tcp", net.JoinHostPort(cmp.Or(h.Name, defaultHost), cmp.Or(h.Port, defaultPort))})
	}
	return list
}

// Connect implements driver.Connector.
func (list hosts) Connect(ctx context.Context) (sqldriver.Conn, error) {
	if len(list) == 1 {
		return list[0].connect(ctx)
	}
	var errs []error
	for _, h := range list {
		conn, err := h.connect(ctx)
		if err == nil {
			err = refuseReadOnly(ctx, conn)
		}
		if err == nil {
			return conn, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", h.name, err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// Driver implements driver.Connector.
func (list hosts) Driver() sqldriver.Driver { return list[0].Driver() }

// connect connects, and explains the errors that a parameter of the URL can avoid. A server that is frozen takes the
// connection and says nothing.
func (h host) connect(ctx context.Context) (sqldriver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, sqldb.ConnectTimeout)
	defer cancel()
	conn, err := h.Connect(ctx)
	if refused := charsetError(err, "the URL"); refused != nil {
		return nil, refused
	}
	if errors.Is(err, driver.ErrNoTLS) {
		return nil, fmt.Errorf("%w; tls=false in the URL connects without TLS", err)
	}
	return conn, err
}

// refuseReadOnly closes a connection to a server that takes no writes: after a fail-over the old primary is the first
// host that answers.
func refuseReadOnly(ctx context.Context, conn sqldriver.Conn) error {
	row, err := sqldb.Row(ctx, conn.(sqldb.Conn), "SELECT @@global.read_only")
	if err == nil && sqldb.ValueText(row[0]) != "0" {
		err = sqldb.TakesNoWrites("the database is read-only (read_only = 1 on this server: a replica?)")
	}
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	return nil
}

// tlsUnverified is the value of tls off this host if the URL has none: the connection is encrypted and the server is
// not verified, because most servers of MySQL have a certificate that they made themselves.
const tlsUnverified = "skip-verify"

// local reports whether all servers are on this host.
func local(u *sqldb.URL) bool { return u.Query.Has("socket") || u.Loopback() }

// tlsNote says what TLS protects, for an operator.
func tlsNote(u *sqldb.URL) sqldb.Note {
	mode := u.Query.Get("tls")
	if mode == "" && !local(u) {
		mode = tlsUnverified
	}
	const hint = "tls=true in the URL; for a certificate of your own, a configuration that the program registers " +
		"(mysql.RegisterTLSConfig)"
	bad := func(format string, args ...any) sqldb.Note {
		return sqldb.Note{Kind: "TLS", Hint: hint, Finding: fmt.Sprintf(format, args...)}
	}
	switch {
	case mode == "true":
		return sqldb.Note{Kind: "TLS", OK: true, Finding: "encrypted; the server's certificate and its name are verified " +
			"(tls=true)"}
	case local(u):
		return sqldb.Note{Kind: "TLS", OK: true, Finding: "the database is on this host: nothing needs to be verified"}
	case mode == "false":
		return bad("not encrypted (tls=false): the network can read and change what is sent")
	case mode == "preferred":
		return bad("perhaps not encrypted, and the server is not verified (tls=preferred): the network can read and change " +
			"what is sent")
	case mode == tlsUnverified:
		return bad("encrypted, but the server is not verified (tls=%s): another host could take its place and read the "+
			"password", tlsUnverified)
	}
	return sqldb.Note{Kind: "TLS", OK: true, Finding: fmt.Sprintf("encrypted as the program's configuration %s says",
		mode)}
}
