package main

import (
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
)

const web1, web2 = "web1:1:00000001", "web2:2:00000002"

// stage is a roster for operators: settle, whose four queues web1 owns, two of which web2 asks for; and regions,
// whose named queues nobody has ever had.
type stage struct {
	*testing.T
	url, dir string
	c        *center.Center
}

func newStage(t *testing.T, url string) *stage {
	t.Helper()
	if _, _, err := center.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	c, err := center.Open(t.Context(), url, center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &stage{t, url, t.TempDir(), c}
	s.define("settle", center.Settings{Queues: 4, ExecuteNumber: 10})
	s.define("regions", center.Settings{QueueNames: []string{"north", "south"}})
	s.join(web1)
	s.join(web2)
	return s
}

func (s *stage) define(task string, settings center.Settings) {
	s.Helper()
	_, err := s.c.Define(s.Context(), task, settings)
	s.must(err)
}

func (s *stage) join(uuid string) {
	s.Helper()
	host, _, _ := strings.Cut(uuid, ":")
	_, err := s.c.Register(s.Context(), center.Server{UUID: uuid, TaskType: "settle", Host: host, PID: 1, JudgeDeadInterval: time.Hour})
	s.must(err)
	_, err = s.c.Assign(s.Context(), "settle", center.Assignment{Actor: uuid})
	s.must(err)
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// run runs a command that must succeed, and returns what it says.
func (s *stage) run(args string, more ...string) string {
	s.Helper()
	stdout, stderr, code := s.try(args, more...)
	if code != 0 || stderr != "" {
		s.Fatalf("rota %s: exit code %d, stderr %q, stdout\n%s", args, code, stderr, stdout)
	}
	return stdout
}

func (s *stage) try(args string, more ...string) (stdout, stderr string, code int) {
	s.Helper()
	list := append(strings.Fields(args), more...)
	return runRota(s.T, s.dir, append(list, "--database", s.url)...)
}

// refused runs a command that must fail with one line, and nothing on stdout.
func (s *stage) refused(code int, want, args string, more ...string) {
	s.Helper()
	stdout, stderr, got := s.try(args, more...)
	if got != code || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
		s.Errorf("rota %s: exit code %d, want %d; stdout %q; stderr\n%swant %s", args, got, code, stdout, stderr, want)
	}
}

func (s *stage) says(args, want string) {
	s.Helper()
	if got := s.run(args); !regexp.MustCompile(want).MatchString(got) {
		s.Errorf("rota %s: want %s, got\n%s", args, want, got)
	}
}

func (s *stage) exec(statement string) {
	s.Helper()
	execute(s.T, s.c.DB(), statement)
}

// Each list: people get a table, programs JSON and CSV with the columns' names.
func TestLists(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := newStage(t, url)
		s.must(s.c.SaveFailedItems(t.Context(), "settle", []center.FailedItem{{Key: "a b", QueueID: "0", State: center.ItemDead, Attempts: 3, LastError: "no,\nnever"}}))
		for _, test := range []struct {
			args    string
			table   string // a line of it
			of      string // the table of the database
			records int
			beside  string // names that are no columns
		}{
			{"task list", `settle +SERVING +4 +2 +2 +0 +0 +2 +0 +0 +1`, "schedule_task_type NATURAL JOIN schedule_task_running", 2, "servers overdue_servers held moving overdue orphan unassigned in_hand oldest_in_hand_since success_count failure_count retry_items dead_items"},
			{"queue list", `settle +1 +MOVING +web1:1:00000001 +[\d.]+s +[\d.]+s +web2:2:00000002 +[\d.]+s`, "schedule_assignment NATURAL JOIN schedule_queue", 6, "removing"},
			{"queue list settle --status MOVING", `settle +3 +MOVING`, "schedule_assignment NATURAL JOIN schedule_queue", 2, "removing"},
			{"queue list --host web2", `settle +3 +MOVING`, "schedule_assignment NATURAL JOIN schedule_queue", 2, "removing"},
			{"queue list --server web2:2", `settle +3 +MOVING`, "schedule_assignment NATURAL JOIN schedule_queue", 2, "removing"},
			{"server list", `web1:1:00000001 +settle +STANDBY +[\d.]+s +4 +2 +0 +0`, "schedule_server", 2, "heartbeat_age_s overdue queues requested awaited oldest_in_hand_s"},
			{"server list settle --host web2", `web2:2:00000002 +settle`, "schedule_server", 1, "heartbeat_age_s overdue queues requested awaited oldest_in_hand_s"},
			{"event list", `\S+Z +settle +3 +REQUESTED +web1:1:00000001 +web2:2:00000002`, "schedule_event", 8, ""},
			{"event list settle --queue 3 --since 1h --kind requested --server web2:2", `\S+Z +settle +3 +REQUESTED`, "schedule_event", 1, ""},
			{"event list --limit 2", `\S+Z +settle +3 +REQUESTED`, "schedule_event", 2, ""},
			{"item list settle --state DEAD --queue 0", `settle +0 +a b +DEAD +3 .* no, never`, "schedule_failed_item", 1, ""},
		} {
			s.says(test.args, `(?m)^ `+test.table)
			var records []map[string]any
			s.must(json.Unmarshal([]byte(s.run(test.args+" -o json")), &records))
			if len(records) != test.records {
				t.Errorf("rota %s: %d records, want %d: %v", test.args, len(records), test.records, records)
				continue
			}
			s.namesAreColumns(test.args, records[0], test.of, strings.Fields(test.beside))
			lines, err := csv.NewReader(strings.NewReader(s.run(test.args + " -o csv"))).ReadAll()
			if err != nil || len(lines) != test.records+1 || len(lines[0]) != len(records[0]) {
				t.Errorf("rota %s -o csv: %v\n%q", test.args, err, lines)
			}
		}
		if empty := s.run("item list regions -o json"); empty != "[]\n" {
			t.Errorf("nothing is %q in JSON", empty)
		}
	})
}

