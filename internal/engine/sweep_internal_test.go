package engine

import (
	"testing"
	"time"
)

// A sweep gives up waiting for the end of an outage if poison is more likely, but not before it has waited for as long
// as it has worked, and in any case after the horizon of the retry policy (X5).
func TestSweepGivesUp(t *testing.T) {
	s := &Settings{Retry: time.Second, RetryFactor: 2, RetryMax: time.Hour, ItemMaxAttempts: 15}
	began := time.Now()
	for name, test := range map[string]struct {
		done   int64
		left   remainder
		worked time.Duration
		waited time.Duration
		want   bool
	}{
		"few items of many":                  {1000, remainder{failed: 3}, 10 * time.Minute, 10 * time.Minute, true},
		"it has waited less than it worked":  {1000, remainder{failed: 3}, 10 * time.Minute, 9 * time.Minute, false},
		"ten pauses at least":                {1000, remainder{failed: 3}, time.Second, 9 * time.Second, false},
		"an item is left that may succeed":   {1000, remainder{failed: 3, untested: true}, 0, time.Hour, false},
		"too many items for poison":          {1000, remainder{failed: 101}, 0, time.Hour, false},
		"as many as in the attempt before":   {0, remainder{failed: 5, expected: 5}, 0, time.Hour, true},
		"more than in the attempt before":    {0, remainder{failed: 6, expected: 5}, 0, time.Hour, false},
		"after the horizon, items are left":  {0, remainder{failed: 6, untested: true}, 0, s.horizon(), true},
		"just before the horizon, undecided": {0, remainder{failed: 6, untested: true}, 0, s.horizon() - 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := sweptRun{began: began, done: test.done}
			open := began.Add(test.worked)
			if got := r.givesUp(test.left, s, open, open.Add(test.waited)); got != test.want {
				t.Errorf("gives up: %t", got)
			}
		})
	}
}

// A page is about a second of work for the executors that it gets, and at least a batch for each of them.
func TestPageSize(t *testing.T) {
	s := &Settings{FetchNumber: 500, ExecuteNumber: 10}
	for name, test := range map[string]struct {
		each             time.Duration
		executors, pages int
		cursored         bool
		want             int
	}{
		"nothing was measured":       {0, 4, 1, false, 500},
		"fast items":                 {time.Millisecond, 4, 1, false, 500},
		"a second of four executors": {10 * time.Millisecond, 4, 1, false, 400},
		"of one of two pages":        {10 * time.Millisecond, 4, 2, false, 200},
		"slow items, the only page":  {time.Minute, 4, 1, false, 160},
		"slow items, of four pages":  {time.Minute, 4, 4, false, 10},
		"a cursor":                   {10 * time.Millisecond, 4, 1, true, 100},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pace(test.each).pageSize(s, test.executors, test.pages, test.cursored); got != test.want {
				t.Errorf("%d items, want %d", got, test.want)
			}
		})
	}
}
