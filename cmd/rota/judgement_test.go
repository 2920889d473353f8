package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/runs"
)

// play makes a task type of its own have a condition of one kind. It may have others, too.
type play struct {
	settings center.Settings                            // of two queues unless it says otherwise
	alone    bool                                       // it has no server
	rows     string                                     // statements, in which TASK and UUID stand for the task type and its server
	do       func(r *testRoster, task string, w string) // after the statements; w is the server
}

// long is a moment that is long over, as statements have it.
const long = "'2020-01-01 00:00:00.000000'"

func server(set string) string {
	return "UPDATE schedule_server SET " + set + " WHERE uuid = 'UUID'"
}

func queue(set string) string {
	return "UPDATE schedule_queue SET " + set + " WHERE task_type = 'TASK' AND queue_id = '0'"
}

func running(set string) string {
	return "UPDATE schedule_task_running SET " + set + " WHERE task_type = 'TASK'"
}

func trigger(set string) string {
	return "UPDATE schedule_trigger SET " + set + " WHERE target = 'TASK'"
}

func aRun(state, columns, values string) string {
	return "INSERT INTO schedule_run (run_id, task_type, run_key, root_run_id, scheduled_at, state" + columns + ") VALUES ('TASK', 'TASK', 'k', 'TASK', " +
		long + ", '" + state + "'" + values + ")"
}

// openRun makes a run with one queue that no server has claimed.
func openRun(deadline string) string {
	return aRun(runs.Running, ", waiting_since, started_at, deadline_at", ", "+long+", "+long+", "+deadline) +
		"; INSERT INTO schedule_run_queue (run_id, queue_id, cursor_value, last_error) VALUES ('TASK', '0', '', '')"
}

func second(info roster.ServerInfo) func(*testRoster, string, string) {
	return func(r *testRoster, task, _ string) {
		info.UUID, info.TaskType, info.Host, info.JudgeDeadInterval = task+":2:00000002", task, task, time.Hour
		_, err := r.c.Roster().Register(r.Context(), info)
		r.must(err)
	}
}

func backlogs(list ...ops.QueueBacklog) func(*testRoster, string, string) {
	return func(r *testRoster, task, _ string) {
		r.must(ops.New(r.c).Queues().SaveBacklogs(r.Context(), task, list))
	}
}

func items(list ...failures.Item) func(*testRoster, string, string) {
	return func(r *testRoster, task, _ string) { r.must(failures.Of(r.c.Roster()).Save(r.Context(), task, list)) }
}

// alert raises an alert, as a worker does.
func alert(kind string) func(*testRoster, string, string) {
	return func(r *testRoster, task, _ string) {
		_, err := r.c.Roster().Alert(r.Context(), condition.Condition{Kind: kind, TaskType: task, Text: "it is"}.Complete(), time.Hour)
		r.must(err)
	}
}

// inRuns are the settings of task types that work in runs; withTrigger adds a trigger that is never due, and stuck a rule
// that no worker meets.
var (
	inRuns      = center.Settings{Queues: 1, Mode: center.ModeRun}
	withTrigger = center.Settings{Queues: 1, Mode: center.ModeRun, Cron: "0 0 0 1 1 ? 2099"}
	stuck       = center.Settings{Queues: 1, Mode: center.ModeRun, RunTimeout: 100 * time.Hour, Require: "disk=ssd"}
)

