package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
)

// file writes the rota.yaml that is applied.
func (s *stage) file(tasks string) {
	s.Helper()
	writeFile(s.T, filepath.Join(s.dir, "rota.yaml"), "database: sqlite:another.db\ntasks:\n"+tasks)
}

const same = "  settle: {queues: 4, execute_number: 10}\n  regions: {queues: [north, south]}\n"

func TestTaskApply(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newStage(t, url)
		s.file(same)
		s.says("task apply", `^regions\$BASE: nothing to do\n\nsettle\$BASE: nothing to do\n$`)
		s.file("  settle: {queues: 4, stall_after: 1m}\n  regions: {queues: [north, south]}\n")
		before := snapshot(t, s.c.DB())
		s.says("task apply --dry-run", `(?m)^ execute_number +10 +1\n stall_after +5m0s +1m0s\n`)
		if diff := cmp.Diff(before, snapshot(t, s.c.DB())); diff != "" {
			t.Fatalf("a dry run writes:\n%s", diff)
		}
		s.says("task apply -f rota.yaml regions", `^regions\$BASE: nothing to do\n$`)
		var changes []map[string]any
		s.must(json.Unmarshal([]byte(s.run("task apply -o json")), &changes))
		want := []map[string]any{
			{"task_type": "settle", "own_sign": "BASE", "setting": "execute_number", "row": "10", "file": "1", "applied": true},
			{"task_type": "settle", "own_sign": "BASE", "setting": "stall_after", "row": "5m0s", "file": "1m0s", "applied": true},
		}
		if diff := cmp.Diff(want, changes); diff != "" {
			t.Error(diff)
		}
		s.says("task apply", `(?m)^settle\$BASE: nothing to do$`)
		if n := count(t, s.c.DB(), "schedule_task_type WHERE task_type = 'settle' AND execute_number = 1 AND stall_after_ms = 60000 AND version = 1"); n != 1 {
			t.Error("the row is not what the file says")
		}
		s.says("event list --kind SETTINGS", `execute_number 10 -> 1, stall_after 5m0s -> 1m0s`)
	})
}

// A task type that is not there is created; a worker that comes later finds it as the file has it.
func TestTaskApplyCreates(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newStage(t, url)
		s.file("  push: {queues: 3, thread_number: 7}\n")
		s.says("task apply --dry-run", `^push\$BASE: would be created, with 3 queues\n$`)
		s.refused(1, "push: unknown task type", "task show push")
		s.says("task apply", `^push\$BASE: is created, with 3 queues\n$`)
		s.says("task show push", `(?m)^ thread_number +7 +5$`)
		if n := count(t, s.c.DB(), "schedule_queue WHERE task_type = 'push'"); n != 3 {
			t.Errorf("%d queues", n)
		}
	})
}

// What begins runs is shown and applied like the other settings; to delete the trigger asks first.
func TestTaskApplySchedule(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newStage(t, url)
		s.file("  after: {queues: 1, mode: RUN, after: [before]}\n  before: {queues: 2, mode: RUN, cron: '0 0 2 * * ?', time_zone: Europe/Berlin}\n")
		s.says("task apply", `^before\$BASE: is created, with 2 queues\n\nafter\$BASE: is created, with 1 queue\n$`)
		s.says("trigger list", `(?m)^ before +`)
		s.says("task show before", `(?m)^ cron +0 0 2 \* \* \? *$`)
		s.says("task show after", `(?m)^ after +before *$`)
		s.says("task apply", `^before\$BASE: nothing to do\n\nafter\$BASE: nothing to do\n$`)
		s.file("  after: {queues: 1, mode: RUN}\n  before: {queues: 2, mode: RUN, cron: '0 0 3 * * ?', time_zone: Europe/Berlin}\n")
		s.says("task apply after", `(?m)^ after +before +-$`)
		s.says("task apply", `(?s) cron +0 0 2 \* \* \? +0 0 3 \* \* \?\n.*\nThe trigger before is that of this environment, BASE\. Runs that are open stay\.`)
		s.file("  before: {queues: 2, mode: RUN}\n")
		if _, stderr, code := s.try("task apply"); code != 2 || !strings.Contains(stderr, "this will delete the trigger before, so that no run of it begins by itself: say --yes") {
			t.Errorf("exit code %d, stderr %q", code, stderr)
		}
		s.run("task apply --yes")
		if n := count(t, s.c.DB(), "schedule_trigger WHERE name = 'before'"); n != 0 {
			t.Error("the trigger is there")
		}
	})
}

