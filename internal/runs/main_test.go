package runs_test

import (
	"database/sql"
	"testing"

	"go.uber.org/goleak"

	"github.com/dutyrota/rota/center"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// execAll runs statements on the pool of the dealers.
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

// defineRunTasks defines task types of mode RUN with one queue each. The server "server" owns the queues under epoch 7.
func defineRunTasks(t testing.TB, c *center.Center, tasks ...string) {
	t.Helper()
	for _, task := range tasks {
		defineTask(t, c, task, center.Settings{Mode: center.ModeRun, Queues: 1})
	}
	execAll(t, c, `UPDATE schedule_queue SET cur_server = 'server', epoch = 7`)
}