// plays has a play for each kind of condition that rows can have. Alerts have one each besides.
var plays = map[string]play{
	"STALLED":       {rows: server("in_hand = 1, oldest_in_hand_since = " + long)},
	"CRASHES":       {rows: queue("crash_count = 9")},
	"UNSERVED":      {alone: true},
	"FAILING":       {rows: server("failing_since = " + long + ", failed_calls = 7, last_error = 'no'")},
	"QUEUE_FAILING": {rows: queue("failing_since = " + long)},
	"RUN_FAILED":    {settings: inRuns, rows: aRun(runs.Failed, ", failed_at, finished_at", ", "+long+", "+long)},
	"RUN_CANCELLED": {settings: inRuns, rows: aRun(runs.Cancelled, ", finished_at", ", "+long)},
	"RUN_OVERDUE":   {settings: stuck, rows: openRun("'" + time.Now().UTC().Add(time.Hour).Format(time.DateTime) + "'")},
	"RUN_STALLED":   {settings: stuck, rows: openRun("'2099-01-01 00:00:00.000000'")},
	"SLOT_MISSED":   {settings: withTrigger, rows: trigger("missed = 1, missed_at = " + long)},
	"SLOT_SKIPPED":  {settings: withTrigger, rows: trigger("skipped = 3, skipped_since = " + long)},
	"TRIGGER_LATE":  {settings: withTrigger, rows: trigger("next_fire_at = " + long)},
	"TRIGGER_ERROR": {settings: withTrigger, rows: trigger("status = 'ERROR', message = 'no'")},
	"RUN_UNMADE": {settings: inRuns, do: func(r *testRoster, task, _ string) {
		tx, err := r.c.DB().BeginTx(r.Context(), nil)
		r.must(err)
		_, _, err = ops.New(r.c).Runs().SubmitTx(r.Context(), tx, task, runs.Submission{})
		r.must(err)
		r.must(tx.Commit())
		r.exec("UPDATE schedule_task_type SET mode = 'CONTINUOUS' WHERE task_type = '" + task + "'")
	}},
	"JOIN_UNMET":    {settings: center.Settings{Queues: 1, Mode: center.ModeRun, After: []runs.After{{Upstream: "run_failed"}, {Upstream: "slot_missed"}}}},
	"PAUSED":        {rows: running("paused = TRUE")},
	"WINDOW_CLOSED": {rows: server("next_run_start_time = '2098-01-01 00:00:00.000000', next_run_end_time = '2099-01-01 00:00:00.000000'")},
	"NEVER_SERVED":  {alone: true, rows: "DELETE FROM schedule_queue WHERE task_type = 'TASK'; DELETE FROM schedule_task_running WHERE task_type = 'TASK'"},
	"NO_ELIGIBLE":   {rows: server("state = 'PAUSED'")},
	"SERVER_PAUSED": {rows: server("state = 'PAUSED'"), do: second(roster.ServerInfo{})},
	"SERVER_DRAINED": {
		do: func(r *testRoster, task, w string) {
			second(roster.ServerInfo{})(r, task, w)
			r.exec("UPDATE schedule_server SET state = 'DRAINING' WHERE uuid = '" + task + ":2:00000002'")
		},
	},
	"SERVER_SILENT": {rows: server("heartbeat_time = " + long)},
	"SERVER_EXPIRED": {rows: "INSERT INTO schedule_server_history (uuid, task_type, register_time, heartbeat_time, left_time, reason) VALUES ('gone:TASK:00000001', 'TASK', " +
		long + ", " + long + ", '" + time.Now().UTC().Format(time.DateTime) + "', 'EXPIRED')"},
	"NO_CALLS":        {rows: server("max_in_flight = 0, max_in_flight_target = 0")},
	"PLANNER_VERSION": {rows: server("planner_version = 9"), do: second(roster.ServerInfo{})},
	"UNWITNESSED":     {rows: server("host_name = 'TASK'"), do: second(roster.ServerInfo{Witness: "1"})},
	"SAME_NAME":       {rows: server("name = 'pod'"), do: second(roster.ServerInfo{Name: "pod"})},
	"REQUIRE_UNMET":   {settings: center.Settings{Queues: 2, Require: "disk=ssd"}},
	"PIN_UNMET": {do: func(r *testRoster, task, _ string) {
		r.must(r.c.Roster().Operator("test").PinQueue(r.Context(), task, "0", "zone=c"))
	}},
	"LAST_ERROR":      {rows: server("last_error = 'no'")},
	"HUNG":            {rows: queue("cur_server = NULL") + ";" + server(`hung_queues = '["0"]'`)},
	"NO_OWNER":        {rows: queue("cur_server = NULL")},
	"RESERVED":        {rows: queue("cur_server = NULL, reserved_for = 'pod', reserved_until = '2099-01-01 00:00:00.000000'")},
	"ORPHAN":          {rows: queue("cur_server = 'nobody'")},
	"LATE_HANDOVER":   {rows: queue("req_server = 'nobody', req_since = " + long)},
	"DEAD_ITEMS":      {do: items(failures.Item{Key: "a", QueueID: "0", State: ops.ItemDead})},
	"RETRY_ITEMS":     {do: items(failures.Item{Key: "a", QueueID: "0", State: ops.ItemRetry})},
	"KEY_DIVIDED":     {do: items(failures.Item{Key: "a", OrderKey: "k", QueueID: "0", State: ops.ItemRetry}, failures.Item{Key: "b", OrderKey: "k", QueueID: "1", State: ops.ItemRetry})},
	"BACKLOG_STUCK":   {do: backlogs(ops.QueueBacklog{QueueID: "0", Items: 7, Trend: ops.BacklogStuck})},
	"BACKLOG_GROWING": {do: backlogs(ops.QueueBacklog{QueueID: "0", Items: 7, Trend: ops.BacklogGrowing})},
	"BACKLOG_LIMITED": {
		settings: center.Settings{Queues: 2, RatePerSecond: 0.001},
		do:       backlogs(ops.QueueBacklog{QueueID: "0", Items: 7, Trend: ops.BacklogDraining}),
	},
	"BACKLOG_OLD":     {do: backlogs(ops.QueueBacklog{QueueID: "0", Items: 7, Age: time.Hour})},
	"LOAD_UNKNOWN":    {settings: center.Settings{Queues: 2, Balance: center.BalanceLoad}},
	"LOAD_INCOMPLETE": {settings: center.Settings{Queues: 2, Balance: center.BalanceLoad}, do: backlogs(ops.QueueBacklog{QueueID: "0", Items: 7, Demand: new(1.0)})},
	"LOAD_TOO_LARGE": {settings: center.Settings{Queues: 2, Balance: center.BalanceLoad}, do: func(r *testRoster, task, w string) {
		second(roster.ServerInfo{})(r, task, w)
		backlogs(ops.QueueBacklog{QueueID: "0", Items: 7, Demand: new(9.0)}, ops.QueueBacklog{QueueID: "1", Items: 7, Demand: new(0.1)})(r, task, w)
	}},
	"REPARTITION_WAIT": {do: func(r *testRoster, task, _ string) {
		r.must(r.c.Roster().Operator("test").Repartition(r.Context(), task, 3, 0))
	}},
	"PLAN_SKIPPED":     {rows: running(`skipped = '["0"]'`)},
	"RESIZE_WAIT":      {rows: running(`queue_changes = '{"0":4}'`)},
	"REMOVAL_WAIT":     {settings: center.Settings{QueueNames: []string{"0", "1"}}, rows: running(`queue_changes = '{"0":"remove"}'`)},
	"SETTINGS_GONE":    {rows: "DELETE FROM schedule_task_type WHERE task_type = 'TASK'"},
	"SETTINGS_INVALID": {rows: "UPDATE schedule_task_type SET heartbeat_interval_ms = 1 WHERE task_type = 'TASK'"},
	"SETTINGS_DIFFER":  {rows: server(`given_settings = '{"execute_number":"50"}'`)},
	"INVALID_VALUE":    {settings: center.Settings{Queues: 1, Mode: center.ModeRun, Cron: "0 0 3 * * ?"}, rows: trigger("next_fire_at = '2099-01-01 03:00:00.000000'")},
	"HISTORY_LOST":     {rows: "INSERT INTO schedule_environment (own_sign, lost_at, lost_task, lost_report) VALUES ('BASE', " + long + ", 'TASK', 'it was')"},
	"HEALTHY":          {},
	"KILLER": {do: func(r *testRoster, task, w string) {
		alert("KILLER")(r, task, w)
		items(failures.Item{Key: "a", QueueID: "0", State: ops.ItemDead})(r, task, w)
	}},
	"LOAD_BUDGET": {settings: center.Settings{Queues: 16, Balance: center.BalanceLoad, LoadMovesPerHour: 1}, do: func(r *testRoster, task, w string) {
		second(roster.ServerInfo{})(r, task, w)
		r.exec("UPDATE schedule_server SET register_time = " + long + " WHERE task_type = '" + task + "'")
		r.exec("UPDATE schedule_queue SET cur_server = '" + task + ":2:00000002' WHERE task_type = '" + task + "' AND queue_index > 7")
		var list []ops.QueueBacklog
		for i := range 16 {
			list = append(list, ops.QueueBacklog{QueueID: strconv.Itoa(i), Items: 7, Demand: new([]float64{1, 0.4}[i/8])})
		}
		backlogs(list...)(r, task, w)
	}},
	"DATA": {rows: "INSERT INTO schedule_data (name, data_id, address) VALUES ('sales', 'x', 'postgres://db2/sales')"},
}

