package sqlite

import (
	"net/url"
	"strings"

	"github.com/dutyrota/rota/internal/sqldb"
)

// params says what happens to each parameter of modernc.org/sqlite and of SQLite's own URIs. None is passed on: a URL
// of a roster is a path, and dataSource sets what is needed.
var params = sqldb.Params{
	"_busy_timeout": sqldb.Refuse(ownTimeout),
	"_timeout":      sqldb.Refuse(ownTimeout),
	"_journal_mode": sqldb.Force("WAL", "readers and a writer do not wait for each other"),
	"_journal":      sqldb.Force("WAL", "readers and a writer do not wait for each other"),
	"_txlock":       sqldb.Force("immediate", "a transaction that reads first could not write later"),
	"_synchronous":  sqldb.Force("FULL", "a loss of power would take back what was committed last"),
	"_sync":         sqldb.Force("FULL", "a loss of power would take back what was committed last"),

	"_auto_vacuum":         sqldb.Refuse("it is a property of the file: set it with PRAGMA auto_vacuum"),
	"_vacuum":              sqldb.Refuse("it is a property of the file: set it with PRAGMA auto_vacuum"),
	"_defensive":           sqldb.Refuse("migrations change the schema"),
	"_dqs":                 sqldb.Refuse("a dealer's statements could mean something else"),
	"_error_rc":            sqldb.Refuse("errors would have other texts"),
	"_fk":                  sqldb.Refuse("a dealer's statements could fail"),
	"_foreign_keys":        sqldb.Refuse("a dealer's statements could fail"),
	"_inttotime":           sqldb.Refuse(otherTimes),
	"_pragma":              sqldb.Refuse("a PRAGMA can change what any statement means"),
	"_query_only":          sqldb.Refuse("a roster needs to write"),
	"_texttotime":          sqldb.Refuse(otherTimes),
	"_time_format":         sqldb.Refuse(otherTimes),
	"_time_integer_format": sqldb.Refuse(otherTimes),
	"_timezone":            sqldb.Refuse(otherTimes),

	"cache":     sqldb.Refuse("a shared cache has locks of its own"),
	"immutable": sqldb.Refuse("the changes of other processes would not be seen"),
	"mode":      sqldb.Refuse("Open decides whether to create the file"),
	"nolock":    sqldb.Refuse("two processes could write at once"),
	"psow":      sqldb.Refuse("a loss of power could damage the file"),
	"vfs":       sqldb.Refuse("other file systems have other locks"),
}

const (
	ownTimeout = "the roster's statements wait for 200 ms and are tried again, those of dealers wait for 5 s"
	otherTimes = "times would be written or read in another form"
)

// refuseParams refuses a path that ends with parameters. A question mark alone may stand in the name of a file.
func refuseParams(path string) error {
	_, text, found := strings.Cut(path, "?")
	if !found || !strings.Contains(text, "=") {
		return nil
	}
	query, err := url.ParseQuery(text)
	if err != nil {
		return sqldb.URLError("the parameters cannot be read: want sqlite:FILE")
	}
	if _, err := params.Check(query); err != nil {
		return err
	}
	return sqldb.URLError("want sqlite:FILE without parameters: what they say is forced on each connection")
}
