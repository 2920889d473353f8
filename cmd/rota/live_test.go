package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// A running worker follows the operator: more queues, other settings, drain, resume, pause.
func TestWorkerFollowsTheOperator(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, dir := openOrders(t, url, 100)
		p := startWorker(t, dir)
		s := &testRoster{T: t, url: url, dir: dir}
		settled := func() bool { return count(t, db, "orders WHERE state = 'NEW'") == 0 }
		eventually(t, "all orders are settled", settled)

		path := filepath.Join(dir, "rota.yaml")
		text, err := os.ReadFile(path)
		s.must(err)
		changed := strings.NewReplacer("queues: 4", "queues: 6", "execute_number: 10", "execute_number: 7\n    heartbeat_interval: 1s\n    judge_dead_interval: 5s").Replace(string(text))
		writeFile(t, path, changed)
		s.wantOutput("task apply", `(?s)execute_number +10 +7\n.*queues +4 +6\n`)
		eventually(t, "there are six queues, all owned", func() bool { return count(t, db, "schedule_queue WHERE cur_server IS NOT NULL") == 6 })
		eventually(t, "the worker has the new intervals", func() bool { return count(t, db, "schedule_server WHERE judge_dead_interval_ms = 5000") == 1 })
		if n := count(t, db, "schedule_event WHERE kind = 'REPARTITIONED'"); n != 1 {
			t.Errorf("%d changes of the number", n)
		}
		execute(t, db, "UPDATE orders SET state = 'NEW'")
		eventually(t, "all orders are settled again, in six queues", settled)

		var uuid string
		s.must(db.QueryRowContext(t.Context(), "SELECT uuid FROM schedule_server").Scan(&uuid))
		host := uuid[:strings.LastIndexByte(uuid, ':')]
		s.wantOutput("worker drain "+host+" --force", `drained; its 6 queues have no owner until another worker can take over`)
		eventually(t, "no worker owns a queue", func() bool { return count(t, db, "schedule_queue WHERE cur_server IS NULL") == 6 })
		s.wantOutput("worker list", `DRAINING`)
		s.wantOutput("worker resume "+host, `may own queues again`)
		eventually(t, "the worker owns the queues again", func() bool { return count(t, db, "schedule_queue WHERE cur_server IS NOT NULL") == 6 })
		s.run("task pause settle")
		s.wantError(1, "still serve", "task delete settle --yes")
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		s.run("task delete settle --yes")
		if n := count(t, db, "schedule_queue") + count(t, db, "schedule_task_type"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// A key of the file states its setting also if its value is false. The worker names the command that applies it, and the
// doctor has the same words.
func TestWorkerStatesFalse(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		_, dir := openOrders(t, url, 1)
		s := &testRoster{T: t, url: url, dir: dir}
		s.run("task apply -f rota.yaml")
		s.run("task set settle count_in_outage=true rate_per_second=2.5 stall_after=7m")
		path := filepath.Join(dir, "rota.yaml")
		text, err := os.ReadFile(path)
		s.must(err)
		writeFile(t, path, strings.Replace(string(text), "queues: 4", "queues: 4\n    count_in_outage: false\n    rate_per_second: 0", 1))
		worker := startWorker(t, dir)
		const says = "stated settings are not in force: rate_per_second 0 (the row says 2.5), count_in_outage false (the row says true)"
		const hint = "to apply them: rota task set settle rate_per_second=0 count_in_outage=false"
		eventually(t, "the worker has joined", func() bool { return worker.logged("joined") != nil })
		if worker.logged(says+"; "+hint) == nil {
			t.Errorf("the worker does not say %q", says+"; "+hint)
		}
		out := s.run("doctor settle")
		if !strings.Contains(out, says+"  -> "+hint+"\n") || strings.Count(out, "settings are not in force") != 1 {
			t.Errorf("the doctor does not say %q once:\n%s", says, out)
		}
		s.run(strings.TrimPrefix(hint, "to apply them: rota "))
		if out := s.run("doctor settle"); strings.Contains(out, "stated settings") {
			t.Errorf("the doctor still says, after the command:\n%s", out)
		}
	})
}

// With apply_settings a worker writes what its file states, also false, when it starts, and leaves the rest.
func TestWorkerAppliesItsSettings(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, dir := openOrders(t, url, 1)
		s := &testRoster{T: t, url: url, dir: dir}
		s.run("task apply -f rota.yaml")
		s.run("task set settle count_in_outage=true stall_after=7m execute_number=77")
		path := filepath.Join(dir, "rota.yaml")
		text, err := os.ReadFile(path)
		s.must(err)
		stating := strings.NewReplacer("tasks:\n", "apply_settings: true\ntasks:\n", "queues: 4", "queues: 6\n    count_in_outage: false")
		writeFile(t, path, stating.Replace(string(text)))
		worker := startWorker(t, dir)
		eventually(t, "there are six queues, all owned", func() bool { return count(t, db, "schedule_queue WHERE cur_server IS NOT NULL") == 6 })
		if worker.logged("settings applied") == nil || worker.logged("not in force") != nil {
			t.Error("the worker does not say what it has applied")
		}
		const row = "schedule_task_type WHERE execute_number = 10 AND stall_after_ms = 420000 AND NOT count_in_outage"
		if count(t, db, row) != 1 {
			t.Errorf("the row is not what the file states: %s", s.run("task show settle"))
		}
	})
}

// The doctor compares each worker's own settings with the database, without the worker's file.
func TestDoctorComparesWorkersSettings(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		db, dir := openOrders(t, url, 1)
		startWorker(t, dir)
		eventually(t, "the worker has joined", func() bool { return count(t, db, "schedule_server") == 1 })
		s := &testRoster{T: t, url: url, dir: t.TempDir()} // without a rota.yaml
		if out := s.run("doctor"); strings.Contains(out, "stated settings") {
			t.Errorf("the doctor reports equal settings:\n%s", out)
		}
		execute(t, db, "UPDATE schedule_task_type SET execute_number = 77, version = version + 1")
		s.wantOutput("doctor", `(?m)^NOTE +SETTINGS_DIFFER +settle: \S+:\d+: stated settings are not in force: execute_number 10 \(the row says 77\)  -> to apply them: rota task set settle execute_number=10$`)
		if out := s.run("doctor -c " + filepath.Join(dir, "rota.yaml")); strings.Count(out, "SETTINGS_DIFFER") != 1 {
			t.Errorf("the worker's file states the same as the worker, and is another finding:\n%s", out)
		}
		s.wantOutput("worker list -o json", `(?s)"given_settings": \{\s+"execute_number": "10",\s+"fetch_number": "20",\s+"queues": "4",\s+"sleep_time_nodata": "50ms"\s+\}`)
		s.wantOutput("worker list -o csv", `"\{""execute_number"":""10"",`)
	})
}