// notPlayed are the kinds without a play here, with the reason.
var notPlayed = map[string]string{
	"NO_TASKS": "TestReadersOfAnEmptyRosterJudgeAlike has it",
	"DATABASE": "TestReadersOfABadDatabaseJudgeAlike has it", "DURABILITY": "TestReadersOfABadDatabaseJudgeAlike has it",
	"POOLER": "TestReadersOfABadDatabaseJudgeAlike has it", "SEARCH_PATH": "TestReadersOfABadDatabaseJudgeAlike has it",
	"PRIVILEGES": "TestReadersOfABadDatabaseJudgeAlike has it", "SCHEMA": "TestReadersOfABadDatabaseJudgeAlike has it",

	"NO_UPSTREAM": "rota doctor alone reads a rota.yaml", "STATEMENTS": "rota doctor alone reads a rota.yaml", "CURSOR": "rota doctor alone reads a rota.yaml",
	"TLS": "the database must be on another host", "CLOCK": "the clock of the database must be set; the scenarios of internal/faults do that",
	"DATA_AHEAD": "a data database must have fenced epochs that the roster has lost; center/centertest has that, and it is found as DATA is",
}

// namedAs are the kinds whose plays the readers name by another kind, or by none.
var namedAs = map[string]string{"KILLER": "DEAD_ITEMS", "HEALTHY": ""}

