package main

import (
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
)

// Into a pipe, a wait prints a line when the state or the blocker changes, and otherwise every 30 s.
func TestWaitPrintsChangesAndSomeProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := waiter{out: &out}
	lines := func(state string, items int64, reason center.BlockReason) int {
		t.Helper()
		out.Reset()
		w.last = center.RunRecord{Run: center.Run{State: state, ItemsDone: items}, QueuesPending: 10}
		if err := w.show(center.RunBlocker{Reason: reason}); err != nil {
			t.Fatal(err)
		}
		return strings.Count(out.String(), "\n")
	}
	for _, test := range []struct {
		state string
		items int64
		block center.BlockReason
		age   time.Duration // of the previous line
		lines int
	}{
		{"READY", 0, center.BlockedByNoServer, 0, 1},
		{"READY", 0, center.BlockedByNoServer, time.Hour, 0},
		{"READY", 0, center.NotBlocked, 0, 1},
		{"RUNNING", 0, center.NotBlocked, 0, 1},
		{"RUNNING", 3, center.NotBlocked, time.Second, 0},
		{"RUNNING", 3, center.NotBlocked, printRunEvery, 1},
		{"RUNNING", 3, center.NotBlocked, time.Hour, 0},
	} {
		w.printedAt = w.printedAt.Add(-test.age)
		if n := lines(test.state, test.items, test.block); n != test.lines {
			t.Errorf("%+v: %d lines", test, n)
		}
	}
}
