package runs_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dutyrota/rota/center"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runRoster defines task types of mode RUN with one queue each, owned by "server".
func runRoster(t testing.TB, c *center.Center, tasks ...string) {
	t.Helper()
	for _, task := range tasks {
		if _, err := c.Tasks().Define(t.Context(), task, center.Settings{Mode: center.ModeRun, Queues: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.DB().ExecContext(t.Context(), `UPDATE schedule_queue SET cur_server = 'server', epoch = 7`); err != nil {
		t.Fatal(err)
	}
}