// All readers name the same kinds with the same counts of each task type, for each kind of condition that can be played.
func TestReadersJudgeAlike(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		r := newTestRoster(t, url)
		for _, k := range condition.Kinds() {
			p, played := plays[k.Name]
			_, excused := notPlayed[k.Name]
			switch {
			case k.ShownByAlerts() && !played:
				p = play{do: alert(k.Name)}
			case played == excused:
				t.Errorf("%s has a play: %t; a reason for none: %t", k.Name, played, excused)
				continue
			case excused:
				continue
			}
			r.play(strings.ToLower(k.Name), p)
		}
		found := r.readAlike()
		for _, k := range condition.Kinds() {
			task, name := strings.ToLower(k.Name), k.Name
			if as, other := namedAs[name]; other {
				name = as
			}
			_, excused := notPlayed[k.Name]
			all := slices.Concat(found[task], found[""])
			named := slices.ContainsFunc(all, func(said string) bool { return strings.Contains(said+" ", " "+name+" ") })
			if !excused && named == (name == "") || name == "" && found[task] != nil {
				t.Errorf("%s: want %q, found %q", task, name, all)
			}
		}
		r.workerSeesAlike()
	})
}

// Readers of an empty roster agree, too.
func TestReadersOfAnEmptyRosterJudgeAlike(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		r := newTestRoster(t, url)
		r.exec("DELETE FROM schedule_server")
		for _, task := range []string{"settle", "regions"} {
			r.must(ops.New(r.c).Tasks().Delete(t.Context(), task, "test"))
		}
		if found := r.readAlike(); !slices.Contains(found[""], "NOTE NO_TASKS") {
			t.Errorf("findings %q, want that there are no task types", found)
		}
	})
}

