package ops

import (
	"errors"
	"fmt"
)

// Scale says how many workers a task type should have, for an autoscaler.
type Scale struct {
	TaskType string  `json:"task_type"`
	Workers  int64   `json:"workers"` // how many there should be
	Servers  int64   `json:"servers"` // how many there are, overdue servers included
	Queues   int64   `json:"queues"`
	Counted  int64   `json:"counted_queues"` // within FreshBacklog
	Backlog  int64   `json:"backlog_items"`  // of all queues; an estimate if not all were counted
	Age      float64 `json:"backlog_age_s"`  // of the oldest count that it rests on
	InFlight int64   `json:"in_hand"`
	Reason   string  `json:"reason"` // for people
}

var (
	// ErrNoBacklog means that no queue of a task type has been counted: its dealer is no Backlogger, or no worker has
	// served it yet.
	ErrNoBacklog = errors.New("no worker has counted its backlog")

	// ErrOldBacklog means that too few queues of a task type were counted within FreshBacklog to know how much is left.
	ErrOldBacklog = errors.New("fewer than half of the queues with an owner were counted within the last minute")
)

// Scale returns how many workers the task type should have if each is to have perWorker items: the items that are left,
// or those in flight if they are more, divided by perWorker and rounded up. It is never more than the queues, because
// further workers would stand by, and never less than one, because without a worker nobody counts. A queue without an
// owner asks for one worker more than there are. A paused task type asks for one.
//
// Scale uses counts that are no older than FreshBacklog, and takes the other queues for as full as those. If fewer than
// half of the queues that have an owner were counted within that time, it returns ErrOldBacklog. It also returns
// ErrNoBacklog.
func (t TaskRecord) Scale(perWorker int64) (Scale, error) {
	if perWorker < 1 {
		return Scale{}, fmt.Errorf("scale %s for %d items per worker: want at least 1", t.TaskType, perWorker)
	}
	s, err := t.estimate()
	if err != nil {
		return Scale{}, fmt.Errorf("scale %s: %w", t.TaskType, err)
	}
	work := max(s.Backlog, s.InFlight)
	s.Workers, s.Reason = (work-1)/perWorker+1, fmt.Sprintf("%d items, %d per worker", work, perWorker)
	if work == 0 {
		s.Workers, s.Reason = 1, "nothing is left: one worker goes on counting"
	}
	if s.Counted < s.Queues {
		s.Reason += fmt.Sprintf("; %d of %d queues were counted within the last minute, and the others are taken for as "+
			"full as these", s.Counted, s.Queues)
	}
	if t.Crowded > 0 && s.Workers <= t.Servers-t.DeadServers {
		s.Workers = t.Servers - t.DeadServers + 1
		s.Reason = fmt.Sprintf("%d queues have no owner because of max_queues_per_server", t.Crowded)
	}
	if s.Workers > s.Queues {
		s.Workers, s.Reason = max(1, s.Queues), s.Reason+"; there are no more queues"
	}
	for _, limit := range []struct {
		name string
		n    int64
	}{{"max_servers", t.MaxServers}, {"max_in_flight", t.MaxInFlight}} {
		if limit.n > 0 && s.Workers > limit.n {
			s.Workers, s.Reason = limit.n, fmt.Sprintf("%s; %s is %d", s.Reason, limit.name, limit.n)
		}
	}
	if t.Paused {
		s.Workers, s.Reason = 1, "the task type is paused"
	}
	return s, nil
}

// estimate returns how much is left. Queues without an owner need not have been counted: a limit of queues per server
// would otherwise hide from an autoscaler that servers are missing.
func (t TaskRecord) estimate() (Scale, error) {
	s := Scale{
		TaskType: t.TaskType, Servers: t.Servers, Queues: t.QueueTotal, Counted: t.FreshQueues,
		InFlight: t.InFlight,
	}
	if t.BacklogItems == nil {
		return s, ErrNoBacklog
	}
	var items int64
	if t.FreshItems != nil {
		items = *t.FreshItems
	}
	if t.FreshAge != nil {
		s.Age = *t.FreshAge
	}
	if _, known := EstimateBacklog(items, s.Counted, s.Queues-t.Unassigned); !known && !t.Paused {
		return s, fmt.Errorf("%w: %d of %d", ErrOldBacklog, s.Counted, s.Queues-t.Unassigned)
	}
	s.Backlog = extrapolate(items, s.Counted, s.Queues)
	return s, nil
}
