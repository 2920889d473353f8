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
	centertest.Define(t, c, taskType, center.Settings{Queues: queues})
	return c
}
