package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// A worker refuses a statement that the database does not know, before it joins; the doctor finds the same.
func TestWorkerRefusesAnUnknownColumn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, dir := openOrders(t, url, 1)
		file := filepath.Join(dir, "rota.yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, file, strings.Replace(string(text), "times = times + 1", "tims = times + 1", 1))
		const want = "rota.yaml: tasks.settle.dealer.sql.execute, line 1, column 63 (tims = times + 1 WHERE state =...): "
		stdout, stderr, code := runRota(t, dir, "worker", "-c", "rota.yaml")
		if last := strings.TrimSpace(stderr); code != 2 || stdout != "" || !strings.Contains(last, "rota: "+want) || !strings.Contains(last, "tims") {
			t.Errorf("exit code %d, stdout %q, stderr\n%s\nwant %s", code, stdout, stderr, want)
		}
		if n := count(t, db, "schedule_server"); n != 0 {
			t.Errorf("%d servers are registered, want 0", n)
		}
		stdout, _, code = runRota(t, dir, "doctor", "-c", "rota.yaml")
		if code != 1 || !strings.Contains(stdout, "PROBLEM  statements   settle: "+strings.TrimPrefix(want, "rota.yaml: ")) {
			t.Errorf("exit code %d, doctor\n%s", code, stdout)
		}
	})
}

// A worker that starts and the doctor name a large table that lacks an index.
func TestWorkerAndDoctorNameTheScannedTable(t *testing.T) {
	t.Parallel()
	db, dir := openOrders(t, testdb.URL(t, testdb.SQLite), 1)
	execute(t, db, `INSERT INTO orders (id, state) WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 100100) SELECT i, 'SETTLED' FROM n`)
	const told = "may read all of orders, which has more than 100000 rows, as no index serves it; create an index on what the select compares"
	p := startWorker(t, dir)
	eventually(t, "the worker warns", func() bool { return p.logged(told) != nil })
	if task := p.logged(told)["task_type"]; task != "settle" {
		t.Errorf("the warning is about task type %v, want settle", task)
	}
	stdout, _, _ := runRota(t, dir, "doctor", "-c", "rota.yaml")
	const want = "NOTE     statements   settle: each select may read all of orders, which has more than 100000 rows, as no index serves it  -> create an index on what the select compares"
	if !strings.Contains(stdout, want) {
		t.Errorf("doctor\n%s\nwant %s", stdout, want)
	}
	execute(t, db, "CREATE INDEX orders_work ON orders (state, id)")
	if stdout, _, _ = runRota(t, dir, "doctor", "-c", "rota.yaml"); strings.Contains(stdout, "statements") {
		t.Errorf("doctor with the index\n%s", stdout)
	}
}
