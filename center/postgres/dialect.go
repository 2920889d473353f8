package postgres

import (
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/schema"
)

var dialect = &sqldb.Dialect{
	Name:    schema.Postgres,
	Version: `SELECT 'PostgreSQL ' || current_setting('server_version')`,
	Tables: `SELECT REPLACE(table_type, 'BASE ', ''), table_name FROM information_schema.tables
		WHERE table_schema = current_schema() ORDER BY table_type DESC, table_name`,
	Now: "clock_timestamp()", // now() would be the start of the transaction
	// For bigint * interval PostgreSQL has no operator: it would look for one on the search path before it casts.
	Ago: func(ms string) string {
		return "clock_timestamp() - CAST(" + sqldb.ClampedMillis(ms) + " AS double precision) * INTERVAL '1 millisecond'"
	},
	Numbered: true,
	// OFFSET 0 keeps the look-up of each queue by its key. In a plain join, or with an array, PostgreSQL compares the list
	// with each queue of the roster if its statistics do not know the task type yet: 2,000 ids of 100,000 queues take
	// thirty seconds.
	QueuesIn: ` FROM jsonb_array_elements_text(CAST(? AS jsonb)) AS v(id), LATERAL (SELECT * FROM {queues} AS s
		WHERE s.queue_id = v.id AND s.task_type = ? AND s.own_sign = ? OFFSET 0) AS q WHERE TRUE`,
	Share:      " FOR SHARE OF q",
	SkipLocked: " FOR UPDATE OF q SKIP LOCKED",
	ServersIn: ` FROM schedule_server AS s
		WHERE s.uuid = ` + anyID,
	LockServers: " FOR UPDATE OF s",
	DeleteServers: `DELETE FROM schedule_server AS s
		WHERE s.uuid = ` + anyID,
	// Without the LIMIT, PostgreSQL expects a hundred rows, and reads all servers to compare them with one.
	Values:       `(SELECT * FROM jsonb_to_recordset(CAST(? AS jsonb)) AS v({columns}) LIMIT {limit}) AS v`,
	ValueColumns: [...]string{`{name} text`, `{name} text`, `{name} bigint`, `{name} timestamptz`},
	Param:        [...]string{`CAST(? AS text)`, `CAST(? AS text)`, `CAST(? AS bigint)`, `CAST(? AS timestamptz)`},
	ValueTime:    time.RFC3339Nano, // with the zone, because that of the session may be another one
	UpdateServers: `UPDATE schedule_server AS s SET {set} FROM {values}
		WHERE s.uuid = v.id AND {where}`,
	JoinInOrder:   ` JOIN `,
	UpsertBacklog: sqldb.OnConflictBacklog,
	KeepRow:       sqldb.OnConflictNothing,
	UpsertItem:    sqldb.OnConflictItem,
	Notify:        "SELECT pg_notify($1, $2)",
	Limits:        " AND " + limits,
	WaitInLine:    " AND CASE WHEN " + limits + " THEN pg_advisory_xact_lock(" + line + ") IS NOT NULL END",
	TryLine:       " AND CASE WHEN " + limits + " THEN pg_try_advisory_xact_lock(" + line + ") END",
	IdleLimit:     " AND " + idleLimit,
	Durable:       " AND " + durable + " <> ''",
	// The statement in the middle is executed whether or not its result is read. The last SELECT fails if the row is not
	// locked, and takes the statement with it: at READ COMMITTED, FOR SHARE has waited for a change of the owner, and has
	// compared the row as that has left it. The failing expression depends on the count, so that the planner cannot
	// evaluate it beforehand.
	Guard: `WITH rota_fence AS MATERIALIZED (SELECT 1 FROM {table} AS q WHERE task_type = ? AND own_sign = ?
		AND queue_id = ? AND cur_server = ? AND epoch = ? AND ` + durable + ` <> '' FOR SHARE OF q), rota_work AS (
{work})
SELECT CASE COUNT(*) WHEN 1 THEN 1 ELSE CAST('` + sqldb.GuardFailed + ` ' || COUNT(*) AS integer) END FROM rota_fence`,
	// The LIMIT tells PostgreSQL's planner the greatest number of rows, for the same reason: it uses the index for a few
	// rows and a hash for many.
	ChangeQueues: `UPDATE schedule_queue AS q SET ` + sqldb.SetQueue + `
		FROM (SELECT * FROM jsonb_to_recordset(CAST(? AS jsonb))
			AS v(id text, old_cur text, old_epoch bigint, cur text, req text, bump bigint, plan bigint) LIMIT {rows}) AS v
		WHERE q.task_type = ? AND q.own_sign = ? AND q.queue_id = v.id
		AND q.epoch = v.old_epoch AND q.cur_server IS NOT DISTINCT FROM v.old_cur`,
	ScheduledDay: "to_char(scheduled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')",

	Time:     sqldb.UTC,
	Classify: classify,
	Denied:   denied,
}

