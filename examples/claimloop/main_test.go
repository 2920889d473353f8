package main

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/postgres"
	"github.com/dutyrota/rota/internal/testdb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run returns an error if a job is done twice or not at all.
func TestRun(t *testing.T) {
	report, err := run(t.Context(), testdb.URL(t, testdb.Postgres), 500)
	if err != nil || strings.Count(report, "\n") != 1+len(steps) {
		t.Errorf("got %v and:\n%s", err, report)
	}
}

// When a worker of Rota is started too early, the loops and Rota do the same jobs at the same time. Each has one effect.
func TestOverlap(t *testing.T) {
	url := testdb.URL(t, testdb.Postgres)
	c, err := center.Open(t.Context(), postgres.URL(url), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.DB().ExecContext(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	r, err := step{"overlap", 0, total, 10}.measure(t.Context(), url, c.DB(), 5000)
	if err != nil || r.twice+r.lost > 0 {
		t.Errorf("got %+v and error %v, want each job once", r, err)
	}
}

// A job is enqueued with its cause, once.
func TestEnqueue(t *testing.T) {
	db, err := sql.Open("postgres", testdb.URL(t, testdb.Postgres))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	for _, commit := range []bool{true, true, false} {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		name := map[bool]string{true: "invoice 17", false: "invoice 18"}[commit]
		if err := enqueue(t.Context(), tx, 17, name, time.Now()); err != nil {
			t.Fatal(err)
		}
		if commit {
			err = tx.Commit()
		} else {
			err = tx.Rollback()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM jobs`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d jobs and error %v, want 1", n, err)
	}
}
