package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/sqldb"
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
			t.Errorf("%d workers are registered, want 0", n)
		}
		stdout, _, code = runRota(t, dir, "doctor", "-c", "rota.yaml")
		if code != 1 || !strings.Contains(stdout, "PROBLEM  STATEMENTS        settle: "+strings.TrimPrefix(want, "rota.yaml: ")) {
			t.Errorf("exit code %d, doctor\n%s", code, stdout)
		}
	})
}

// A file with a statement that only the database can refuse leaves a database as it was: the roster's tables are made
// after the check.
func TestARefusedStatementLeavesNoTables(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, err := anydb.URL(url).Pool(sqldb.RoleStore, sqldb.PoolOptions{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for change, want := range map[string]string{
			"FROM orders": "orders", // a table that does not exist
			"FRM orders":  "syntax",
		} {
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "rota.yaml"), "database: "+url+"\ntasks:\n  settle:\n    queues: 4"+
				strings.Replace(goodDealer, "FROM orders", change, 1))
			stdout, stderr, code := runRota(t, dir, "worker", "-c", "rota.yaml", "--schema", "create")
			if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 2 || !strings.Contains(stderr, want) { // of select and of execute
				t.Errorf("%s: exit code %d, stdout %q, stderr\n%s", change, code, stdout, stderr)
			}
			if !strings.HasPrefix(stderr, "rota: rota.yaml: tasks.settle.dealer.sql.") {
				t.Errorf("%s: the error begins %.80q", change, stderr)
			}
		}
		var objects []string
		rows, err := db.QueryContext(t.Context(), anydb.URL(url).Dialect.Tables)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var kind, name string
			if err := rows.Scan(&kind, &name); err != nil {
				t.Fatal(err)
			}
			objects = append(objects, name)
		}
		if err := rows.Err(); err != nil || len(objects) > 0 {
			t.Errorf("objects in the database: %q, %v; want none", objects, err)
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
	const want = "NOTE     STATEMENTS        settle: each select may read all of orders, which has more than 100000 rows, as no index serves it  -> create an index on what the select compares"
	if !strings.Contains(stdout, want) {
		t.Errorf("doctor\n%s\nwant %s", stdout, want)
	}
	execute(t, db, "CREATE INDEX orders_work ON orders (state, id)")
	if stdout, _, _ = runRota(t, dir, "doctor", "-c", "rota.yaml"); strings.Contains(stdout, "STATEMENTS") {
		t.Errorf("doctor with the index\n%s", stdout)
	}
}