// Another number of queues is a barrier, and says so; fewer, or fewer names, ask first.
func TestTaskApplyQueues(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newStage(t, url)
		requested := func() (n int) {
			s.must(s.c.DB().QueryRowContext(t.Context(), "SELECT COALESCE(requested_total, 0) FROM schedule_task_running WHERE task_type = 'settle'").Scan(&n))
			return n
		}
		s.file("  settle: {queues: 6, execute_number: 10}\n")
		s.says("task apply", `(?s) queues +4 +6\nThe number of queues is a barrier: .* then 2 rows are added, and all go on under new epochs\.`)
		if requested() != 6 {
			t.Errorf("%d queues are asked for", requested())
		}
		s.says("task list", `(?m)^ settle +DRAINING +4>6`)
		s.says("task apply", `nothing to do`)
		s.file("  settle: {queues: 4, execute_number: 10}\n")
		s.says("task apply", `The change to 6 queues, for which workers drain, is withdrawn\.`)
		if requested() != 0 {
			t.Errorf("%d queues are asked for", requested())
		}
		s.file("  settle: {queues: 3, execute_number: 500}\n  regions: {queues: [north, west]}\n")
		stdout, stderr, code := s.try("task apply")
		if code != 2 || !strings.Contains(stdout, "then 1 row is removed") || strings.Count(stderr, "\n") != 1 ||
			!strings.Contains(stderr, "this will remove queues of regions, whose items are not processed any more: south, and remove 1 queue of settle: say --yes") {
			t.Errorf("exit code %d, stderr %q, stdout\n%s", code, stderr, stdout)
		}
		if requested() != 0 || count(t, s.c.DB(), "schedule_task_type WHERE execute_number = 500") != 0 {
			t.Error("a part was written all the same")
		}
		s.run("task apply --yes")
		if requested() != 3 || count(t, s.c.DB(), "schedule_queue WHERE queue_id = 'west'") != 1 || count(t, s.c.DB(), "schedule_queue WHERE queue_id = 'south'") != 0 {
			t.Error("it was not done")
		}
	})
}

// What is wrong in the file is told with its line, before anything of it is written.
func TestTaskApplyBadFile(t *testing.T) {
	t.Parallel()
	s := newStage(t, testdb.URL(t, testdb.SQLite))
	before := snapshot(t, s.c.DB())
	s.file("  push: {queues: 3}\n  settle: {queues: 4, judge_dead_interval: 8s}\n")
	s.refused(2, "rota.yaml:4: tasks.settle: judge_dead_interval (8s) must be at least 5 x heartbeat_interval (2s)", "task apply")
	s.file("  push: {queues: 3}\n  settle: {queues: [a, b]}\n")
	s.refused(1, "task settle: queues are numbered here and named there", "task apply")
	s.file(same)
	s.refused(2, "rota.yaml: tasks: there is no push", "task apply push")
	s.refused(2, "absent.yaml: no such file or directory", "task apply -f absent.yaml")
	s.refused(2, "absent.yaml: no such file or directory", "task apply -c absent.yaml")
	if diff := cmp.Diff(before, snapshot(t, s.c.DB())); diff != "" {
		t.Error(diff)
	}
}

// Settings are written all or none: somebody else's change in between makes it say so.
func TestTaskApplyOverAnothersChange(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newStage(t, url)
		wanted := center.Settings{Queues: 4, ExecuteNumber: 500}
		a, err := s.c.CompareSettings(t.Context(), "settle", wanted)
		s.must(err)
		s.exec("UPDATE schedule_task_type SET fetch_number = 7, version = version + 1 WHERE task_type = 'settle'")
		err = s.c.ApplySettings(t.Context(), "settle", wanted, a, "test")
		if err == nil || !strings.Contains(err.Error(), "the settings have changed meanwhile") || count(t, s.c.DB(), "schedule_task_type WHERE execute_number = 500") != 0 {
			t.Error(err)
		}
	})
}
