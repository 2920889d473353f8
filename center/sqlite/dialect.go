package sqlite

import (
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/schema"
)

var dialect = &sqldb.Dialect{
	Name:      schema.SQLite,
	Version:   `SELECT 'SQLite ' || sqlite_version()`,
	Tables:    `SELECT upper(type), name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY type DESC, name`,
	OneWriter: true,
	Now:       "rota_now()",
	PlainNow:  `strftime('%Y-%m-%d %H:%M:%f000', 'now')`, // as timeText writes it, in milliseconds
	Ago:       func(ms string) string { return "rota_ago(" + ms + ")" },
	QueuesIn: ` FROM json_each(?) AS v JOIN {queues} AS q ON q.queue_id = v.value WHERE q.task_type = ?
		AND q.own_sign = ?`,
	ServersIn:     ` FROM json_each(?) AS v JOIN schedule_server AS s ON s.uuid = v.value`,
	DeleteServers: `DELETE FROM schedule_server WHERE uuid IN (SELECT value FROM json_each(?))`,
	Values:        `(SELECT {columns} FROM json_each(?)) AS v`,
	ValueColumns:  [...]string{value, value, value, value},
	Param:         [...]string{`?`, `?`, `?`, `?`},
	// Without MATERIALIZED, SQLite reads the list again for each row of the table.
	UpdateServers: `WITH v AS MATERIALIZED (SELECT * FROM {values})
		UPDATE schedule_server AS s SET {set} FROM v WHERE s.uuid = v.id AND {where}`,
	JoinInOrder:   ` CROSS JOIN `,
	UpsertBacklog: sqldb.OnConflictBacklog,
	KeepRow:       sqldb.OnConflictNothing,
	UpsertItem:    sqldb.OnConflictItem,
	// Without MATERIALIZED, SQLite reads the list again for each row of the roster.
	ChangeQueues: `WITH v AS MATERIALIZED (SELECT value ->> 'id' AS id, value ->> 'old_cur' AS old_cur,
		value ->> 'old_epoch' AS old_epoch,
			value ->> 'cur' AS cur, value ->> 'req' AS req, value ->> 'bump' AS bump, value ->> 'plan' AS plan FROM json_each(?))
		UPDATE schedule_queue AS q SET ` + sqldb.SetQueue + `
		FROM v
		WHERE q.task_type = ? AND q.own_sign = ? AND q.queue_id = v.id
		AND q.epoch = v.old_epoch AND q.cur_server IS v.old_cur`,
	ScheduledDay: "substr(scheduled_at, 1, 10)",

	Time:     func(t time.Time) any { return timeText(t) },
	Classify: classify,
	Denied:   func(error) bool { return false },
}

// value is a column of the elements of a JSON array.
const value = `value ->> '{name}' AS {name}`
