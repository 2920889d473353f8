package schema

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

func TestAssignment(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, d := migrated(t, url)
		g, err := d.grammar()
		if err != nil {
			t.Fatal(err)
		}
		server := func(uuid, taskType string, ageMS int) {
			execute(t, db, `INSERT INTO schedule_server (uuid, task_type, host_name, pid, judge_dead_interval_ms, heartbeat_time)
				VALUES (?, ?, 'web1', 4711, 3600000, `+g.soon+`)`, uuid, taskType, -ageMS)
		}
		server("alive", "settle", 12250)
		server("late", "settle", 3600250)
		server("other", "push", 0)
		queue := func(id string, cur, req any) {
			execute(t, db, `INSERT INTO schedule_queue (task_type, queue_id, queue_index, cur_server, req_server, cur_since)
				VALUES ('settle', ?, 0, ?, ?, `+g.soon+`)`, id, cur, req, -90_500)
		}
		queue("1 UNASSIGNED", nil, nil)
		queue("2 UNASSIGNED", nil, "alive")
		queue("3 ORPHAN", "gone", "alive")
		queue("4 ORPHAN", "other", nil) // a server of another task type owns nothing here
		queue("5 OVERDUE", "late", "alive")
		queue("6 MOVING", "alive", "late")
		queue("7 HELD", "alive", nil)
		got := texts(t, db, `SELECT status FROM schedule_assignment ORDER BY queue_id`)
		for i, id := range texts(t, db, `SELECT queue_id FROM schedule_queue ORDER BY queue_id`) {
			if id[2:] != got[i] {
				t.Errorf("queue %s is %s", id, got[i])
			}
		}
		ages(t, db)
	})
}

// SQLite's clock has milliseconds, and times in the tables have microseconds.
func TestAgesAreNotNegative(t *testing.T) {
	t.Parallel()
	db := inMemory(t) // so fast that the clock still shows the same millisecond
	execute(t, db, `INSERT INTO schedule_queue (task_type, queue_id, queue_index) VALUES ('settle', '0', 0)`)
	for range 100 {
		execute(t, db, `UPDATE schedule_queue SET cur_since = ?`, time.Now().UTC().Format("2006-01-02 15:04:05.000000"))
		if age := texts(t, db, `SELECT held_s FROM schedule_assignment`)[0]; strings.HasPrefix(age, "-") {
			t.Fatalf("held_s = %s", age)
		}
	}
}

func ages(t *testing.T, db *sql.DB) {
	t.Helper()
	var host, pid, age, held string
	var reqHost, requested sql.NullString
	err := db.QueryRowContext(t.Context(), `SELECT cur_host, cur_pid, cur_heartbeat_age_s, held_s, req_host, requested_s
		FROM schedule_assignment WHERE queue_id = '7 HELD'`).Scan(&host, &pid, &age, &held, &reqHost, &requested)
	if err != nil {
		t.Fatal(err)
	}
	if host != "web1" || pid != "4711" || reqHost.Valid || requested.Valid {
		t.Errorf("host %s, pid %s, req_host %v, requested_s %v", host, pid, reqHost, requested)
	}
	between(t, "cur_heartbeat_age_s", age, 12.25)
	between(t, "held_s", held, 90.5)
}

// between checks that the value is from, plus at most the time that the test has taken since, with 3 decimals.
func between(t *testing.T, name, text string, from float64) {
	t.Helper()
	var v float64
	if _, err := fmt.Sscan(text, &v); err != nil || v < from || v > from+600 {
		t.Errorf("%s = %q, want about %v", name, text, from)
	}
	if _, decimals, _ := strings.Cut(text, "."); len(decimals) > 3 {
		t.Errorf("%s = %q, want 3 decimals", name, text)
	}
}
