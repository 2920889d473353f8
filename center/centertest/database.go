package centertest

import (
	"context"
	"database/sql"
	"testing"

	"github.com/dutyrota/rota/center"
)

// Define defines a task type in the own_sign of c.
func Define(t testing.TB, c *center.Center, taskType string, s center.Settings) {
	t.Helper()
	if _, err := c.Tasks().Define(t.Context(), taskType, s); err != nil {
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

// RunAfter makes a task type run after others, and after no others than these.
func RunAfter(ctx context.Context, c *center.Center, taskType string, after ...center.After) error {
	s, err := c.Tasks().Settings(ctx, taskType)
	if err != nil {
		return err
	}
	s.After = after
	diff, err := c.Tasks().Compare(ctx, taskType, s)
	if err != nil {
		return err
	}
	return c.Tasks().Apply(ctx, diff, "test")
}
