package schema

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/testdb"
)

// In a rolling upgrade, programs of the previous version write rows without the columns that the newest version has
// added. The test tries this program's newest migration, and the synthetic one.
func TestPreviousProgramsWrite(t *testing.T) {
	for name, latest := range map[string]int64{"own": own, "synthetic": own + 1} {
		t.Run(name, func(t *testing.T) {
			testdb.Each(t, func(t *testing.T, url string) { writesAsBefore(t, url, latest) })
		})
	}
}

func writesAsBefore(t *testing.T, url string, latest int64) {
	TeachLater(t, max(1, latest-1))
	db, d := migrated(t, url)
	before := layout(t, db, d)
	TeachLater(t, latest)
	migrated(t, url)
	oneRowEach(t, db)
	for table, columns := range before {
		if table == "schedule_assignment" || strings.HasPrefix(table, "schedule_schema_") {
			continue
		}
		list := strings.Join(columns, ", ")
		execute(t, db, `CREATE TABLE copied AS SELECT `+list+` FROM `+table)
		execute(t, db, `DELETE FROM `+table)
		execute(t, db, `INSERT INTO `+table+` (`+list+`) SELECT `+list+` FROM copied`)
		if got := texts(t, db, `SELECT COUNT(*) FROM `+table); got[0] != "1" {
			t.Errorf("%s has %s rows, want the one of oneRowEach", table, got[0])
		}
		execute(t, db, `DROP TABLE copied`)
	}
}

// oneRowEach inserts a row into each table.
func oneRowEach(t *testing.T, db *sql.DB) {
	t.Helper()
	const at = `'2026-01-01 00:00:00.000000'`
	for _, row := range []string{
		`task_type (task_type) VALUES ('settle')`,
		`task_running (task_type) VALUES ('settle')`,
		`environment (own_sign) VALUES ('BASE')`,
		`server (uuid, task_type) VALUES ('a', 'settle')`,
		`server_version (task_type, uuid) VALUES ('settle', 'a')`,
		`server_history (uuid, task_type, register_time, heartbeat_time, reason) VALUES ('a', 'settle', ` + at + `, ` + at + `, 'LEFT')`,
		`queue (task_type, queue_id, queue_index) VALUES ('settle', '0', 0)`,
		`queue_setting (task_type, queue_id, labels) VALUES ('settle', '0', 'zone=b')`,
		`data (name, data_id, address) VALUES ('orders', 'x', '')`,
		`event (task_type, kind) VALUES ('settle', 'ALERT')`,
		`failed_item (task_type, item_hash, item_key, queue_id) VALUES ('settle', 'h', '17', '0')`,
		`backlog (task_type, queue_id, epoch, items, measured_at, took_ms) VALUES ('settle', '0', 1, 5, ` + at + `, 1)`,
		`trigger (name, trigger_id, target, kind, expression) VALUES ('a', 'a', 'settle', 'CRON', '')`,
		`task_after (task_type, upstream) VALUES ('a', 'b')`,
		`run (run_id, task_type, run_key, root_run_id, scheduled_at, state) VALUES ('1', 'settle', 'k', '1', ` + at + `, 'READY')`,
		`run_queue (run_id, queue_id) VALUES ('1', '0')`,
		`run_item (run_id, queue_id, item_no, item_key, attempt, failed_at) VALUES ('1', '0', 1, '17', 1, ` + at + `)`,
		`run_dep (run_id, upstream_run_id) VALUES ('1', '0')`,
		`submission (task_type, run_key, run_id, request) VALUES ('settle', 'k', '1', '{}')`,
		`backfill (backfill_id, task_type, trigger_name, kind, expression, from_at, to_at) VALUES ('1', 'settle', 'a', 'CRON', '', ` + at + `, ` + at + `)`,
	} {
		execute(t, db, `INSERT INTO schedule_`+row)
	}
}

