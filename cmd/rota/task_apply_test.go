package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// file writes the rota.yaml for task apply.
func (s *testRoster) file(tasks string) {
	s.Helper()
	writeFile(s.T, filepath.Join(s.dir, "rota.yaml"), "database: sqlite:another.db\ntasks:\n"+tasks)
}

const same = "  settle: {queues: 4, execute_number: 10}\n  regions: {queues: [north, south]}\n"

func TestTaskApply(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.file(same)
		s.wantOutput("task apply", `^regions\$BASE: nothing to do\nsettle\$BASE: nothing to do\n$`)
		s.file("  settle: {queues: 4, execute_number: 1, stall_after: 1m}\n  regions: {queues: [north, south]}\n")
		before := snapshot(t, s.c.DB())
		s.wantOutput("task apply --dry-run", `(?m)^ execute_number +10 +1\n stall_after +5m0s +1m0s\n`)
		if diff := cmp.Diff(before, snapshot(t, s.c.DB())); diff != "" {
			t.Fatalf("a dry run writes:\n%s", diff)
		}
		s.wantOutput("task apply -f rota.yaml regions", `^regions\$BASE: nothing to do\n$`)
		if got, want := s.run("task apply --dry-run -o csv"), "object,result,setting,row,given\nregions$BASE,nothing to do,,,\nsettle$BASE,would be changed,execute_number,10,1\nsettle$BASE,would be changed,stall_after,5m0s,1m0s\n"; got != want {
			t.Errorf("as CSV: %s, want %s", got, want)
		}
		var objects []map[string]any
		s.must(json.Unmarshal([]byte(s.run("task apply -o json")), &objects))
		want := []map[string]any{
			{"object": "regions$BASE", "result": "nothing to do", "changes": []any{}},
			{"object": "settle$BASE", "result": "changed", "changes": []any{
				map[string]any{"setting": "execute_number", "row": "10", "given": "1"}, map[string]any{"setting": "stall_after", "row": "5m0s", "given": "1m0s"},
			}},
		}
		if diff := cmp.Diff(want, objects); diff != "" {
			t.Error(diff)
		}
		s.wantOutput("task apply", `(?m)^settle\$BASE: nothing to do$`)
		if n := count(t, s.c.DB(), "schedule_task_type WHERE task_type = 'settle' AND execute_number = 1 AND stall_after_ms = 60000 AND version = 1"); n != 1 {
			t.Error("the row differs from the file")
		}
		s.wantOutput("event list --kind SETTINGS", `execute_number 10 -> 1, stall_after 5m0s -> 1m0s`)
	})
}

// What the file leaves out stays as it is, and the command says so. With --reset it gets its default.
func TestTaskApplyLeavesTheRest(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.run("task set settle queues=6")
		s.file("  settle: {queues: 6, stall_after: 1m}\n")
		s.wantOutput("task apply", `(?s)^settle\$BASE:\n SETTING +NOW +THEN *\n stall_after +5m0s +1m0s\n.*\nsettle\$BASE: changed; not stated, and these stay: execute_number 10 \(rota task set settle execute_number= sets the defaults\)\n$`)
		if n := count(t, s.c.DB(), "schedule_task_type WHERE task_type = 'settle' AND execute_number = 10 AND stall_after_ms = 60000"); n != 1 {
			t.Error("the row has other settings")
		}
		s.wantOutput("task apply", `^settle\$BASE: nothing to do; not stated, and these stay: execute_number 10 \(`)
		s.wantOutput("task apply --reset", `(?m)^ execute_number +10 +1$`)
		s.wantOutput("task apply", `^settle\$BASE: nothing to do\n$`)
	})
}

