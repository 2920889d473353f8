package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// What an operator changes, a worker that runs does: more queues, other settings, pause, drain, resume.
func TestOperateAWorker(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, dir := openOrders(t, url, 100)
		p := startWorker(t, dir)
		s := &stage{T: t, url: url, dir: dir}
		settled := func() bool { return count(t, db, "orders WHERE state = 'NEW'") == 0 }
		eventually(t, "all orders are settled", settled)

		path := filepath.Join(dir, "rota.yaml")
		text, err := os.ReadFile(path)
		s.must(err)
		changed := strings.NewReplacer("queues: 4", "queues: 6", "execute_number: 10", "execute_number: 7").Replace(string(text))
		writeFile(t, path, changed)
		s.says("task apply", `(?s)execute_number +10 +7\n.*queues +4 +6\n`)
		eventually(t, "there are six queues, all owned", func() bool { return count(t, db, "schedule_queue WHERE cur_server IS NOT NULL") == 6 })
		if n := count(t, db, "schedule_event WHERE kind = 'REPARTITIONED'"); n != 1 {
			t.Errorf("%d changes of the number", n)
		}
		execute(t, db, "UPDATE orders SET state = 'NEW'")
		eventually(t, "all orders are settled again, in six queues", settled)

		var uuid string
		s.must(db.QueryRowContext(t.Context(), "SELECT uuid FROM schedule_server").Scan(&uuid))
		host := uuid[:strings.LastIndexByte(uuid, ':')]
		s.says("server drain "+host+" --force", `its 6 queues were taken away`)
		eventually(t, "nobody owns anything", func() bool { return count(t, db, "schedule_queue WHERE cur_server IS NULL") == 6 })
		s.says("server list", `DRAINING`)
		s.says("server resume "+host, `may have queues again`)
		eventually(t, "it has them again", func() bool { return count(t, db, "schedule_queue WHERE cur_server IS NOT NULL") == 6 })
		s.run("task pause settle")
		s.refused(1, "servers that live serve it", "task delete settle --yes")
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

// What a worker's own file says and the database does not is found without that file.
func TestDoctorComparesWorkersSettings(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, dir := openOrders(t, url, 1)
		startWorker(t, dir)
		eventually(t, "the worker has joined", func() bool { return count(t, db, "schedule_server") == 1 })
		s := &stage{T: t, url: url, dir: t.TempDir()} // where there is no rota.yaml
		if out := s.run("doctor"); strings.Contains(out, " gives ") {
			t.Errorf("nothing differs:\n%s", out)
		}
		execute(t, db, "UPDATE schedule_task_type SET execute_number = 77, version = version + 1")
		s.says("doctor", `(?m)^NOTE +settings +settle: \S+:\d+ gives execute_number 10, the row, which is in force, says 77  -> .*rota task apply`)
		s.says("server list -o json", `(?s)"given_settings": \{\s+"execute_number": "10",\s+"fetch_number": "20",\s+"queues": "4",\s+"sleep_time_nodata": "50ms"\s+\}`)
		s.says("server list -o csv", `"\{""execute_number"":""10"",`)
	})
}
