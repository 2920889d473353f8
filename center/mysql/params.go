package mysql

import (
	"regexp"
	"strings"

	"github.com/dutyrota/rota/internal/sqldb"
)

// params says what happens to each parameter of go-sql-driver/mysql, and to the session variables that it would set.
var params = sqldb.Params{
	"socket": sqldb.Pass(), // ours: a Unix socket

	// Connecting.
	"allowCleartextPasswords":  sqldb.Pass(),
	"allowFallbackToPlaintext": sqldb.Pass(),
	"allowNativePasswords":     sqldb.Pass(),
	"allowOldPasswords":        sqldb.Refuse("the password could be read from the network"),
	"compress":                 sqldb.Pass(),
	"connectionAttributes":     sqldb.Pass(),
	"maxAllowedPacket":         sqldb.Pass(),
	"serverPubKey":             sqldb.Pass(),
	"timeout":                  sqldb.Pass(),
	"tls":                      sqldb.Pass(),
	"readTimeout":              sqldb.Pass(), // the roster's own connections have theirs
	"writeTimeout":             sqldb.Pass(),

	// Character sets. In GBK and its kin the second byte of a character may be a backslash: interpolated, a parameter
	// would end its quotes.
	"charset": sqldb.Only(isUTF8, "must be utf8mb4: in other character sets a parameter can end its "+
		"quotes"),
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
	"rejectReadOnly":    sqldb.Force("true", "after a fail-over the pool leaves the old primary"),
	"strict":            sqldb.Refuse("the driver has no such mode any more"),
	"timeTruncate":      sqldb.Refuse("times have microseconds"),

	// Session variables.
	"autocommit":                sqldb.Force("1", "otherwise no other server sees a heartbeat"),
	"time_zone":                 sqldb.Force("+00:00", "the tables hold UTC"),
	"transaction_isolation":     isolation,
	"tx_isolation":              isolation,
	"transaction_read_only":     sqldb.Refuse("a roster needs to write"),
	"tx_read_only":              sqldb.Refuse("a roster needs to write"),
	"foreign_key_checks":        sqldb.Refuse("a dealer could break its own tables"),
	"unique_checks":             sqldb.Refuse("two rows could have one key"),
	"sql_auto_is_null":          sqldb.Refuse("IS NULL would find rows that are not NULL"),
	"sql_log_bin":               sqldb.Refuse("a replica would lack what is written"),
	"sql_safe_updates":          sqldb.Refuse("the roster's statements would fail"),
	"sql_select_limit":          sqldb.Refuse("the roster would read a part of its rows"),
	"wsrep_on":                  sqldb.Refuse("other nodes would lack what is written"),
	"idle_transaction_timeout":  literal, // the roster's own connections have theirs of this and the next six
	"innodb_lock_wait_timeout":  literal,
	"lock_wait_timeout":         literal,
	"max_execution_time":        literal,
	"max_statement_time":        literal,
	"sql_mode":                  literal,
	"wsrep_sync_wait":           literal,
	"innodb_snapshot_isolation": literal,
	"join_buffer_size":          literal,
	"max_heap_table_size":       literal,
	"net_read_timeout":          literal,
	"net_write_timeout":         literal,
	"sort_buffer_size":          literal,
	"tmp_table_size":            literal,
	"wait_timeout":              literal,
}

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