// Single settings are changed without a file. An empty value is the default.
func TestTaskSet(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.wantOutput("task set settle fetch_number=100 stall_after=1m --dry-run", `(?s) fetch_number +500 +100\n stall_after +5m0s +1m0s\n.*Nothing was written`)
		s.run("task set settle fetch_number=100 queues=5")
		s.run("task set settle stall_after=1m")
		requested := "schedule_task_running WHERE task_type = 'settle' AND queue_changes = '{\"all\":5}'"
		if n := count(t, s.c.DB(), "schedule_task_type WHERE task_type = 'settle' AND fetch_number = 100 AND stall_after_ms = 60000 AND execute_number = 10"); n != 1 || count(t, s.c.DB(), requested) != 1 {
			t.Error("the row has other settings, or the request for another number of queues is gone")
		}
		s.wantOutput("task set settle fetch_number= execute_number=", `(?m)^ execute_number +10 +1\n fetch_number +100 +500$`)
		s.run("task set settle queues=4") // withdraws the request
		if count(t, s.c.DB(), requested) != 0 {
			t.Error("the request was not withdrawn")
		}
		s.wantOutput("task set regions queues=[north,south,west]", `(?m)^ queues +- +west$`)
		for args, want := range map[string]string{
			"nobody fetch_number=1": "nobody: unknown task type",
		} {
			s.wantError(1, want, "task set "+args)
		}
		for args, want := range map[string]string{
			"settle":                               "task set: missing argument SETTING=VALUE",
			"settle fetch_number":                  "fetch_number: must be setting=value",
			"settle fetchnumber=1":                 "fetchnumber: unknown setting; did you mean fetch_number?",
			"settle dealer=x":                      "dealer: unknown setting",
			"settle fetch_number=many":             "fetch_number (many) must be a whole number",
			"settle fetch_number=1 fetch_number=2": "fetch_number is assigned twice",
			"settle queues=[a":                     "queues ([a) must be a number, or a list of names",
		} {
			s.wantError(2, want, "task set "+args)
		}
		s.wantError(2, "judge_dead_interval (1s) must be at least 5 x heartbeat_interval (2s)", "task set settle judge_dead_interval=1s")
	})
}

// What the doctor advises for a row that workers refuse mends it. A file that leaves the setting out does not without
// --reset.
func TestDoctorsAdviceMendsTheRow(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	s.file("  settle: {queues: 4}\n")
	refused := func() string {
		t.Helper()
		s.exec("UPDATE schedule_task_type SET heartbeat_interval_ms = 1, version = version + 1 WHERE task_type = 'settle'")
		out, _, _ := s.try("doctor settle")
		return out
	}
	mended := func() {
		t.Helper()
		if out, _, _ := s.try("doctor settle"); strings.Contains(out, "refuse the row") {
			t.Error(out)
		}
	}
	out := refused()
	if !strings.Contains(out, "-> correct the row: rota task set settle SETTING=VALUE, or with all of a file: rota task apply --reset -f rota.yaml") {
		t.Error(out)
	}
	s.run("task set settle heartbeat_interval=2s")
	mended()
	refused()
	s.run("task apply --reset -f rota.yaml settle")
	mended()
}

// A file from rota task show -o yaml has all settings: it gives another database the same ones.
func TestTaskShowYAMLRoundTrip(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.runs()
		s.run("task", "set", "settle", "permit_run_start_time=startrun: 0 */5 * * * ?", "permit_run_end_time=0 4/5 * * * ?", "require=disk=ssd|nvme", "item_retry_factor=1.5", "task_parameter=#7: yes", "rate_per_second=10")
		other := newTestRoster(t, testdb.URL(t, testdb.SQLite))
		for _, task := range []string{"extract", "regions", "settle", "report"} {
			text := s.run("task show " + task + " -o yaml")
			writeFile(t, filepath.Join(other.dir, "rota.yaml"), text)
			other.run("task apply --yes")
			if got := other.run("task show " + task + " -o yaml"); got != text {
				t.Errorf("%s: the other database shows\n%s\nwant\n%s", task, got, text)
			}
			writeFile(t, filepath.Join(s.dir, "rota.yaml"), text)
			s.wantOutput("task apply", `^`+task+`\$BASE: nothing to do\n$`)
		}
	})
}

// A missing task type is created with the settings of the file.
func TestTaskApplyCreates(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.file("  push: {queues: 3, thread_number: 7}\n")
		s.wantOutput("task apply --dry-run", `^push\$BASE: would be created with 3 queues\n$`)
		s.wantError(1, "push: unknown task type", "task show push")
		s.wantOutput("task apply", `^push\$BASE: created with 3 queues\n$`)
		s.wantOutput("task show push", `(?m)^ thread_number +7 +5$`)
		if n := count(t, s.c.DB(), "schedule_queue WHERE task_type = 'push'"); n != 3 {
			t.Errorf("%d queues", n)
		}
	})
}

