package center

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"modernc.org/sqlite"

	"github.com/dutyrota/rota/schema"
)

// SQLite has no clock but its host's, which is our own. Its functions rota_now and rota_ago read
// it through Go, so that a test in a synctest bubble has one clock and not two.
func init() {
	sqlite.MustRegisterScalarFunction("rota_now", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		return sqliteTime(time.Now()), nil
	})
	sqlite.MustRegisterScalarFunction("rota_ago", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		ms, ok := args[0].(int64)
		if !ok {
			return nil, fmt.Errorf("rota_ago(%v): not a number of milliseconds", args[0])
		}
		return sqliteTime(time.Now().Add(-time.Duration(ms) * time.Millisecond)), nil
	})
}

var sqliteDialect = &dialect{
	name:          schema.SQLite,
	now:           "rota_now()",
	ago:           func(ms string) string { return "rota_ago(" + ms + ")" },
	listed:        ` FROM json_each(?) AS v JOIN schedule_queue AS q ON q.queue_id = v.value WHERE q.task_type = ? AND q.own_sign = ?`,
	listedServers: ` FROM json_each(?) AS v JOIN schedule_server AS s ON s.uuid = v.value`,
	deleteServers: `DELETE FROM schedule_server WHERE uuid IN (SELECT value FROM json_each(?))`,
	upsertItem: ` ON CONFLICT (task_type, own_sign, item_key) DO UPDATE SET queue_id = excluded.queue_id, state = excluded.state,
		attempts = excluded.attempts, last_error = excluded.last_error, next_attempt_at = excluded.next_attempt_at`,
	// MATERIALIZED: else the list is read anew for each row of the roster.
	change: `WITH v AS MATERIALIZED (SELECT value ->> 'id' AS id, value ->> 'old_cur' AS old_cur, value ->> 'old_epoch' AS old_epoch,
			value ->> 'cur' AS cur, value ->> 'req' AS req, value ->> 'bump' AS bump, value ->> 'plan' AS plan FROM json_each(?))
		UPDATE schedule_queue AS q SET cur_server = v.cur, req_server = v.req, epoch = q.epoch + v.bump,
		cur_since = CASE WHEN v.bump = 0 THEN q.cur_since WHEN v.cur IS NULL THEN NULL ELSE {now} END,
		req_since = CASE WHEN v.req IS NULL THEN NULL WHEN q.req_server = v.req THEN q.req_since ELSE {now} END,
		plan_version = v.plan, gmt_modified = {now}
		FROM v
		WHERE q.task_type = ? AND q.own_sign = ? AND q.queue_id = v.id
		AND q.epoch = v.old_epoch AND q.cur_server IS v.old_cur`,
	time:     sqliteTime,
	classify: classifySQLite,
}

// sqliteLayout has a fixed width, so that the order of the strings is the order of the times.
const sqliteLayout = "2006-01-02 15:04:05.000000"

func sqliteTime(t time.Time) any { return t.UTC().Format(sqliteLayout) }

func classifySQLite(err error) class {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return classOther
	}
	switch e.Code() {
	case 1555, 2067: // SQLITE_CONSTRAINT_PRIMARYKEY, _UNIQUE
		return classDuplicate
	}
	switch e.Code() & 0xff {
	case 5, 6: // SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT among its kinds; SQLITE_LOCKED
		return classRollback
	case 8:
		return classReadOnly
	case 1:
		if strings.Contains(e.Error(), "no such table") {
			return classNoTable
		}
	}
	return classRefused
}

// sqliteDSN turns the part after "sqlite:" into a name for the driver. Every transaction takes
// the write lock at its start: one that reads first and writes later would fail with
// SQLITE_BUSY_SNAPSHOT at once, however patient its busy_timeout.
//
// A statement that waits for the lock does not notice that its context has ended. So the roster's
// own wait briefly, and are tried again in Go; dealers, whose code may not try again, wait longer.
func sqliteDSN(path string, r role, mustExist bool) string {
	busy := "busy_timeout(200)"
	if r == roleDealers {
		busy = "busy_timeout(5000)"
	}
	pragmas := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {busy, "journal_mode(WAL)", "synchronous(NORMAL)"},
	}
	if mustExist {
		pragmas.Set("mode", "rw")
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + pragmas.Encode()
}
