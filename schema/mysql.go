package schema

import (
	"errors"
	"regexp"
	"slices"

	"github.com/pressly/goose/v3/database"
)

// MySQL is MySQL 8 and newer and MariaDB 10.6 and newer, through go-sql-driver/mysql.
const MySQL Dialect = "mysql"

var mysql = grammar{
	name:  MySQL,
	goose: database.DialectMySQL,
	bookkeeping: []string{
		`CREATE TABLE IF NOT EXISTS schedule_schema_version (
			id         BIGINT      NOT NULL AUTO_INCREMENT PRIMARY KEY,
			version_id BIGINT      NOT NULL UNIQUE,
			is_applied BOOLEAN     NOT NULL,
			tstamp     DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6))
		) ENGINE = InnoDB`,
		`INSERT IGNORE INTO schedule_schema_version (version_id, is_applied) VALUES (0, TRUE)`,
		`CREATE TABLE IF NOT EXISTS schedule_schema_lock (
			id               BIGINT       NOT NULL PRIMARY KEY,
			holder           VARCHAR(300) NOT NULL DEFAULT '',
			expires_at       DATETIME(6)  NULL,
			oldest_companion BIGINT       NOT NULL DEFAULT 1,
			edition          BIGINT       NOT NULL DEFAULT ` + edition + `
		) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
		`INSERT IGNORE INTO schedule_schema_lock (id) VALUES (1)`,
	},
	now:  `UTC_TIMESTAMP(6)`,
	soon: `UTC_TIMESTAMP(6) + INTERVAL (? * 1000) MICROSECOND`,
	bind: unchanged,

	noTable:  number("1146"),
	noColumn: number("1054"),
	// deadlock (in Galera: another node was first), lock timeout, row changed meanwhile
	transient: number("1213", "1205", "1020"),
	raced:     never,
}

// number returns a function that recognises the errors of go-sql-driver/mysql, without importing it: a program links
// only the driver that it uses. The type has no method that returns the number. The text of the error begins with it.
func number(numbers ...string) func(error) bool {
	return func(err error) bool {
		var e interface { // mysql.MySQLError has these two methods
			error
			Is(error) bool
		}
		if !errors.As(err, &e) {
			return false
		}
		m := numbered.FindStringSubmatch(e.Error())
		return m != nil && slices.Contains(numbers, m[1])
	}
}

var numbered = regexp.MustCompile(`^Error (\d+)[ :]`)
