package main

import (
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// Each list has a table, and JSON and CSV with the names of the database columns.
func TestLists(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.must(failures.Of(s.c.Roster()).Save(t.Context(), "settle", []failures.Item{{Key: "a b", QueueID: "0", State: ops.ItemDead, Attempts: 3, LastError: "no,\nnever"}}))
		for _, test := range []struct {
			args    string
			table   string // a line of it
			of      string // the table of the database
			records int
			beside  string // names that are not columns
		}{
			{"task list", `settle +SERVING +4 +2 +2 +0 +0 +2 +- +0 +0 +1 +DEAD_ITEMS +none`, "schedule_task_type NATURAL JOIN schedule_task_running", 2, "requested_total removing resizing servers overdue_servers failing_servers held moving overdue orphan unassigned reserved max_in_flight_granted in_hand oldest_in_hand_since success_count failure_count retry_items held_keys dead_items run_id problems notes checked_at not_checked backlog_items backlog_queues fresh_backlog_items fresh_backlog_queues fresh_backlog_age_s backlog_oldest_s backlog_age_s backlog_rate"},
			{"queue list", `settle +1 +MOVING +web1:1:00000001 +[\d.]+s +[\d.]+s +web2:2:00000002 +[\d.]+s`, "schedule_assignment", 6, "removing resizing hung_on"},
			{"queue list settle --status MOVING", `settle +3 +MOVING`, "schedule_assignment", 2, "removing resizing hung_on"},
			{"queue list --host web2", `settle +3 +MOVING`, "schedule_assignment", 2, "removing resizing hung_on"},
			{"queue list --worker web2:2", `settle +3 +MOVING`, "schedule_assignment", 2, "removing resizing hung_on"},
			{"worker list", `web1:1:00000001 +settle +SERVING +[\d.]+s +4 +2 +0 +0`, "schedule_server", 2, "heartbeat_age_s overdue queues requested awaited oldest_in_hand_s last_error_s"},
			{"worker list settle --host web2", `web2:2:00000002 +settle`, "schedule_server", 1, "heartbeat_age_s overdue queues requested awaited oldest_in_hand_s last_error_s"},
			{"event list", `\S+Z +settle +3 +REQUESTED +web1:1:00000001 +web2:2:00000002`, "schedule_event", 8, ""},
			{"event list settle --queue 3 --since 1h --kind requested --worker web2:2", `\S+Z +settle +3 +REQUESTED`, "schedule_event", 1, ""},
			{"event list --limit 2", `\S+Z +settle +3 +REQUESTED`, "schedule_event", 2, ""},
			{"item list settle --state DEAD --queue 0", `settle +0 +a b +DEAD +3 .* no, never`, "schedule_failed_item", 1, "waits_for"},
		} {
			s.lists(test.args, test.table, test.of, test.records, test.beside)
		}
		if empty := s.run("item list regions -o json"); empty != "[]\n" {
			t.Errorf("an empty list is %q in JSON", empty)
		}
	})
}

// lists checks a list command: a line of its table, and the number and names of its records. A name is a column of
// the table, or one of beside.
func (s *testRoster) lists(args, line, of string, count int, beside string) {
	s.Helper()
	s.wantOutput(args, `(?m)^ `+line)
	var records []map[string]any
	s.must(json.Unmarshal([]byte(s.run(args+" -o json")), &records))
	if len(records) != count {
		s.Errorf("rota %s: %d records, want %d: %v", args, len(records), count, records)
		return
	}
	s.namesAreColumns(args, records[0], of, strings.Fields(beside))
	lines, err := csv.NewReader(strings.NewReader(s.run(args + " -o csv"))).ReadAll()
	if err != nil || len(lines) != count+1 || len(lines[0]) != len(records[0]) {
		s.Errorf("rota %s -o csv: %v\n%q", args, err, lines)
	}
}

