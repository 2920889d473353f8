package runcmd

import (
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// Into a pipe, a wait prints a line when the state or the blocker changes, and otherwise every 30 s.
func TestWaitPrintsChangesAndSomeProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := waiter{out: &out}
	lines := func(state string, items int64, reason ops.BlockReason) int {
		t.Helper()
		out.Reset()
		w.last = runs.Record{Run: runs.Run{State: state, ItemsDone: items}, QueuesPending: 10}
		if err := w.show(ops.RunBlocker{Reason: reason}); err != nil {
			t.Fatal(err)
		}
		return strings.Count(out.String(), "\n")
	}
	for _, test := range []struct {
		state string
		items int64
		block ops.BlockReason
		age   time.Duration // of the previous line
		lines int
	}{
		{"READY", 0, ops.BlockedByNoServer, 0, 1},
		{"READY", 0, ops.BlockedByNoServer, time.Hour, 0},
		{"READY", 0, ops.NotBlocked, 0, 1},
		{"RUNNING", 0, ops.NotBlocked, 0, 1},
		{"RUNNING", 3, ops.NotBlocked, time.Second, 0},
		{"RUNNING", 3, ops.NotBlocked, printRunEvery, 1},
		{"RUNNING", 3, ops.NotBlocked, time.Hour, 0},
	} {
		w.printedAt = w.printedAt.Add(-test.age)
		if n := lines(test.state, test.items, test.block); n != test.lines {
			t.Errorf("%+v: %d lines", test, n)
		}
	}
}