// cron and after are shown and applied like the other settings; deleting the trigger needs confirmation.
func TestTaskApplySchedule(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.file("  after: {queues: 1, mode: RUN, after: [before]}\n  before: {queues: 2, mode: RUN, cron: '0 0 2 * * ?', time_zone: Europe/Berlin}\n")
		s.wantOutput("task apply", `^before\$BASE: created with 2 queues\nafter\$BASE: created with 1 queue\n$`)
		s.wantOutput("trigger list", `(?m)^ before +`)
		s.wantOutput("task show before", `(?m)^ cron +0 0 2 \* \* \? *$`)
		s.wantOutput("task show after", `(?m)^ after +before *$`)
		s.wantOutput("task apply", `^before\$BASE: nothing to do\nafter\$BASE: nothing to do\n$`)
		s.file("  after: {queues: 1, mode: RUN, after: []}\n  before: {queues: 2, mode: RUN, cron: '0 0 3 * * ?', time_zone: Europe/Berlin}\n")
		s.wantOutput("task apply after", `(?m)^ after +before +-$`)
		s.wantOutput("task apply", `(?s) cron +0 0 2 \* \* \? +0 0 3 \* \* \?\n.*\nThis changes the trigger before of this environment, BASE\. Open runs stay\.`)
		s.file("  before: {queues: 2, mode: RUN}\n")
		s.wantOutput("task apply", `^before\$BASE: nothing to do; not stated, and these stay: time_zone Europe/Berlin, cron 0 0 3`)
		s.file("  before: {queues: 2, mode: RUN, every: 1h}\n")
		s.wantOutput("task apply --dry-run", `(?s) cron +0 0 3 .* +-\n every +- +1h0m0s\n`)
		s.file("  before: {queues: 2, mode: RUN, cron: }\n")
		if _, stderr, code := s.try("task apply"); code != 2 || !strings.Contains(stderr, "delete trigger before, which starts its runs: not confirmed: add --yes") {
			t.Errorf("exit code %d, stderr %q", code, stderr)
		}
		s.run("task apply --yes")
		if n := count(t, s.c.DB(), "schedule_trigger WHERE name = 'before'"); n != 0 {
			t.Error("the trigger was not deleted")
		}
	})
}

// A change of the number of queues is announced as a barrier; removing queues needs confirmation.
func TestTaskApplyQueues(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		requested := func() (n int64) {
			list, err := ops.New(s.c).Tasks().List(t.Context(), "settle")
			if s.must(err); list[0].RequestedTotal != nil {
				n = *list[0].RequestedTotal
			}
			return n
		}
		s.file("  settle: {queues: 6, execute_number: 10}\n")
		s.wantOutput("task apply", `(?s) queues +4 +6\nA change of the number of queues is a barrier: .* then 2 rows are added, and all workers continue under new epochs\.`)
		if requested() != 6 {
			t.Errorf("%d queues are requested", requested())
		}
		s.wantOutput("task list", `(?m)^ settle +DRAINING +4>6`)
		s.wantOutput("task apply", `nothing to do`)
		s.file("  settle: {queues: 4, execute_number: 10}\n")
		s.wantOutput("task apply", `This withdraws the change to 6 queues, which is under way\.`)
		if requested() != 0 {
			t.Errorf("%d queues are requested", requested())
		}
		s.file("  settle: {queues: 3, execute_number: 500}\n  regions: {queues: [north, west]}\n")
		stdout, stderr, code := s.try("task apply")
		if code != 2 || !strings.Contains(stdout, "then 1 row is removed") || strings.Count(stderr, "\n") != 1 ||
			!strings.Contains(stderr, "remove queues south of regions, whose items are then no longer processed, and remove 1 queue of settle: not confirmed: add --yes") {
			t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
		}
		if requested() != 0 || count(t, s.c.DB(), "schedule_task_type WHERE execute_number = 500") != 0 {
			t.Error("a part was written without confirmation")
		}
		s.run("task apply --yes")
		if requested() != 3 || count(t, s.c.DB(), "schedule_queue WHERE queue_id = 'west'") != 1 || count(t, s.c.DB(), "schedule_queue WHERE queue_id = 'south'") != 0 {
			t.Error("the confirmed change was not written")
		}
	})
}

