package runcmd

import (
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/runs"
)

// Into a pipe, a wait prints a line when the state or the blocker changes, and otherwise every 30 s.
func TestWaitPrintsChangesAndSomeProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := waiter{out: &out}
	lines := func(state string, items int64, blocker string) int {
		t.Helper()
		out.Reset()
		w.last = runs.Record{Run: runs.Run{State: state, ItemsDone: items}, QueuesPending: 10}
		if err := w.show(blocker); err != nil {
			t.Fatal(err)
		}
		return strings.Count(out.String(), "\n")
	}
	for _, test := range []struct {
		state string
		items int64
		block string
		age   time.Duration // of the previous line
		lines int
	}{
		{"READY", 0, "no live server serves sweep", 0, 1},
		{"READY", 0, "no live server serves sweep", time.Hour, 0},
		{"READY", 0, "", 0, 1},
		{"RUNNING", 0, "", 0, 1},
		{"RUNNING", 3, "", time.Second, 0},
		{"RUNNING", 3, "", cli.TellEvery, 1},
		{"RUNNING", 3, "", time.Hour, 0},
	} {
		w.printedAt = w.printedAt.Add(-test.age)
		if n := lines(test.state, test.items, test.block); n != test.lines {
			t.Errorf("%+v: %d lines", test, n)
		}
	}
}