// namesAreColumns checks that JSON names are those of the table, and that times are RFC 3339 in UTC.
func (s *stage) namesAreColumns(args string, record map[string]any, table string, beside []string) {
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
	testdb.Each(t, func(t *testing.T, url string) {
		s := newStage(t, url)
		s.says("task show settle", `(?m)^ execute_number +10 +1$`)
		s.says("task show settle", `(?m)^ queues +4$`)
		s.says("task show regions", `(?m)^ queues +\[north, south\]$`)
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

// What operators do is done, is told, and stands in the events with who did it.
func TestOperate(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := newStage(t, url)
		state := func(uuid string) (state string) {
			s.must(s.c.DB().QueryRowContext(t.Context(), "SELECT state FROM schedule_server WHERE uuid = '"+uuid+"'").Scan(&state))
			return state
		}
		s.says("task pause settle", `^settle\$BASE: paused; `)
		s.says("task list", `(?m)^ settle +PAUSED`)
		s.says("task resume settle", `^settle\$BASE: goes on`)
		s.says("server pause web2:2", `^web2:2:00000002 \(settle\): paused; `)
		if got := state(web2); got != center.StatePaused {
			t.Errorf("web2 is %s", got)
		}
		s.says("server resume "+web2, `may have queues again`)
		s.says("server drain web1:1", `its 4 queues go to others`)
		if got := state(web1); got != center.StateDraining {
			t.Errorf("web1 is %s", got)
		}
		s.says("server drain web1:1 --force", `its 4 queues were taken away`)
		if n := count(t, s.c.DB(), "schedule_queue WHERE cur_server = '"+web2+"'"); n != 4 {
			t.Errorf("web2 has %d queues", n)
		}
		s.says("queue add regions west", `queue west added`)
		s.says("queue remove regions south --yes", `queue south goes`)
		s.says("queue list regions", `(?s)north.*west`)
		s.must(s.c.SaveFailedItems(t.Context(), "settle", []center.FailedItem{
			{Key: "a", QueueID: "0", State: center.ItemDead, Attempts: 3}, {Key: "b", QueueID: "0", State: center.ItemDead}, {Key: "c", QueueID: "0", State: center.ItemDead},
		}))
		s.says("item retry settle a", `1 items are to be tried again`)
		s.says("item list --state RETRY", `(?m) a +RETRY +0 `)
		s.says("item drop settle b --yes", `1 items are forgotten`)
		s.says("item retry settle --all", `2 items are to be tried again`)
		s.refused(1, "1 of 2 items have not failed, or not in own_sign BASE; 1 are forgotten", "item drop settle b c --yes")
		s.says("item drop settle --all --yes", `1 items are forgotten`)

		who := actor()
		if !regexp.MustCompile(`^\w+@.+`).MatchString(who) {
			t.Errorf("the actor is %q", who)
		}
		for kind := range strings.FieldsSeq("PAUSED RESUMED DRAINING FORCED ADDED REMOVED ITEMS") {
			if count(t, s.c.DB(), "schedule_event WHERE kind = '"+kind+"' AND actor = '"+who+"'") == 0 {
				t.Errorf("no event %s by %s", kind, who)
			}
		}
		s.refused(1, "delete settle$BASE: servers that live serve it in own_sign BASE (2): stop them first", "task delete settle --yes")
		s.says("task delete regions --yes", `^regions: deleted\n$`)
		s.refused(1, "regions: unknown task type", "task show regions")
	})
}

// What deletes asks first, and without a terminal there is nobody to ask.
func TestDeletingWantsYes(t *testing.T) {
	s := newStage(t, testdb.URL(t, testdb.SQLite))
	s.refused(2, "this will remove queue north of regions$BASE: its items are not processed any more: say --yes", "queue remove regions north")
	s.refused(2, "this will delete the task type regions in all environments, its settings, queues and failed items: say --yes", "task delete regions")
	s.refused(2, "this will delete the records of all failed items of settle: say --yes", "item drop settle --all")
	if n := count(t, s.c.DB(), "schedule_queue"); n != 6 {
		t.Errorf("%d queues are left", n)
	}
}

func TestOwnSignOfCommands(t *testing.T) {
	s := newStage(t, testdb.URL(t, testdb.SQLite))
	other, err := center.Open(t.Context(), s.url, center.Options{OwnSign: "TEST"})
	s.must(err)
	defer other.Close()
	_, err = other.Define(t.Context(), "settle", center.Settings{Queues: 4})
	s.must(err)
	s.says("task pause settle --own-sign TEST", `^settle\$TEST: paused`)
	if n := count(t, s.c.DB(), "schedule_task_running WHERE paused AND own_sign = 'BASE'"); n != 0 {
		t.Error("another environment was paused")
	}
	if got := s.run("server list --own-sign TEST -o csv"); strings.Count(got, "\n") != 1 {
		t.Errorf("servers of another environment: %s", got)
	}
}

func TestPlan(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := newStage(t, url)
		before := snapshot(t, s.c.DB())
		s.says("plan settle", `(?m)^ 1 +web1:1:00000001 +web2:2:00000002 +its owner has more than its share; asked for already$`)
		s.says("plan settle --add 2", `3 queues would move; the least that balances the load is 3`)
		s.says("plan settle --remove web1:1", `(?m)^ 0 +web1:1:00000001 +web2:2:00000002 +its owner stops$`)
		s.says("plan settle --remove web1:1 --remove web2:2", `0 queues would move; .*; 4 would have no owner`)
		s.says("plan settle -o csv", `^queue_id,cur_server,next_server,requested,reason\n1,web1`)
		var record struct {
			Moved, Minimum int
			Moves          []map[string]any
		}
		s.must(json.Unmarshal([]byte(s.run("plan settle --add 1 -o json")), &record))
		if record.Moved != 2 || record.Minimum != 2 || len(record.Moves) != 2 {
			t.Errorf("%+v", record)
		}
		if diff := cmp.Diff(before, snapshot(t, s.c.DB())); diff != "" {
			t.Errorf("a dry run writes:\n%s", diff)
		}
	})
}

