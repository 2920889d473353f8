package schema

import (
	"errors"
	"strings"

	"github.com/pressly/goose/v3/database"
)

// SQLite is the embedded database, for one host, through modernc.org/sqlite.
const SQLite Dialect = "sqlite"

var sqlite = grammar{
	name:  SQLite,
	goose: database.DialectSQLite3,
	bookkeeping: []string{
		`CREATE TABLE IF NOT EXISTS schedule_schema_version (
			id         INTEGER PRIMARY KEY AUTOINCREMENT,
			version_id BIGINT  NOT NULL UNIQUE,
			is_applied BOOLEAN NOT NULL,
			tstamp     TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')
		)`,
		`INSERT INTO schedule_schema_version (version_id, is_applied) VALUES (0, TRUE) ON CONFLICT DO NOTHING`,
		`CREATE TABLE IF NOT EXISTS schedule_schema_lock (
			id               BIGINT NOT NULL PRIMARY KEY,
			holder           TEXT   NOT NULL DEFAULT '',
			expires_at       TEXT,
			oldest_companion BIGINT NOT NULL DEFAULT 1,
			edition          BIGINT NOT NULL DEFAULT ` + edition + `
		)`,
		`INSERT INTO schedule_schema_lock (id) VALUES (1) ON CONFLICT DO NOTHING`,
	},
	now:  `strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'`,
	soon: `strftime('%Y-%m-%d %H:%M:%f', 'now', (? / 1000.0) || ' seconds') || '000'`,
	bind: unchanged,

	noTable:   says("no such table"),
	noColumn:  says("no such column"),
	transient: busy,
	raced:     never,
}

// says returns a function that recognises an error by its text: SQLite has one code for all mistakes in a statement.
func says(text string) func(error) bool {
	return func(err error) bool { return err != nil && strings.Contains(err.Error(), text) }
}

// busy reports whether an error of modernc.org/sqlite means that the database is busy or locked. It does not import the
// driver: a program links only the driver that it uses.
func busy(err error) bool {
	var e interface{ Code() int }
	if !errors.As(err, &e) {
		return false
	}
	code := e.Code() & 0xff       // the rest says which kind of busy
	return code == 5 || code == 6 // SQLITE_BUSY, SQLITE_LOCKED
}
