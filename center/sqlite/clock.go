package sqlite

import (
	"database/sql/driver"
	"time"

	"modernc.org/sqlite"

	"github.com/dutyrota/rota/internal/sqldb"
)

// SQLite has the clock of its host, which is also the program's. The functions rota_now and rota_ago read it through
// Go, so that SQLite has the fake clock in a synctest bubble.
func init() {
	sqlite.MustRegisterScalarFunction("rota_now", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		return timeText(sqldb.FileClock()), nil
	})
	sqlite.MustRegisterScalarFunction("rota_ago", 1,
		func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			ms, ok := args[0].(int64)
			if !ok { // a text in one row must not fail the statement: NULL compares with nothing
				return nil, nil
			}
			return timeText(sqldb.FileClock().Add(-sqldb.ClampMillis(ms))), nil
		})
}

// timeText returns a time as the tables hold it.
func timeText(t time.Time) string { return t.UTC().Format(sqldb.TimeLayout) }
