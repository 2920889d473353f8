package processor

import (
	"context"
	"fmt"
	"sync"
)

// Each returns a dealer for jobs that are not about items: f is called once for each queue in each run, with the
// Selection of the queue. If it fails, or panics, the sweep of the queue has failed, and with another attempt it is
// called again. It is called again, too, if the process dies, or the queue is lost, before the end of the call is noted.
//
// f is called from several executors at once, for different queues. Its context is that of Execute. Each is for mode
// RUN: in CONTINUOUS there is nothing that could be done once, and every select fails and says so.
func Each(f func(context.Context, Selection) error) TaskDealer[Selection] {
	return &each{call: f, done: map[string]*Run{}}
}

type each struct {
	call func(context.Context, Selection) error

	mu   sync.Mutex
	done map[string]*Run // by queue: that of the grant under which it was done last; no other grant has the same
}

// Select returns s itself, until Execute has succeeded with it under this grant.
func (e *each) Select(_ context.Context, s Selection) ([]Selection, error) {
	if s.Run == nil {
		return nil, fmt.Errorf("the dealer of task type %s is made by Each, which needs mode RUN (it is CONTINUOUS)", s.TaskType)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done[s.Queue.ID] == s.Run {
		return nil, nil
	}
	return []Selection{s}, nil
}

// Execute calls the function.
func (e *each) Execute(ctx context.Context, items []Selection) error {
	for _, s := range items {
		if err := e.call(ctx, s); err != nil {
			return err
		}
		e.mu.Lock()
		e.done[s.Queue.ID] = s.Run
		e.mu.Unlock()
	}
	return nil
}