// An operator inserts a row by hand, from a session in another time zone.
func TestDefaults(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		migrated(t, url)
		db, _ := session(t, url, awayFromUTC(url))
		execute(t, db, `INSERT INTO schedule_task_type (task_type) VALUES ('settle')`)
		execute(t, db, `INSERT INTO schedule_task_running (task_type) VALUES ('settle')`)
		execute(t, db, `INSERT INTO schedule_queue (task_type, queue_id, queue_index) VALUES ('settle', '0', 0)`)
		execute(t, db, `INSERT INTO schedule_event (task_type, kind) VALUES ('settle', 'ALERT')`)
		execute(t, db, `INSERT INTO schedule_event (task_type, kind) VALUES ('settle', 'ALERT')`)
		execute(t, db, `INSERT INTO schedule_failed_item (task_type, item_hash, item_key, queue_id) VALUES ('settle', 'h', '17', '0')`)
		settings(t, db)
		var paused bool
		var high int64
		row := db.QueryRowContext(t.Context(), `SELECT paused, epoch_high FROM schedule_task_running WHERE own_sign = 'BASE'`)
		if err := row.Scan(&paused, &high); err != nil || paused || high != 0 {
			t.Errorf("lock row: paused %t, epoch_high %d, %v", paused, high, err)
		}
		if ids := texts(t, db, `SELECT event_id FROM schedule_event ORDER BY event_id`); !slices.Equal(ids, []string{"1", "2"}) {
			t.Errorf("event_id: %v", ids)
		}
		recent(t, db, `SELECT gmt_created FROM schedule_task_type`)
		recent(t, db, `SELECT gmt_modified FROM schedule_queue`)
		recent(t, db, `SELECT event_time FROM schedule_event WHERE event_id = 1`)
		recent(t, db, `SELECT first_failed_at FROM schedule_failed_item`)
		execute(t, db, `INSERT INTO schedule_run (run_id, task_type, run_key, root_run_id, scheduled_at, state)
			VALUES ('1', 'settle', 'k', '1', '2026-01-01 00:00:00.000000', 'READY')`)
		recent(t, db, `SELECT created_at FROM schedule_run WHERE own_sign = 'BASE'`)
	})
}

func settings(t *testing.T, db *sql.DB) {
	t.Helper()
	var mode, processor string
	got := make([]int64, 9)
	err := db.QueryRowContext(t.Context(), `SELECT mode, processor_type, heartbeat_interval_ms, judge_dead_interval_ms, thread_number,
		fetch_number, execute_number, sleep_time_nodata_ms, drain_timeout_ms, item_retry_ms, item_retry_max_ms
		FROM schedule_task_type`).Scan(&mode, &processor, &got[0], &got[1], &got[2], &got[3], &got[4], &got[5], &got[6], &got[7], &got[8])
	if err != nil {
		t.Fatal(err)
	}
	want := []int64{2000, 10000, 5, 500, 1, 500, 30000, 1000, 21600000}
	if mode != "CONTINUOUS" || processor != "SLEEP" || !slices.Equal(got, want) {
		t.Errorf("settings: %s %s %v, want %v", mode, processor, got, want)
	}
}

// recent checks that a time that the database has set is near now in UTC.
func recent(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	var at time.Time
	if err := db.QueryRowContext(t.Context(), query).Scan((*instant)(&at)); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if off := time.Since(at).Abs(); off > time.Hour {
		t.Errorf("%s: %s is %s off", query, at, off)
	}
}

// Rows are locked in the order of their bytes, which Go and every database must agree on.
func TestQueueIDsSortByBytes(t *testing.T) {
	t.Parallel()
	ids := []string{"10", "2", "a", "A", "b", "B", "_", "-", "~", "a b", "a-b", "ab", "é", "e\u0301", "ß", "z", "ﬀ", "語", "😀", "\uffff"}
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, _ := migrated(t, url)
		for i, id := range ids {
			execute(t, db, `INSERT INTO schedule_queue (task_type, queue_id, queue_index) VALUES ('settle', ?, ?)`, id, i)
		}
		want := slices.Sorted(slices.Values(ids))
		if diff := cmp.Diff(want, texts(t, db, `SELECT queue_id FROM schedule_queue ORDER BY queue_id`)); diff != "" {
			t.Errorf("order (-Go +database):\n%s", diff)
		}
	})
}

