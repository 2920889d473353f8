package runs_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// defineRunTasks defines task types of mode RUN with one queue each. The server "server" owns the queues under epoch 7.
func defineRunTasks(t testing.TB, c *center.Center, tasks ...string) {
	t.Helper()
	for _, task := range tasks {
		centertest.Define(t, c, task, center.Settings{Mode: center.ModeRun, Queues: 1})
	}
	centertest.Exec(t, c, `UPDATE schedule_queue SET cur_server = 'server', epoch = 7`)
}
