package mysql

import (
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/schema"
)

// dialect is the dialect of MySQL. Those of MariaDB and TiDB are copies of it with other fields.
var dialect = &sqldb.Dialect{
	Name:    schema.MySQL,
	Version: `SELECT CONCAT('MySQL ', VERSION())`,
	Tables: `SELECT REPLACE(table_type, 'BASE ', ''), table_name FROM information_schema.tables
		WHERE table_schema = DATABASE() ORDER BY table_type DESC, table_name`,
	Now: "UTC_TIMESTAMP(6)",
	Ago: func(ms string) string {
		return "UTC_TIMESTAMP(6) - INTERVAL " + sqldb.ClampedMillis(ms) + " * 1000 MICROSECOND"
	},
	// STRAIGHT_JOIN looks up the rows by their key. With IN, the optimizer may read the whole roster, and InnoDB locks
	// what a statement reads.
	QueuesIn: ` FROM ` + ids + `
		STRAIGHT_JOIN {queues} AS q ON q.task_type = ? AND q.own_sign = ? AND q.queue_id = v.id`,
	// Without FORCE INDEX, MySQL reads another index: to find one of a thousand servers, it reads all servers before it.
	ByKey: " FORCE INDEX (PRIMARY)",
	// OF, because MySQL refuses to lock the rows of JSON_TABLE (error 3569).
	Share:         " FOR SHARE OF q",
	SkipLocked:    " FOR UPDATE OF q SKIP LOCKED",
	ServersIn:     serversIn,
	LockServers:   " FOR UPDATE OF s",
	DeleteServers: `DELETE s` + serversIn,
	Values:        `JSON_TABLE(?, '$[*]' COLUMNS ({columns})) AS v`,
	ValueColumns: [...]string{
		`{name} VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.{name}'`,
		`{name} TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.{name}'`,
		`{name} BIGINT PATH '$.{name}'`, `{name} DATETIME(6) PATH '$.{name}'`,
	},
	ValueTime:     sqldb.TimeLayout,
	Param:         [...]string{`?`, `?`, `?`, `CAST(? AS DATETIME(6))`},
	UpdateServers: `UPDATE {values}` + joinServers + ` SET {set} WHERE {where}`,
	JoinInOrder:   ` STRAIGHT_JOIN `,
	// MySQL evaluates the assignments from left to right (L6): the comparison of the epochs comes before the new epoch.
	UpsertBacklog: ` ON DUPLICATE KEY UPDATE items = IF(epoch <= VALUES(epoch), VALUES(items), items),
		oldest_at = IF(epoch <= VALUES(epoch), VALUES(oldest_at), oldest_at),
		measured_at = IF(epoch <= VALUES(epoch), VALUES(measured_at), measured_at), took_ms = IF(epoch <= VALUES(epoch),
		VALUES(took_ms), took_ms),
		rate = IF(epoch <= VALUES(epoch), VALUES(rate), rate), trend = IF(epoch <= VALUES(epoch), VALUES(trend), trend),
		demand = IF(epoch <= VALUES(epoch), COALESCE(VALUES(demand), demand), demand),
		epoch = GREATEST(epoch, VALUES(epoch))`,
	KeepRow: ` ON DUPLICATE KEY UPDATE run_id = run_id`,
	UpsertItem: ` ON DUPLICATE KEY UPDATE queue_id = VALUES(queue_id), partition_version = VALUES(partition_version),
		order_key = VALUES(order_key), state = VALUES(state), attempts = VALUES(attempts),
		last_error = VALUES(last_error), next_attempt_at = VALUES(next_attempt_at)`,
	// STRAIGHT_JOIN as above.
	ChangeQueues: `UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
			id VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.id',
			old_cur VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.old_cur',
			old_epoch BIGINT PATH '$.old_epoch',
			cur VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.cur',
			req VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.req',
			bump BIGINT PATH '$.bump', plan BIGINT PATH '$.plan')) AS v
		STRAIGHT_JOIN schedule_queue AS q ON q.task_type = ? AND q.own_sign = ? AND q.queue_id = v.id
		SET ` + sqldb.SetQueue + `
		WHERE q.epoch = v.old_epoch AND q.cur_server <=> v.old_cur`,
	ScheduledDay: "DATE_FORMAT(scheduled_at, '%Y-%m-%d')",

	Time:     sqldb.UTC,
	Classify: classify,
	Denied:   denied,
}

// ids is a table of the ids of a JSON array.
const ids = `JSON_TABLE(?, '$[*]' COLUMNS (
	id VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS v`

// joinServers looks up the servers of a table v by their key.
const joinServers = ` STRAIGHT_JOIN schedule_server AS s ON s.uuid = v.id`

const serversIn = ` FROM ` + ids + joinServers