// The test servers sort by bytes by default. Other servers may not, so that the columns need their own collation.
func TestIdentifiersHaveTheirCollation(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{testdb.Postgres: "C", testdb.MySQL: "utf8mb4_bin"} {
		t.Run(kind, func(t *testing.T) {
			db, _ := migrated(t, testdb.URL(t, kind))
			got := texts(t, db, `SELECT DISTINCT COALESCE(collation_name, '(the default)') FROM information_schema.columns
				WHERE table_name LIKE 'schedule%' AND column_name IN ('task_type', 'own_sign', 'queue_id', 'uuid', 'item_key', 'beat_token',
				'cur_server', 'req_server', 'from_server', 'to_server', 'last_assign_server', 'name', 'trigger_id', 'target', 'upstream',
				'run_id', 'run_key', 'root_run_id', 'trigger_name', 'backfill_id', 'upstream_run_id', 'server', 'witness', 'reserved_for',
				'process') ORDER BY 1`)
			if !slices.Equal(got, []string{want}) {
				t.Errorf("collations: %q, want %s", got, want)
			}
		})
	}
}

// Identifiers of the greatest length fit into the keys and indexes.
func TestLongestIdentifiers(t *testing.T) {
	t.Parallel()
	wide := func(n int) string { return strings.Repeat("😀", n) }
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, _ := migrated(t, url)
		execute(t, db, `INSERT INTO schedule_queue (task_type, own_sign, queue_id, queue_index, cur_server, req_server)
			VALUES (?, ?, ?, 0, ?, ?)`, wide(100), wide(50), wide(150), wide(150), wide(150))
		execute(t, db, `INSERT INTO schedule_failed_item (task_type, own_sign, item_hash, item_key, queue_id)
			VALUES (?, ?, ?, ?, ?)`, wide(100), wide(50), wide(64), wide(10_000), wide(150))
		execute(t, db, `INSERT INTO schedule_trigger (own_sign, name, trigger_id, target, kind, expression)
			VALUES (?, ?, ?, ?, 'CRON', '')`, wide(50), wide(150), wide(36), wide(100))
		execute(t, db, `INSERT INTO schedule_task_after (task_type, upstream) VALUES (?, ?)`, wide(100), wide(99))
		execute(t, db, `INSERT INTO schedule_run (run_id, task_type, own_sign, run_key, root_run_id, scheduled_at, state)
			VALUES (?, ?, ?, ?, ?, '2026-01-01 00:00:00.000000', 'READY')`, wide(36), wide(100), wide(50), wide(255), wide(36))
		execute(t, db, `INSERT INTO schedule_run_queue (run_id, queue_id, server) VALUES (?, ?, ?)`, wide(36), wide(150), wide(150))
		execute(t, db, `INSERT INTO schedule_run_item (run_id, queue_id, item_no, item_key, attempt, failed_at)
			VALUES (?, ?, 1, ?, 1, '2026-01-01 00:00:00.000000')`, wide(36), wide(150), wide(255))
		execute(t, db, `INSERT INTO schedule_run_dep (run_id, upstream_run_id) VALUES (?, ?)`, wide(36), wide(36))
		execute(t, db, `INSERT INTO schedule_submission (task_type, own_sign, run_key, run_id, request)
			VALUES (?, ?, ?, ?, '{}')`, wide(100), wide(50), wide(255), wide(36))
		execute(t, db, `INSERT INTO schedule_backfill (backfill_id, task_type, own_sign, trigger_name, kind, expression, from_at, to_at)
			VALUES (?, ?, ?, ?, 'CRON', '', '2026-01-01 00:00:00.000000', '2026-01-01 00:00:00.000000')`, wide(36), wide(100), wide(50), wide(150))
		execute(t, db, `INSERT INTO schedule_queue_setting (task_type, own_sign, queue_id, labels) VALUES (?, ?, ?, 'zone=b')`, wide(100), wide(50), wide(150))
		execute(t, db, `INSERT INTO schedule_data (own_sign, name, data_id, address) VALUES (?, ?, ?, '')`, wide(50), wide(100), wide(50))
		execute(t, db, `INSERT INTO schedule_backlog (task_type, own_sign, queue_id, epoch, items, measured_at, took_ms)
			VALUES (?, ?, ?, 1, 1, '2026-01-01 00:00:00.000000', 1)`, wide(100), wide(50), wide(150))
	})
}