// Readers name alike what is wrong with the database, and what a role may not do.
func TestReadersOfABadDatabaseJudgeAlike(t *testing.T) {
	t.Parallel()
	for _, kind := range testdb.Kinds(t) {
		if kind != testdb.Postgres {
			continue // the others have fewer of these kinds
		}
		url := testdb.URL(t, kind)
		r := newTestRoster(t, url)
		poor, err := neturl.Parse(url)
		r.must(err)
		role := "judge_" + strings.TrimPrefix(poor.Path, "/") // roles belong to the server
		poor.User = neturl.User(role)
		for _, statement := range []string{
			"CREATE ROLE " + role + " LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + role, "GRANT CREATE ON SCHEMA public TO PUBLIC",
			"ALTER ROLE " + role + " SET default_transaction_isolation = 'serializable'", "ALTER ROLE " + role + " SET synchronous_commit = off",
			"INSERT INTO schedule_schema_version (version_id, is_applied) VALUES (2, TRUE)",
		} {
			r.exec(statement)
		}
		r.readFrom(poor.String(), "PRIVILEGES", "DATABASE", "DURABILITY", "SEARCH_PATH", "SCHEMA")
		r.exec("DROP OWNED BY " + role)
		r.exec("DROP ROLE " + role)
		r.readFrom(testdb.Pooled(t, url).URL(), "POOLER")
	}
}

// readFrom lets the readers read the roster through another URL, where they must find the kinds.
func (s *testRoster) readFrom(url string, kinds ...string) {
	s.Helper()
	c, err := center.Open(s.Context(), anydb.URL(url), center.Options{})
	s.must(err)
	defer func() { s.must(c.Close()) }()
	found := strings.Join((&testRoster{s.T, url, s.dir, c}).readAlike()[""], " ")
	for _, kind := range kinds {
		if !strings.Contains(found, kind) {
			s.Errorf("findings %q, want %s", found, kind)
		}
	}
}

// While the database is away no reader says that nothing is wrong, and each says in one short line that it is away.
func TestReadersOfNoDatabaseJudgeAlike(t *testing.T) {
	t.Parallel()
	for _, kind := range testdb.Kinds(t) {
		if kind == testdb.SQLite {
			continue // a file is never away
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url, proxy := testdb.Through(t, testdb.URL(t, kind))
			r := newTestRoster(t, url)
			pages, err := console.Handler(r.c, console.Options{})
			r.must(err)
			r.readPage(pages)
			r.exec("DELETE FROM schedule_server")
			writeFile(t, filepath.Join(r.dir, "rota.yaml"), fmt.Sprintf("database: '%s'\nhttp: 127.0.0.1:0\ntasks:\n  settle:\n    queues: 4\n    dealer:\n      sql:\n"+
				"        select: SELECT run_id FROM schedule_run WHERE 1 = 0 AND {{mine_hash run_id}} LIMIT {{limit}}\n"+
				"        execute: DELETE FROM schedule_run WHERE run_id IN ({{keys}})\n        key: run_id\n", strings.ReplaceAll(url, "'", "''")))
			p := startWorker(t, r.dir)
			eventually(t, "the worker is ready", func() bool { return p.address() != "" && status(t, p.address(), "/readyz") == http.StatusOK })
			proxy.Refuse(true)
			proxy.Cut()
			said := map[string]string{"/readyz": "", "console": ""}
			eventually(t, "the worker is not ready", func() bool {
				code := 0
				code, said["/readyz"] = answer(t, p.address(), "/readyz")
				return code == http.StatusServiceUnavailable
			})
			eventually(t, "the console does not know", func() bool {
				_, said["console"] = r.readPage(pages)
				return strings.HasPrefix(said["console"], "Not checked for ") && strings.Contains(r.page(pages, "/metrics"), `rota_findings_known{own_sign="BASE"} 0`)
			})
			said["doctor"], _, _ = r.try("doctor")
			for _, command := range []string{"task list", "top --once"} {
				stdout, stderr, code := r.try(command)
				if said[command] = stderr; code != 1 || stdout != "" {
					t.Errorf("rota %s ends with %d and says %q", command, code, stdout)
				}
			}
			for reader, text := range said {
				if !regexp.MustCompile(`cannot be reached|the database is unreachable|cannot connect`).MatchString(text) || len(text) > 300 || strings.Count(text, "\n") > 1 {
					t.Errorf("%s says %q", reader, text)
				}
			}
		})
	}
}

