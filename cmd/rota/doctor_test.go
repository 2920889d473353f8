package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.exec("DELETE FROM schedule_queue WHERE task_type = 'regions'")
		s.exec("DELETE FROM schedule_task_running WHERE task_type = 'regions'")
		s.exec("DELETE FROM schedule_task_type WHERE task_type = 'regions'")
		s.wantOutput("doctor", `(?m)^OK +DATABASE +(PostgreSQL \d+|MySQL \d+|.*MariaDB.*|SQLite \d).*, own_sign BASE, at .*; it accepts writes$`)
		s.wantOutput("doctor settle", `(?m)^OK +HEALTHY +settle: 4 queues, 2 workers$`)
		if out := s.run("doctor"); strings.Contains(out, "PROBLEM") || strings.Contains(out, "secret") {
			t.Error(out)
		}
		s.exec("UPDATE schedule_server SET heartbeat_time = '2020-01-01 00:00:00.000000'")
		stdout, stderr, code := s.try("doctor -o json")
		var findings []map[string]string
		s.must(json.Unmarshal([]byte(stdout), &findings))
		if code != 1 || stderr != "rota: doctor found 2 problems\n" {
			t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
		}
		last := findings[len(findings)-1]
		if last["status"] != "PROBLEM" || last["task_type"] != "settle" || last["hint"] == "" || !strings.HasPrefix(last["finding"], "web2:2 has been silent for ") {
			t.Errorf("%v", last)
		}
		// A dependency that is misspelt keeps the worker from creating its task type.
		writeFile(t, filepath.Join(s.dir, "rota.yaml"), "database: x\ntasks: {export: {queues: 1, mode: RUN}, report: {queues: 1, mode: RUN, after: [exprot]}}")
		if stdout, _, _ = s.try("doctor"); !regexp.MustCompile(`PROBLEM +NO_UPSTREAM +report: after names no task type: there is none of the name exprot, .* correct after in rota.yaml; the task types are export, report, settle`).MatchString(stdout) {
			t.Error(stdout)
		}
		if _, stderr, code := s.try("task apply export report"); code != 1 || stderr != "rota: define report$BASE: after exprot: unknown task type (see rota task list)\n" {
			t.Errorf("exit code %d, stderr %q", code, stderr)
		}
		// Settings of the file that differ from those of the database.
		writeFile(t, filepath.Join(s.dir, "rota.yaml"), "database: x\ntasks: {settle: {queues: 4, execute_number: 11}}")
		stdout, _, _ = s.try("doctor")
		if !strings.Contains(stdout, "settle: settings of rota.yaml are not in force: execute_number 11 (the row says 10)  -> rota task apply --dry-run -f rota.yaml") {
			t.Error(stdout)
		}
	})
}

// A roster that cannot be opened is reported as a finding.
func TestDoctorWithoutSchema(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		stdout, stderr, code := runRota(t, t.TempDir(), "doctor", "--database", url)
		if code != 1 || stderr != "rota: doctor found 1 problem\n" || !strings.HasPrefix(stdout, "PROBLEM  DATABASE") || !strings.Contains(stdout, "rota migrate up") {
			t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
		}
	})
}

// A transaction that holds the write lock does not stop the other checks.
func TestDoctorWhileALockIsHeld(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	lock, err := s.c.DB().BeginTx(t.Context(), nil)
	s.must(err)
	defer lock.Rollback()
	stdout, _, code := s.try("doctor settle")
	if code != 1 || !strings.Contains(stdout, "PROBLEM  PRIVILEGES        cannot try INSERT on schedule_task_type with a statement that matches no row: database is locked") || !strings.Contains(stdout, "settle: 4 queues, 2 workers") {
		t.Errorf("exit code %d, stdout\n%s", code, stdout)
	}
}

// A read-only database is reported with what to do.
func TestDoctorOfAReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.Postgres))
	s.url += "&default_transaction_read_only=on"
	stdout, _, code := s.try("doctor")
	if code != 1 || !strings.HasPrefix(stdout, "PROBLEM  DATABASE") || !strings.Contains(stdout, "this connection is read-only") {
		t.Errorf("exit code %d, stdout\n%s", code, stdout)
	}
}

