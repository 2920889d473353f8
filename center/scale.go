package center

import (
	"context"
	"errors"
	"fmt"
)

// Scale says how many workers a task type should have, for an autoscaler.
type Scale struct {
	TaskType string  `json:"task_type"`
	Workers  int64   `json:"workers"` // how many there should be
	Servers  int64   `json:"servers"` // how many there are, overdue servers included
	Queues   int64   `json:"queues"`
	Backlog  int64   `json:"backlog_items"`
	Age      float64 `json:"backlog_age_s"` // of the oldest count
	InFlight int64   `json:"in_hand"`
	Reason   string  `json:"reason"` // for people
}

// ErrNoBacklog means that no queue of a task type has been counted: its dealer is no Backlogger, or no worker has served
// it yet.
var ErrNoBacklog = errors.New("no worker has counted its backlog")

// Scale returns how many workers a task type should have if each is to have perWorker items: the items that are left, or
// those in flight if they are more, divided by perWorker and rounded up. It never is more than the queues, because further
// workers would stand by, and never less than one, because without a worker nobody counts. A queue without an owner asks
// for one worker more than there are. A paused task type asks for one. Scale returns ErrUnknownTask and ErrNoBacklog.
func (t *Tasks) Scale(ctx context.Context, taskType string, perWorker int64) (Scale, error) {
	if taskType == "" || perWorker < 1 {
		return Scale{}, fmt.Errorf("scale %q for %d items per worker: want a task type, and at least 1", taskType, perWorker)
	}
	list, err := t.List(ctx, taskType)
	if err != nil {
		return Scale{}, err
	}
	return list[0].scale(perWorker)
}

func (t TaskRecord) scale(perWorker int64) (Scale, error) {
	if t.BacklogItems == nil {
		return Scale{}, fmt.Errorf("scale %s: %w", t.TaskType, ErrNoBacklog)
	}
	s := Scale{TaskType: t.TaskType, Servers: t.Servers, Queues: t.QueueTotal, Backlog: *t.BacklogItems, InFlight: t.InFlight}
	if t.BacklogAge != nil {
		s.Age = *t.BacklogAge
	}
	work := max(s.Backlog, s.InFlight)
	s.Workers, s.Reason = (work-1)/perWorker+1, fmt.Sprintf("%d items, %d per worker", work, perWorker)
	if work == 0 {
		s.Workers, s.Reason = 1, "nothing is left: one worker goes on counting"
	}
	if t.Unassigned > 0 && s.Workers <= t.Servers-t.DeadServers {
		s.Workers, s.Reason = t.Servers-t.DeadServers+1, fmt.Sprintf("%d queues have no owner", t.Unassigned)
	}
	if s.Workers > s.Queues {
		s.Workers, s.Reason = max(1, s.Queues), s.Reason+"; there are no more queues"
	}
	if t.Paused {
		s.Workers, s.Reason = 1, "the task type is paused"
	}
	return s, nil
}