// play makes a task type and gives it its condition.
func (s *testRoster) play(task string, p play) {
	s.Helper()
	if p.settings.Queues == 0 && p.settings.QueueNames == nil {
		p.settings.Queues = 2
	}
	s.define(task, p.settings)
	uuid := task + ":1:00000001"
	if !p.alone {
		s.serve(task, uuid)
	}
	for statement := range strings.SplitSeq(p.rows, ";") {
		if statement = strings.TrimSpace(statement); statement != "" {
			s.exec(strings.NewReplacer("TASK", task, "UUID", uuid).Replace(statement))
		}
	}
	if p.do != nil {
		p.do(s, task, uuid)
	}
}

// sayings are what a reader says of each task type that has anything, such as "PROBLEM FAILING x2", sorted.
type sayings map[string][]string

func (s sayings) add(task, status, name string) {
	s[task] = append(s[task], status+" "+name)
	slices.Sort(s[task])
}

// readAlike compares what all readers of the tables say, and returns it. The doctor reads before and after the others: if
// it says another thing the second time, because a condition has become older, all of them read again. They also do if a
// busy machine has not checked everything in time, and a reader says so.
func (s *testRoster) readAlike() sayings {
	s.Helper()
	for before := s.diagnose(); ; {
		differences := s.compare(before)
		after := s.diagnose()
		late := slices.ContainsFunc(differences, func(d string) bool { return strings.Contains(d, notChecked) })
		if diff := cmp.Diff(tallies(before), tallies(after)); diff == "" && !late {
			for _, d := range differences {
				s.Error(d)
			}
			return tallies(before)
		}
		before = after
	}
}

// notChecked is what a reader says that does not know.
const notChecked = "ot checked for "

func (s *testRoster) diagnose() (findings []condition.Condition) {
	s.Helper()
	stdout, _, _ := s.try("doctor -o json")
	s.must(json.Unmarshal([]byte(stdout), &findings))
	return findings
}

func tallies(findings []condition.Condition) sayings {
	said := sayings{}
	for _, t := range (doctor.Judgement{Findings: findings}).Tallies() {
		said.add(t.TaskType, t.Status, t.String())
	}
	return said
}

// compare says how the other readers differ from the doctor.
func (s *testRoster) compare(findings []condition.Condition) (differences []string) {
	s.Helper()
	differ := func(reader string, want, got any) {
		if diff := cmp.Diff(want, got); diff != "" {
			differences = append(differences, fmt.Sprintf("%s (-doctor +it):\n%s", reader, diff))
		}
	}
	judged := doctor.Judgement{Findings: findings}
	want := tallies(findings)
	inTasks := maps.Clone(want)
	delete(inTasks, "")
	for _, args := range []string{"task list -o json", "top --once -o json"} {
		said, unknown := s.readRecords(args)
		differ("rota "+args, inTasks, said)
		differences = append(differences, unknown...)
	}
	for _, args := range []string{"task list", "top --once"} {
		text := s.run(args)
		differ("rota "+args, inTasks, readTable(text))
		if strings.Contains(text, notChecked) {
			differences = append(differences, text)
		}
	}
	for _, command := range []string{"task list", "top --once"} {
		got := append(outside.FindStringSubmatch(s.run(command)), "", "")[1]
		differ("rota "+command+" of no task type", judged.Outside(), got)
	}
	pages, err := console.Handler(s.c, console.Options{})
	s.must(err)
	marks, head := s.readPage(pages)
	differ("the console", inTasks, marks)
	judged.At = time.Now()
	differ("the head of the console", judged.Verdict(judged.At), head)
	differ("rota_findings", want, readMetric(s.page(pages, "/metrics")))
	return differences
}

