package center_test

import (
	"database/sql"
	"testing"

	"github.com/dutyrota/rota/center"
)

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// defineTask defines a task type in the own_sign of c.
func defineTask(t testing.TB, c *center.Center, taskType string, s center.Settings) {
	t.Helper()
	_, err := c.Tasks().Define(t.Context(), taskType, s)
	must(t, err)
}

// execAll runs statements on the dealers' pool.
func execAll(t testing.TB, c *center.Center, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := c.DB().ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s\n%v", s, err)
		}
	}
}

// begin begins a transaction. It is rolled back at the end of the test unless it has ended.
func begin(t testing.TB, c *center.Center) *sql.Tx {
	t.Helper()
	tx, err := c.DB().BeginTx(t.Context(), nil)
	must(t, err)
	t.Cleanup(func() { tx.Rollback() })
	return tx
}

// countRows returns how many rows a query returns.
func countRows(t testing.TB, c *center.Center, query string) (n int) {
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
