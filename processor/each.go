package processor

import (
	"context"
	"fmt"
	"sync"
)

// Each returns a dealer for jobs without items: it calls f once for each queue in each run, with the Selection of the
// queue. If f fails or panics, the sweep of the queue has failed, and the next attempt calls f again. In an outage (X5)
// the sweep waits instead, and calls f again without using up an attempt, unless the error is Permanent. f is also
// called again if the process dies, or the queue is lost, before the end of the call is recorded.
//
// Executors call f concurrently for different queues. Its context is the context of Execute. Each needs mode RUN: in
// CONTINUOUS no job happens only once, so every select returns an error that says this.
func Each(f func(context.Context, Selection) error) TaskDealer[Selection] {
	return &each{call: f, done: map[string]*Run{}}
}

type each struct {
	call func(context.Context, Selection) error

	mu   sync.Mutex
	done map[string]*Run // by queue ID: the Run of the last grant under which f succeeded; each grant has its own copy
}

// Select returns s as the only item, until Execute has succeeded with it under this grant.
func (e *each) Select(_ context.Context, s Selection) ([]Selection, error) {
	if s.Run == nil {
		return nil, fmt.Errorf("the dealer of task type %s is made by Each, which needs mode RUN, but the mode is CONTINUOUS", s.TaskType)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done[s.Queue.ID] == s.Run {
		return nil, nil
	}
	return []Selection{s}, nil
}

// Execute calls f.
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