// If the number of queues is refused, the command writes none of the settings.
func TestTaskApplyRefused(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	s.exec("UPDATE schedule_queue SET cursor_value = '7' WHERE task_type = 'settle'")
	s.file("  settle: {queues: 6, execute_number: 500}\n")
	if _, stderr, code := s.try("task apply"); code != 1 || !strings.HasSuffix(stderr, "from its beginning\n") {
		t.Errorf("exit code %d, want 1; stderr %s", code, stderr)
	}
	s.exec("UPDATE schedule_queue SET cursor_value = '' WHERE task_type = 'settle'")
	s.wantOutput("task apply", `(?s)^settle\$BASE:\n SETTING +NOW +THEN *\n execute_number .* 500\n queues +4 +6\n.*\nsettle\$BASE: changed\n$`)
}

// In an environment that no worker has served, the command says that the change adds the queues.
func TestTaskApplyElsewhere(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	s.file("  settle: {queues: 6, execute_number: 500}\n")
	s.wantOutput("task apply --own-sign TEST", `\nTEST has no queues of it yet: this adds them, as many as in BASE if it has some there\.\n`)
	if n := count(t, s.c.DB(), "schedule_queue WHERE task_type = 'settle' AND own_sign = 'TEST'"); n != 4 {
		t.Errorf("%d queues", n)
	}
	s.wantOutput("task apply --own-sign TEST", `\n queues +4 +6\n`)
}

// Queues that were split are rows, too: the command says what becomes of them and of the requests that wait, and asks
// before it removes some.
func TestTaskApplyAfterASplit(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	s.define("push", center.Settings{Queues: 2, Splittable: true})
	s.run("queue split push 1 --total 8") // at once, without an owner: the queues 0 of 2, and 1, 3, 5 and 7 of 8
	s.wantOutput("task set push queues=2", `^push\$BASE: nothing to do; 4 of its 5 queues were split, and stay so: rota queue merge push QUEUE --total 2\n$`)
	s.wantOutput("task set push queues=6 --dry-run", `then 1 row is added,`)
	s.wantOutput("task set push queues=5 --dry-run", `is a barrier: .* then as many rows as before have other items,`)
	if out, stderr, code := s.try("task set push queues=3"); code != 2 || !strings.Contains(out, "then 2 rows are removed,") || !strings.Contains(stderr, "remove 2 queues of push: not confirmed") {
		t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, out)
	}
	s.exec(`UPDATE schedule_task_running SET queue_changes = '{"0":1,"1":1,"3":1,"5":1,"7":1}' WHERE task_type = 'push'`)
	s.wantOutput("task set push queues=6 --dry-run", `This withdraws the requests to split or merge 5 queues\.`)
	s.wantOutput("task set push queues=2", `This withdraws the change to 1 queue, which is under way\.\nQueues that were split are merged again\.`)
	if n := count(t, s.c.DB(), "schedule_queue WHERE task_type = 'push'"); n != 2 {
		t.Errorf("%d queues", n)
	}
}

// An invalid file is refused with the line of the error, and nothing is written.
func TestTaskApplyRefusesABadFile(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	before := snapshot(t, s.c.DB())
	s.file("  push: {queues: 3}\n  settle: {queues: 4, judge_dead_interval: 8s}\n")
	s.wantError(2, "rota.yaml:4: tasks.settle: judge_dead_interval (8s) must be at least 5 x heartbeat_interval (2s)", "task apply")
	s.file("  push: {queues: 3}\n  settle: {queues: [a, b]}\n")
	s.wantError(1, "task settle: the database and the settings must both number the queues or both name them", "task apply")
	s.file(same)
	s.wantError(2, "push is not defined in the file", "task apply push")
	s.wantError(2, "absent.yaml: no such file or directory", "task apply -f absent.yaml")
	s.wantError(2, "absent.yaml: no such file or directory", "task apply -c absent.yaml")
	if diff := cmp.Diff(before, snapshot(t, s.c.DB())); diff != "" {
		t.Error(diff)
	}
}

// Tasks.Apply fails if another operator changes the settings after the comparison.
func TestTaskApplyRefusesConcurrentChanges(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		wanted := center.Settings{Queues: 4, ExecuteNumber: 500}
		a, err := ops.New(s.c).Tasks().Compare(t.Context(), "settle", wanted)
		s.must(err)
		s.exec("UPDATE schedule_task_type SET fetch_number = 7, version = version + 1 WHERE task_type = 'settle'")
		err = ops.New(s.c).Tasks().Apply(t.Context(), a, "test")
		if err == nil || !strings.Contains(err.Error(), "it has changed meanwhile") || count(t, s.c.DB(), "schedule_task_type WHERE execute_number = 500") != 0 {
			t.Error(err)
		}
	})
}