// What a worker refuses in a file is a problem for the doctor, too: he would otherwise call a file right with which no
// worker starts.
func TestDoctorReportsAFileThatWorkersRefuse(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	path := filepath.Join(t.TempDir(), "rota.yaml")
	good := "tasks:\n  settle:\n    queues: 1" + goodDealer
	for file, want := range map[string][]string{
		good:               nil,
		"own_sign: BASE\n": nil,
		strings.NewReplacer("queues:", "queue:", "key: id", "keys: id").Replace(good): {
			"PROBLEM  STATEMENTS        rota.yaml:3: tasks.settle.queue: unknown key; ",
			"PROBLEM  STATEMENTS        rota.yaml:8: tasks.settle.dealer.sql.keys: unknown key; ",
		},
		"hints: maybe\n" + strings.NewReplacer("queues:", "queue:", "{{limit}}", "{{limt}}").Replace(good): {
			"PROBLEM  STATEMENTS        rota.yaml:1: hints (maybe): ",
			"PROBLEM  STATEMENTS        rota.yaml:4: tasks.settle.queue: unknown key; ",
			"PROBLEM  STATEMENTS        settle: tasks.settle.dealer.sql.select has the unknown placeholder {{limt}}",
		},
		strings.Replace(good, "{{limit}}", "{{limt}}", 1): {
			"PROBLEM  STATEMENTS        settle: tasks.settle.dealer.sql.select has the unknown placeholder {{limt}}",
		},
	} {
		writeFile(t, path, file)
		stdout, _, code := s.try("doctor -c " + path)
		stdout = strings.ReplaceAll(stdout, path, "rota.yaml")
		for _, w := range want {
			if !strings.Contains(stdout, w) || code != 1 {
				t.Errorf("exit code %d for\n%s, stdout\n%s, want %s", code, file, stdout, w)
			}
		}
		if want == nil && strings.Contains(stdout, "unknown") {
			t.Errorf("findings for the good file\n%s:\n%s", file, stdout)
		}
	}
}

// A mistake that keeps the doctor from connecting hides no other mistake of the file.
func TestDoctorReportsAllMistakesOfAFile(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	path := filepath.Join(t.TempDir(), "rota.yaml")
	writeFile(t, path, "hint: true\nweight: 2000\ntasks:\n  settle:\n    queue: 1"+goodDealer)
	_, stderr, code := s.try("doctor -c " + path)
	for _, want := range []string{":1: hint: unknown key", ":2: weight (2000): must be", ":5: tasks.settle.queue: unknown key"} {
		if !strings.Contains(stderr, want) || code != 2 {
			t.Errorf("exit code %d, stderr\n%swant %s", code, stderr, want)
		}
	}
}

// A process with two task types has two servers with one host:pid; the hints then name the uuid.
func TestDoctorHintsNameOneServer(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	_, err := s.c.Roster().Register(t.Context(), roster.ServerInfo{UUID: "web2:2:00000003", TaskType: "regions", Host: "web2", PID: 2, JudgeDeadInterval: time.Hour})
	s.must(err)
	s.run("worker pause " + web1)
	s.run("worker pause " + web2)
	for _, want := range []string{"web1:1 is paused  -> rota worker resume web1:1", "web2:2 is paused  -> rota worker resume " + web2} {
		if out, _, _ := s.try("doctor settle"); !strings.Contains(out, want+"\n") {
			t.Errorf("want %s, got\n%s", want, out)
		}
	}
	for _, uuid := range []string{"web1:1", web2} {
		s.wantOutput("worker resume "+uuid, "may own queues again")
	}
}

// What a hint of another environment says works as it stands.
func TestDoctorHintsNameTheEnvironment(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	other, err := s.c.In("T 1")
	s.must(err)
	_, err = ops.New(other).Tasks().Define(t.Context(), "settle", center.Settings{Queues: 4, ExecuteNumber: 10})
	s.must(err)
	s.run("task pause settle", "--own-sign", "T 1")
	out, _, _ := s.try("doctor settle", "--own-sign", "T 1")
	const command = "rota --own-sign 'T 1' task resume settle"
	if !strings.Contains(out, "  -> "+command+"\n") {
		t.Fatalf("want the command %s, got\n%s", command, out)
	}
	if got := s.run("", "--own-sign", "T 1", "task", "resume", "settle"); !strings.HasPrefix(got, "settle$T 1: resumed") {
		t.Errorf("the command says %q", got)
	}
}

