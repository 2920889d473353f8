package roster_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openTask opens a Center and defines a task type with the given number of queues.
func openTask(t *testing.T, url, taskType string, queues int) *center.Center {
	t.Helper()
	c := centertest.Open(t, url, center.Options{})
	if _, err := c.Tasks().Define(t.Context(), taskType, center.Settings{Queues: queues}); err != nil {
		t.Fatal(err)
	}
	return c
}

func execSQL(t *testing.T, c *center.Center, statement string) {
	t.Helper()
	if _, err := c.DB().ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s\n%v", statement, err)
	}
}

func countRows(t *testing.T, c *center.Center, query string) (n int) {
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
