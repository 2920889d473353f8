package center

import (
	"errors"
	"math"
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
		"a queue that nobody can own":       {TaskRecord{QueueTotal: 8, BacklogItems: items(1), Servers: 3, Unassigned: 1}, 4},
		"a queue of a server that has died": {TaskRecord{QueueTotal: 8, BacklogItems: items(1), Servers: 3, DeadServers: 1, Unassigned: 1}, 3},
		"all servers there, one queue left": {TaskRecord{QueueTotal: 3, BacklogItems: items(1), Servers: 3, Unassigned: 1}, 3},
		"paused":                            {TaskRecord{QueueTotal: 8, BacklogItems: items(900), Paused: true}, 1},
		"no queues yet":                     {TaskRecord{BacklogItems: items(900)}, 1},
	}
	for name, test := range tests {
		got, err := test.task.scale(100)
		if err != nil || got.Workers != test.want || got.Reason == "" {
			t.Errorf("%s: %+v, %v, want %d workers", name, got, err, test.want)
		}
	}
	if _, err := (TaskRecord{QueueTotal: 8}).scale(100); !errors.Is(err, ErrNoBacklog) {
		t.Errorf("without a count: %v", err)
	}
}