// snapshot is all that a dry run might write.
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

func TestDoctor(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := newStage(t, url)
		s.exec("DELETE FROM schedule_queue WHERE task_type = 'regions'")
		s.exec("DELETE FROM schedule_task_running WHERE task_type = 'regions'")
		s.exec("DELETE FROM schedule_task_type WHERE task_type = 'regions'")
		s.says("doctor", `(?m)^OK +database +(PostgreSQL \d+|.*MariaDB.*|SQLite \d).*, own_sign BASE, at .*; it can be written to$`)
		s.says("doctor settle", `(?m)^OK +roster +settle: 4 queues, 2 servers$`)
		if out := s.run("doctor"); strings.Contains(out, "PROBLEM") || strings.Contains(out, "secret") {
			t.Error(out)
		}
		s.exec("UPDATE schedule_server SET heartbeat_time = '2020-01-01 00:00:00.000000'")
		stdout, stderr, code := s.try("doctor -o json")
		var findings []map[string]string
		s.must(json.Unmarshal([]byte(stdout), &findings))
		if code != 1 || stderr != "rota: there are 3 problems\n" {
			t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
		}
		last := findings[len(findings)-1]
		if last["status"] != "PROBLEM" || last["task_type"] != "settle" || last["hint"] == "" || !strings.Contains(last["finding"], web2+" has been silent for ") {
			t.Errorf("%v", last)
		}
		// Where settings of the file are not those of the database.
		writeFile(t, filepath.Join(s.dir, "rota.yaml"), "database: x\ntasks: {settle: {queues: 4, execute_number: 11}}")
		stdout, _, _ = s.try("doctor")
		if !strings.Contains(stdout, "settle: rota.yaml says something else than the database, which is in force  -> rota task apply --dry-run -f rota.yaml") {
			t.Error(stdout)
		}
	})
}