// outside is what a table says of no task type.
var outside = regexp.MustCompile(`(?m)^Of no task type: (.*) \(rota doctor\)$`)

// readRecords returns what the records of a command say of each task type that has anything, and which are not known.
func (s *testRoster) readRecords(args string) (said sayings, unknown []string) {
	s.Helper()
	var list []struct {
		TaskType        string `json:"task_type"`
		Problems, Notes []string
		NotChecked      string `json:"not_checked"`
	}
	s.must(json.Unmarshal([]byte(s.run(args)), &list))
	said = sayings{}
	for _, t := range list {
		for _, name := range t.Problems {
			said.add(t.TaskType, condition.Problem, name)
		}
		for _, name := range t.Notes {
			said.add(t.TaskType, condition.Note, name)
		}
		if t.Problems == nil || t.Notes == nil || t.NotChecked != "" {
			unknown = append(unknown, fmt.Sprintf("rota %s: %+v, want that it is known", args, t))
		}
	}
	return said, unknown
}

// readTable returns the same of a table, whose columns PROBLEMS and NOTES are the last ones.
func readTable(text string) sayings {
	said := sayings{}
	lines := strings.Split(text, "\n")
	if len(lines) < 2 {
		return said
	}
	atProblems, atNotes := strings.Index(lines[0], "PROBLEMS"), strings.Index(lines[0], "NOTES")
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, " ") || len(line) < atNotes {
			break
		}
		for status, cell := range map[string]string{condition.Problem: line[atProblems:atNotes], condition.Note: line[atNotes:]} {
			task, names := strings.Fields(line)[0], strings.TrimSpace(cell)
			for name := range strings.SplitSeq(names, ", ") {
				if name != "none" {
					said.add(task, status, name)
				}
			}
		}
	}
	return said
}

// readPage returns the same of the marks on the first page, and its headline.
func (s *testRoster) readPage(pages http.Handler) (marks sayings, head string) {
	s.Helper()
	text, said := "", sayings{}
	eventually(s.T, "the page is known", func() bool {
		text = s.page(pages, "/")
		return !strings.Contains(text, "data-checking") && !strings.Contains(text, `>Checking<`)
	})
	for _, row := range regexp.MustCompile(`(?s)<tr id="task-([^"]*)".*?</td>`).FindAllStringSubmatch(text, -1) {
		for _, mark := range regexp.MustCompile(`class="mark (bad|warn)">([A-Z][^<]*)<`).FindAllStringSubmatch(row[0], -1) {
			said.add(row[1], map[string]string{"bad": condition.Problem, "warn": condition.Note}[mark[1]], mark[2])
		}
	}
	return said, regexp.MustCompile(`<h1 id="verdict">([^<]*)<`).FindStringSubmatch(text)[1]
}

func (s *testRoster) page(pages http.Handler, path string) string {
	s.Helper()
	r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
	r.RemoteAddr, r.Host = "127.0.0.1:50000", "localhost:8330"
	r.Header.Set("Accept", "text/html")
	pages.ServeHTTP(w, r)
	return w.Body.String()
}

// metricLine is a line of rota_findings or rota_conditions.
var metricLine = regexp.MustCompile(`(?m)^rota_(findings|conditions)\{kind="(\w+)",own_sign="BASE",status="(\w+)",task_type="(\w*)"\} (\d+)$`)