// namesAreColumns checks that JSON names are columns of the table and that times are RFC 3339 in UTC.
func (s *testRoster) namesAreColumns(args string, record map[string]any, table string, beside []string) {
	s.Helper()
	rows, err := s.c.DB().QueryContext(s.Context(), "SELECT * FROM "+table+" WHERE 1 = 0")
	s.must(err)
	defer rows.Close()
	columns, err := rows.Columns()
	s.must(err)
	s.must(rows.Err())
	for name, value := range record {
		if !slices.Contains(columns, name) && !slices.Contains(beside, name) {
			s.Errorf("rota %s: %s is no column of %s", args, name, table)
		}
		if text, ok := value.(string); ok && strings.HasSuffix(name, "_time") {
			if at, err := time.Parse(time.RFC3339, text); err != nil || !strings.HasSuffix(text, "Z") || time.Since(at).Abs() > time.Hour {
				s.Errorf("rota %s: %s is %s: %v", args, name, text, err)
			}
		}
	}
}

func TestTaskShow(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.wantOutput("task show settle", `(?m)^ execute_number +10 +1$`)
		s.wantOutput("task show settle", `(?m)^ queues +4$`)
		s.wantOutput("task show regions", `(?m)^ queues +\[north, south\]$`)
		var record map[string]any
		s.must(json.Unmarshal([]byte(s.run("task show settle -o json")), &record))
		want := map[string]any{"execute_number": 10.0, "heartbeat_interval_ms": 2000.0, "task_type": "settle", "queue_total": 4.0, "time_zone": "UTC"}
		for name, value := range want {
			if diff := cmp.Diff(value, record[name]); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		lines, err := csv.NewReader(strings.NewReader(s.run("task show settle -o csv"))).ReadAll()
		if err != nil || len(lines) != 2 || len(lines[0]) != len(record) {
			t.Errorf("%v\n%q", err, lines)
		}
	})
}

func TestPlan(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		before := snapshot(t, s.c.DB())
		s.wantOutput("plan settle", `(?m)^ 1 +web1:1:00000001 +web2:2:00000002 +its owner has more than its share; already requested$`)
		s.wantOutput("plan settle --add 2", `3 queues would move\n`)
		s.wantOutput("plan settle --remove web1:1", `(?m)^ 0 +web1:1:00000001 +web2:2:00000002 +its owner stops$`)
		s.wantOutput("plan settle --remove web1:1 --remove web2:2", `0 queues would move; 4 would have no owner`)
		s.wantOutput("plan settle -o csv", `^queue_id,cur_server,next_server,requested,rule,reason,load\n1,web1`)
		var record struct {
			Moved int
			Moves []map[string]any
		}
		s.must(json.Unmarshal([]byte(s.run("plan settle --add 1 -o json")), &record))
		if record.Moved != 2 || len(record.Moves) != 2 {
			t.Errorf("%+v", record)
		}
		if diff := cmp.Diff(before, snapshot(t, s.c.DB())); diff != "" {
			t.Errorf("a dry run writes:\n%s", diff)
		}
	})
}

// snapshot returns everything that a dry run might write.
func snapshot(t *testing.T, db *sql.DB) (rows []string) {
	t.Helper()
	result, err := db.QueryContext(t.Context(), `SELECT q.queue_id, COALESCE(q.cur_server, '-'), COALESCE(q.req_server, '-'), q.epoch, r.version, t.version
		FROM schedule_queue q JOIN schedule_task_running r ON r.task_type = q.task_type AND r.own_sign = q.own_sign JOIN schedule_task_type t ON t.task_type = q.task_type
		ORDER BY q.task_type, q.queue_id`)
	if err != nil {
		t.Fatal(err)
	}
	defer result.Close()
	for result.Next() {
		var a, b, c, d, e, f string
		if err := result.Scan(&a, &b, &c, &d, &e, &f); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, strings.Join([]string{a, b, c, d, e, f}, " "))
	}
	if err := result.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}
