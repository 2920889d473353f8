package runcmd

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/runs"
)

// Into a pipe, a wait prints a line when the state or the blocker changes, and otherwise every 30 s.
func TestWaitPrintsChangesAndSomeProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		w := waiter{out: &out, progress: cli.NewProgress(&out)}
		for _, test := range []struct {
			state string
			block string
			after time.Duration // the previous look
			lines int
		}{
			{"READY", "no live worker serves sweep", 0, 1},
			{"READY", "no live worker serves sweep", time.Second, 0},
			{"READY", "", 0, 1},
			{"RUNNING", "", 0, 1},
			{"RUNNING", "", cli.TellEvery - 1, 0},
			{"RUNNING", "", 1, 1},
		} {
			time.Sleep(test.after)
			out.Reset()
			w.last = runs.Record{Run: runs.Run{State: test.state}, QueuesPending: 10}
			w.show(test.block)
			if n := strings.Count(out.String(), "\n"); n != test.lines {
				t.Errorf("%+v: %d lines", test, n)
			}
		}
	})
}