// readMetric returns the same of metrics.
func readMetric(text string) sayings {
	said := sayings{}
	for _, m := range metricLine.FindAllStringSubmatch(text, -1) {
		if n, _ := strconv.Atoi(m[5]); n > 0 {
			said.add(m[4], m[3], doctor.Tally{Kind: m[2], Count: n}.String())
		}
	}
	return said
}

// inWorker are the kinds of conditions that a real worker sees in the rows of their plays.
var inWorker = []string{"RUN_FAILED", "RUN_OVERDUE", "RUN_STALLED", "SLOT_MISSED", "SLOT_SKIPPED", "TRIGGER_ERROR", "CRASHES", "QUEUE_FAILING"}

// workerSeesAlike starts a worker of the task types of these kinds. Its rota_conditions and its /readyz name what the
// doctor finds of them, as far as workers raise alerts about it, and the doctor finds what it has found before the worker
// came. Their endpoint never replies: a reply would be the end of a crash and of a failure.
func (s *testRoster) workerSeesAlike() {
	s.Helper()
	s.exec("CREATE TABLE judge_item (id BIGINT PRIMARY KEY)")
	s.exec("INSERT INTO judge_item (id) VALUES (2)") // in queue 0
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices the end of a client only behind its request
		<-r.Context().Done()
	}))
	s.Cleanup(silent.Close) // after the end of the worker
	var file strings.Builder
	fmt.Fprintf(&file, "database: '%s'\nhttp: 127.0.0.1:0\ntasks:\n", strings.ReplaceAll(s.url, "'", "''"))
	for _, kind := range inWorker {
		task := strings.ToLower(kind)
		fmt.Fprintf(&file, "  %s:\n    queues: 1\n    batch_timeout: 1h\n    dealer:\n      sql:\n        select: SELECT id FROM judge_item WHERE {{mine id}} LIMIT {{limit}}\n"+
			"        execute: DELETE FROM judge_item WHERE id IN ({{keys}})\n        key: id\n      http:\n        url: %s/{{id}}\n        each: true\n", task, silent.URL)
		s.exec("DELETE FROM schedule_server WHERE task_type = '" + task + "'")
	}
	writeFile(s.T, filepath.Join(s.dir, "rota.yaml"), file.String())
	p := startWorker(s.T, s.dir)
	differs := "it is not ready"
	defer func() {
		if s.Failed() {
			s.Log(differs)
		}
	}()
	eventually(s.T, "the worker sees what the doctor finds", func() bool {
		if p.address() == "" || status(s.T, p.address(), "/readyz") != http.StatusOK {
			return false
		}
		found, names := s.alertsFound()
		for _, kind := range inWorker {
			if !slices.ContainsFunc(found[strings.ToLower(kind)], func(said string) bool { return strings.HasSuffix(said, " "+kind) }) {
				s.Fatalf("with the worker the doctor finds %q, want %s", found, kind)
			}
		}
		ready := strings.TrimSpace(body(s.T, p.address(), "/readyz"))
		differs = cmp.Diff(found, readMetric(body(s.T, p.address(), "/metrics"))) + cmp.Diff("ok; this process sees "+names, ready)
		return differs == ""
	})
}

// alertsFound returns what the doctor finds of the task types of a worker, and of a loss of history, which every server
// sees, as far as workers raise alerts about it, and the kinds.
func (s *testRoster) alertsFound() (found sayings, names string) {
	s.Helper()
	findings := slices.DeleteFunc(s.diagnose(), func(c condition.Condition) bool {
		return condition.KindOf(c.Kind).Alert == condition.Silent || c.Kind != condition.HistoryLost.Name && !slices.Contains(inWorker, strings.ToUpper(c.TaskType))
	})
	var kinds []string
	for _, t := range (doctor.Judgement{Findings: findings}).Tallies() {
		if !slices.Contains(kinds, t.Kind) {
			kinds = append(kinds, t.Kind)
		}
	}
	slices.Sort(kinds)
	return tallies(findings), strings.Join(kinds, ", ")
}
