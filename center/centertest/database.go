package centertest

import (
	"context"
	"database/sql"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// Define defines a task type in the own_sign of c.
func Define(t testing.TB, c *center.Center, taskType string, s center.Settings) {
	t.Helper()
	if _, err := ops.New(c).Tasks().Define(t.Context(), taskType, s); err != nil {
		t.Fatal(err)
	}
}

// Exec runs statements on the pool for dealers, one after the other.
func Exec(t testing.TB, c *center.Center, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := c.DB().ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s\n%v", s, err)
		}
	}
}

// Begin begins a transaction on the pool for dealers. It is rolled back at the end of the test unless it has ended.
func Begin(t testing.TB, c *center.Center) *sql.Tx {
	t.Helper()
	tx, err := c.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // fails if the test has ended it
	return tx
}

// CountRows returns how many rows a query returns.
func CountRows(t testing.TB, c *center.Center, query string) (n int) {
	t.Helper()
	rows, err := c.DB().QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s\n%v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		n++
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s\n%v", query, err)
	}
	return n
}

// Engine returns the product and the version of the database server, as the doctor shows them. It does not call the
// doctor, which would check what each case has left.
func Engine(t testing.TB, c *center.Center) string {
	t.Helper()
	db := c.Roster().DB
	engine, err := sqldb.Value[string](t.Context(), db, db.Version)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// RunAfter makes a task type run after others, and after no others than these.
func RunAfter(ctx context.Context, c *center.Center, taskType string, after ...runs.After) error {
	s, err := ops.New(c).Tasks().Settings(ctx, taskType)
	if err != nil {
		return err
	}
	s.After = after
	diff, err := ops.New(c).Tasks().Compare(ctx, taskType, s)
	if err != nil {
		return err
	}
	return ops.New(c).Tasks().Apply(ctx, diff, "test")
}

// SkewedClock returns the URL of an empty PostgreSQL database whose clock_timestamp() is ahead by skew: the function
// stands before PostgreSQL's own in the search path. A view and a default keep the function that they find when they are
// created, so it has to exist before the tables.
func SkewedClock(t *testing.T, skew string) (url string) {
	t.Helper()
	url = testdb.URL(t, testdb.Postgres)
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$
		SELECT pg_catalog.clock_timestamp() + INTERVAL '`+skew+`' $$`)
	if err != nil {
		t.Fatal(err)
	}
	return url + "&search_path=public,pg_catalog"
}