// A table that is printed once has no rate, which needs two readings, but the number of items done.
func TestTopOnceShowsWhatIsDone(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	s.exec("UPDATE schedule_server SET success_count = 4711, failure_count = 12")
	s.wantOutput("top --once settle", `(?m) IN FLIGHT  OLDEST  DONE  FAILED  LAST ERROR$`)
	s.wantOutput("top --once settle", `(?m)^ web1:1:\S+ .* 4711 +12 *$`)
}

// The lists show the last error with its age, as it may be over for a long time. The doctor leaves out one that is.
func TestLastErrorsHaveAnAge(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.exec("UPDATE schedule_server SET last_error = 'no such\ntable', last_error_at = '2020-01-01 00:00:00.000000' WHERE uuid = '" + web1 + "'")
		s.exec("UPDATE schedule_server SET last_error = 'an error without a time' WHERE uuid = '" + web2 + "'")
		for _, list := range []string{"worker list", "top --once"} {
			s.wantOutput(list, `\d+d\d+h ago: no such table`)
			s.wantOutput(list, `(?m) an error without a time *$`)
		}
		s.wantOutput("doctor settle", `last error of 1 worker: an error without a time`)
		if out := s.run("doctor settle"); strings.Contains(out, "no such; table") {
			t.Errorf("the doctor reports an error of 2020:\n%s", out)
		}
		s.wantOutput("worker list -o json", `"last_error_at": "2020-01-01T00:00:00Z"`)
	})
}

// What withdraws the removal of a queue is a command line that works, also for a name that looks like a flag.
func TestDoctorWithdrawsARemoval(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, "sqlite:"+filepath.Join(t.TempDir(), "r.db"))
	s.define("signs", center.Settings{QueueNames: []string{"plus", "-v"}})
	s.serve("signs", "web3:3:00000004")
	rota := func(line string) {
		t.Helper()
		if _, stderr, code := runRota(t, s.dir, strings.Fields("--database "+s.url+" "+line)...); code != 0 {
			t.Errorf("rota %s: exit code %d, %s", line, code, stderr)
		}
	}
	removals := func() (lines []string) {
		for _, f := range s.diagnose() {
			if _, line, ok := strings.Cut(f.Hint, "to withdraw: rota "); ok && f.Kind == condition.RemovalWait.Name {
				lines = append(lines, line)
			}
		}
		return lines
	}
	rota("queue remove --yes signs -- -v")
	lines := removals()
	if len(lines) != 1 {
		t.Fatalf("%q", lines)
	}
	if rota(lines[0]); len(removals()) > 0 {
		t.Errorf("rota %s: %q", lines[0], removals())
	}
}

// The doctor advises no split that is refused: the parts of a queue would stay in one of several data databases.
func TestDoctorOfATooLargeQueue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ database, want string }{
		"the roster's database":  {"", "if each select divides by the total of its queue: rota task set TASK splittable=true; rota queue split TASK 0"},
		"a data database":        {"eu", "if each select divides by the total of its queue: rota task set TASK splittable=true; rota queue split TASK 0"},
		"several data databases": {"0=eu, us", "divide the items into more queues"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestRoster(t, "sqlite:"+filepath.Join(t.TempDir(), "r.db"))
			s.play("large", plays["LOAD_TOO_LARGE"])
			s.exec("UPDATE schedule_task_type SET data_database = '" + c.database + "' WHERE task_type = 'large'")
			var hints []string
			for _, f := range s.diagnose() {
				if f.Kind == condition.LoadTooLarge.Name {
					hints = append(hints, f.Hint)
				}
			}
			if want := strings.ReplaceAll(c.want, "TASK", "large"); len(hints) != 1 || hints[0] != want {
				t.Errorf("got %q, want %q", hints, want)
			}
		})
	}
}