// A roster that cannot be opened is a finding, too.
func TestDoctorWithoutSchema(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		stdout, stderr, code := runRota(t, t.TempDir(), "doctor", "--database", url)
		if code != 1 || stderr != "rota: there is a problem\n" || !strings.HasPrefix(stdout, "PROBLEM  database") || !strings.Contains(stdout, "rota migrate up") {
			t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
		}
	})
}

// A transaction that stalls is what the doctor is called for, and does not keep it from looking.
func TestDoctorWhileALockIsHeld(t *testing.T) {
	s := newStage(t, testdb.URL(t, testdb.SQLite))
	lock, err := s.c.DB().BeginTx(t.Context(), nil)
	s.must(err)
	defer lock.Rollback()
	stdout, _, code := s.try("doctor settle")
	if code != 1 || !strings.Contains(stdout, "PROBLEM  privileges   INSERT on schedule_task_type, of no row, could not be tried: database is locked") || !strings.Contains(stdout, "settle: 4 queues, 2 servers") {
		t.Errorf("exit code %d, stdout\n%s", code, stdout)
	}
}

// Into a pipe, a watch prints again and again, without moving a cursor; SIGINT is its good end.
func TestWatch(t *testing.T) {
	s := newStage(t, testdb.URL(t, testdb.SQLite))
	for args, want := range map[string]string{
		"queue list settle --watch=100ms": " TASK ",
		"top --watch=100ms":               " TASK ",
		"event list --follow -o json":     `{"event_id":8,`,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := rota(ctx, s.dir, append(strings.Fields(args), "--database", s.url)...)
		out := &strings.Builder{}
		reader, err := cmd.StdoutPipe()
		s.must(err)
		s.must(cmd.Start())
		buffer := make([]byte, 64<<10)
		for least := 2; strings.Count(out.String(), want) < least; {
			n, err := reader.Read(buffer)
			out.Write(buffer[:n])
			if err != nil {
				t.Fatalf("rota %s: %v after\n%s", args, err, out)
			}
			if strings.Contains(args, "--follow") && strings.Contains(out.String(), want) {
				least = 1
				s.must(s.c.Pause(t.Context(), "settle", true, "test"))
				for !strings.Contains(out.String(), `"kind":"PAUSED"`) {
					n, err := reader.Read(buffer)
					out.Write(buffer[:n])
					s.must(err)
				}
			}
		}
		s.must(cmd.Process.Signal(os.Interrupt))
		go func() { _, _ = reader.Read(buffer) }()
		state, err := cmd.Process.Wait()
		s.must(err)
		if state.ExitCode() != 0 || strings.Contains(out.String(), "\x1b") {
			t.Errorf("rota %s: exit code %d, stdout\n%s", args, state.ExitCode(), out)
		}
	}
}

func TestCompletion(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := newStage(t, url)
		for args, want := range map[string]string{
			"task show":            "regions settle",
			"task show s":          "settle",
			"task show settle":     "", // it takes one
			"plan":                 "regions settle",
			"plan settle --remove": web1 + " " + web2,
			"server drain":         web1 + " " + web2,
			"server drain web2":    web2,
			"queue remove regions": "north south",
			"queue list --status":  "HELD MOVING OVERDUE ORPHAN UNASSIGNED",
			"queue list -o":        "table json csv",
			"item retry settle":    "",
		} {
			// What is typed of the last word comes last, and may be nothing.
			words, typed := strings.Fields(args), ""
			if last := words[len(words)-1]; last == "s" || last == "web2" {
				words, typed = words[:len(words)-1], last
			}
			cmd := rota(t.Context(), s.dir, slices.Concat([]string{"__complete"}, words, []string{typed})...)
			cmd.Env = append(cmd.Env, "ROTA_DATABASE="+url)
			stdout, err := cmd.Output()
			s.must(err)
			var got []string
			for line := range strings.Lines(string(stdout)) {
				if name, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); name != "" && !strings.HasPrefix(name, ":") {
					got = append(got, name)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %q, want %q", args, got, want)
			}
		}
	})
}

// A shell is no place for errors.
func TestCompletionIsSilent(t *testing.T) {
	stdout, stderr, code := runRota(t, t.TempDir(), "__completeNoDesc", "task", "show", "--database", "postgres://u@127.0.0.1:1/d", "")
	if code != 0 || stdout != ":4\n" || strings.Contains(stderr, "cannot connect") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}