// limits is a condition that is always true. It makes the transaction durable and sets four time-outs for it. MySQL's
// connections have them as settings. PgBouncer refuses them as settings of a connection; for a transaction they cost
// nothing. Without the first, a host that vanishes or is stopped would keep the lock row until TCP notices, after
// hours. With the second, a transaction that waits for a lock for longer than a second gives up and keeps its
// connection. Otherwise the program would close the connection (sqldb.IOTimeout). A session that waits for a lock does
// not notice that, so that each attempt would leave a session in the server. The third ends a statement that the
// program has given up (sqldb.IOTimeout), which would keep the lock row for as long as it runs. It takes effect from
// the transaction's second statement on. An idle limit of the session that is shorter stays (F6).
var limits = atMost(idleTimeout, "", "'10s'") + ` || set_config('lock_timeout', '1000', true) ||
	set_config('statement_timeout', '10000', true) || ` + unsentLimit("'10s'") + ` || ` + durable + ` <> ''`

// durable is an expression that sets synchronous_commit for the transaction, unless its value in the session is strict
// enough: the server, the database or the role may have off as the default. Then a crash of the server would take back
// commits that were acknowledged, and an epoch would be used twice. It is set for the transaction, as PgBouncer
// refuses settings of a connection.
const durable = `set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') = 'remote_apply'
	THEN 'remote_apply' ELSE 'on' END, true)`

// idleTimeout is the time-out of a transaction whose client is silent.
const idleTimeout = "idle_in_transaction_session_timeout"

// unsentLimit ends a connection whose client takes nothing of what the server sends for the given time, because it is
// stopped while it reads a large roster. No other time-out ends a statement that waits for its client. Only Linux has
// it, and only for TCP.
func unsentLimit(limit string) string {
	return `CASE WHEN version() LIKE '%linux%' THEN ` + atMost("tcp_user_timeout", "ms", limit) + ` ELSE '' END`
}

// atMost is an expression that sets a time-out for the transaction. A shorter one of the session stays, because an
// administrator has set it for the role, the database or the server. unit is what the server leaves out when it shows
// the time-out.
func atMost(name, unit, limit string) string {
	now := "current_setting('" + name + "')"
	span := "CAST(" + now + " || '" + unit + "' AS interval)"
	return `set_config('` + name + `', CASE WHEN ` + span + ` > interval '0' AND ` + span + ` < CAST(` + limit +
		` AS interval)
		THEN ` + now + ` ELSE ` + limit + ` END, true)`
}

// idleLimit is a condition that is always true and limits, for the transaction, how long its client may be silent:
// between two statements, and while it does not take the rows of one (tcp_user_timeout, which only Linux has).
var idleLimit = atMost(idleTimeout, "", mark) + ` || ` + unsentLimit(mark) + ` <> ''`

// anyID is a list of the ids of a JSON array.
const anyID = `ANY(ARRAY(SELECT jsonb_array_elements_text(CAST(? AS jsonb))))`

// mark is a parameter that is a text.
const mark = "CAST(? AS text)"

// line is the key of the advisory lock on which callers wait before a lock row. It is computed from a bound text and
// from the table, so that rosters in other schemas have other keys.
const line = "hashtextextended(?, CAST(tableoid AS bigint))"
