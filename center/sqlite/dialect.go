package sqlite

import (
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/schema"
)

var dialect = &sqldb.Dialect{
	Name:      schema.SQLite,
	Version:   `SELECT 'SQLite ' || sqlite_version()`,
	OneWriter: true,
	Now:       "rota_now()",
	Ago:       func(ms string) string { return "rota_ago(" + ms + ")" },
	QueuesIn: ` FROM json_each(?) AS v JOIN schedule_queue AS q ON q.queue_id = v.value WHERE q.task_type = ?
		AND q.own_sign = ?`,
	ServersIn:     ` FROM json_each(?) AS v JOIN schedule_server AS s ON s.uuid = v.value`,
	DeleteServers: `DELETE FROM schedule_server WHERE uuid IN (SELECT value FROM json_each(?))`,
	UpsertBacklog: ` ON CONFLICT (task_type, own_sign, queue_id) DO UPDATE SET epoch = excluded.epoch,
		items = excluded.items,
		oldest_at = excluded.oldest_at, measured_at = excluded.measured_at, took_ms = excluded.took_ms, rate = excluded.rate,
		trend = excluded.trend, demand = COALESCE(excluded.demand, schedule_backlog.demand)
		WHERE schedule_backlog.epoch <= excluded.epoch`,
	UpsertItem: ` ON CONFLICT (task_type, own_sign, item_hash) DO UPDATE SET queue_id = excluded.queue_id,
		partition_version = excluded.partition_version, state = excluded.state,
		attempts = excluded.attempts, last_error = excluded.last_error, next_attempt_at = excluded.next_attempt_at`,
	// Without MATERIALIZED, SQLite reads the list again for each row of the roster.
	ChangeQueues: `WITH v AS MATERIALIZED (SELECT value ->> 'id' AS id, value ->> 'old_cur' AS old_cur,
		value ->> 'old_epoch' AS old_epoch,
			value ->> 'cur' AS cur, value ->> 'req' AS req, value ->> 'bump' AS bump, value ->> 'plan' AS plan FROM json_each(?))
		UPDATE schedule_queue AS q SET cur_server = v.cur, req_server = v.req, epoch = q.epoch + v.bump,
		cur_since = CASE WHEN v.bump = 0 THEN q.cur_since WHEN v.cur IS NULL THEN NULL ELSE {now} END,
		req_since = CASE WHEN v.req IS NULL THEN NULL WHEN q.req_server = v.req THEN q.req_since ELSE {now} END,
		reserved_for = CASE WHEN v.cur IS NULL THEN q.reserved_for END, reserved_until = CASE
		WHEN v.cur IS NULL THEN q.reserved_until END,
		waits_for = CASE WHEN v.cur IS NULL THEN q.waits_for END, plan_version = v.plan, gmt_modified = {now}
		FROM v
		WHERE q.task_type = ? AND q.own_sign = ? AND q.queue_id = v.id
		AND q.epoch = v.old_epoch AND q.cur_server IS v.old_cur`,
	ScheduledDay: "substr(scheduled_at, 1, 10)",

	Time:     func(t time.Time) any { return timeText(t) },
	Classify: classify,
	Denied:   func(error) bool { return false },
}
