package ops

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// The number of workers follows from the items, and stays between one and the number of queues.
func TestScale(t *testing.T) {
	items := func(n int64) *int64 { return &n }
	tests := map[string]struct {
		task TaskRecord
		want int64
	}{
		"nothing left":                      {TaskRecord{QueueTotal: 8, BacklogItems: items(0)}, 1},
		"one item":                          {TaskRecord{QueueTotal: 8, BacklogItems: items(1)}, 1},
		"as much as one worker may have":    {TaskRecord{QueueTotal: 8, BacklogItems: items(100)}, 1},
		"one item more":                     {TaskRecord{QueueTotal: 8, BacklogItems: items(101)}, 2},
		"as many as the queues":             {TaskRecord{QueueTotal: 8, BacklogItems: items(800)}, 8},
		"more than the queues":              {TaskRecord{QueueTotal: 8, BacklogItems: items(801)}, 8},
		"very many":                         {TaskRecord{QueueTotal: 8, BacklogItems: items(math.MaxInt64)}, 8},
		"items in hand, none counted":       {TaskRecord{QueueTotal: 8, BacklogItems: items(0), InFlight: 250}, 3},
		"items in hand, counted, too":       {TaskRecord{QueueTotal: 8, BacklogItems: items(300), InFlight: 250}, 3},
		"a queue that nobody can own":       {TaskRecord{QueueTotal: 8, BacklogItems: items(1), Servers: 3, Unassigned: 1, Crowded: 1}, 4},
		"a queue of a worker that has died": {TaskRecord{QueueTotal: 8, BacklogItems: items(1), Servers: 3, DeadServers: 1, Unassigned: 1, Crowded: 1}, 3},
		"all workers there, one queue left": {TaskRecord{QueueTotal: 3, BacklogItems: items(1), Servers: 3, Unassigned: 1, Crowded: 1}, 3},
		"paused":                            {TaskRecord{QueueTotal: 8, BacklogItems: items(900), Paused: true}, 1},
		"no queues yet":                     {TaskRecord{BacklogItems: items(900)}, 1},
	}
	for name, test := range tests {
		test.task.FreshItems, test.task.FreshQueues = test.task.BacklogItems, max(1, test.task.QueueTotal)
		got, err := test.task.Scale(100)
		if err != nil || got.Workers != test.want || got.Reason == "" {
			t.Errorf("%s: %+v, %v, want %d workers", name, got, err, test.want)
		}
	}
	if _, err := (TaskRecord{QueueTotal: 8}).Scale(100); !errors.Is(err, ErrNoBacklog) {
		t.Errorf("without a count: %v", err)
	}
}

// Queues that were not counted lately are taken for as full as the others, and never for empty. If too few were counted,
// nothing is said.
func TestScaleOfPartialCounts(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	for name, test := range map[string]struct {
		task    TaskRecord
		backlog int64 // -1: too few counts
		workers int64
	}{
		"all counted":                      {TaskRecord{QueueTotal: 8, FreshQueues: 8, FreshItems: n(400)}, 400, 4},
		"half counted":                     {TaskRecord{QueueTotal: 8, FreshQueues: 4, FreshItems: n(200)}, 400, 4},
		"fewer than half":                  {TaskRecord{QueueTotal: 8, FreshQueues: 3, FreshItems: n(200)}, -1, 0},
		"none counted lately":              {TaskRecord{QueueTotal: 8}, -1, 0},
		"none counted lately, paused":      {TaskRecord{QueueTotal: 8, Paused: true}, 0, 1},
		"rounded up":                       {TaskRecord{QueueTotal: 3, FreshQueues: 2, FreshItems: n(201)}, 302, 3},
		"queues without an owner":          {TaskRecord{QueueTotal: 8, FreshQueues: 2, FreshItems: n(50), Unassigned: 6, Crowded: 6, Servers: 1}, 200, 2},
		"owned queues, fewer than half":    {TaskRecord{QueueTotal: 8, FreshQueues: 2, FreshItems: n(50), Unassigned: 3, Servers: 1}, -1, 0},
		"no queue with an owner, no count": {TaskRecord{QueueTotal: 8, Unassigned: 8}, -1, 0},
		"as many items as there can be":    {TaskRecord{QueueTotal: 4, FreshQueues: 2, FreshItems: n(math.MaxInt64)}, math.MaxInt64 / 2, 4},
	} {
		test.task.BacklogItems = n(1)
		got, err := test.task.Scale(100)
		switch {
		case test.backlog < 0 && !errors.Is(err, ErrOldBacklog):
			t.Errorf("%s: %+v, %v, want ErrOldBacklog", name, got, err)
		case test.backlog >= 0 && (err != nil || max(got.Backlog, test.backlog)-min(got.Backlog, test.backlog) > 1 || got.Workers != test.workers):
			t.Errorf("%s: %+v, %v, want %d items and %d workers", name, got, err, test.backlog, test.workers)
		case err == nil && !test.task.Paused && test.task.Unassigned == 0 && strings.Contains(got.Reason, "were counted") != (got.Counted < got.Queues):
			t.Errorf("%s: the reason %q does not say whether the figure is an estimate", name, got.Reason)
		}
	}
}

// In an outage the last counts may still say that the backlog becomes less.
func TestNoEndOfABacklogWhileAllServersFail(t *testing.T) {
	for failing, known := range map[int64]bool{0: true, 1: true, 2: false} {
		task := TaskRecord{Servers: 2, FailingServers: failing, BacklogItems: new(int64(100)), BacklogRate: new(-2.0)}
		if eta := task.BacklogETA(); (eta != nil) != known {
			t.Errorf("%d of 2 servers fail: done in %v", failing, eta)
		}
	}
	if eta := (TaskRecord{BacklogItems: new(int64(100)), BacklogRate: new(-2.0)}).BacklogETA(); eta != nil {
		t.Errorf("no server is there: done in %v s", *eta)
	}
}

// No time is told until dead items are done.
func TestBacklogOfDeadItemsHasNoEnd(t *testing.T) {
	t.Parallel()
	for dead, ends := range map[int64]bool{0: true, 1: true, 2: false, 3: false} {
		if task := (TaskRecord{Servers: 1, BacklogItems: new(int64(2)), BacklogRate: new(-1.0), DeadItems: dead}); (task.BacklogETA() != nil) != ends {
			t.Errorf("2 items are left, %d are dead: done in %v", dead, task.BacklogETA())
		}
	}
}
