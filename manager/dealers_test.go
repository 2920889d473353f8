package manager_test

import (
	"context"
	"sync"
	"time"

	"github.com/dutyrota/rota/processor"
)

// idle is a dealer without work.
type idle struct{}

func (idle) Select(context.Context, processor.Selection) ([]int, error) { return nil, nil }
func (idle) Execute(context.Context, []int) error                       { return nil }

// store is a source of items that exist until they are executed: numbers, divided by mod(item, total) = index.
type store struct {
	cl    *cluster
	takes time.Duration

	mu      sync.Mutex
	items   map[int]bool
	at      []time.Time // when each was executed
	twice   bool
	selects int
}

func (s *store) Select(_ context.Context, sel processor.Selection) (items []int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.selects++
	for i := range s.items {
		if i%sel.Total == sel.Queue.Index && len(items) < sel.Limit {
			items = append(items, i)
		}
	}
	return items, nil
}

func (s *store) Execute(_ context.Context, items []int) error {
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range items {
		s.twice = s.twice || !s.items[i]
		delete(s.items, i)
		s.at = append(s.at, time.Now())
	}
	return nil
}

func (s *store) put(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range n {
		s.items[i] = true
	}
}

// doubled reports whether an item was executed twice.
func (s *store) doubled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.twice
}

func (s *store) selected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.selects
}

func (s *store) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}

func (s *store) executed() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.at...)
}

// keyed is a dealer with items that fail.
type keyed struct{ store }

// Key implements processor.Keyed.
func (k *keyed) Key(i int) string { return string(rune('a' + i)) }

// Execute fails for items below 3.
func (k *keyed) Execute(ctx context.Context, items []int) error {
	var failed processor.Failures
	for n, i := range items {
		if i < 3 {
			failed.Add(n, context.DeadlineExceeded)
			continue
		}
		if err := k.store.Execute(ctx, []int{i}); err != nil {
			return err
		}
	}
	return failed.Err()
}

// cursored reads a source in order.
type cursored struct{ store }

// Select returns the items after the cursor.
func (c *cursored) Select(_ context.Context, sel processor.Selection) (items []int, err error) {
	for i := 1; i <= 100 && len(items) < 10; i++ {
		if i%sel.Total == sel.Queue.Index && c.Cursor(i) > sel.Queue.Cursor {
			items = append(items, i)
		}
	}
	return items, nil
}

// Cursor implements processor.Cursored.
func (c *cursored) Cursor(i int) string { return string(rune(1000 + i)) }
