package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// rows is a table of items and its Keyed dealer. Select returns the first items of a queue. Execute does all items of a
// batch or none.
type rows struct {
	w *world

	mu     sync.Mutex
	takes  time.Duration // of an Execute
	open   []string
	bad    map[string]error // the error of a failing item
	fails  map[string]int   // how often an item has failed alone
	limits []int
}

func newRows(w *world, items ...string) *rows {
	return &rows{w: w, open: items, bad: map[string]error{}, fails: map[string]int{}}
}

// numbered returns n items of a queue.
func numbered(queue string, n int) (items []string) {
	for i := range n {
		items = append(items, fmt.Sprint(queue, i))
	}
	return items
}

func (r *rows) Key(item string) string { return item }

func (r *rows) Select(_ context.Context, s processor.Selection) (page []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limits = append(r.limits, s.Limit)
	for _, item := range r.open {
		if item[:1] == s.Queue.ID && len(page) < s.Limit {
			page = append(page, item)
		}
	}
	return page, nil
}

func (r *rows) Execute(ctx context.Context, items []string) error {
	r.w.note("%v", items)
	r.mu.Lock()
	takes := r.takes
	r.mu.Unlock()
	if err := nap(ctx, takes); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range items {
		if err := r.bad[item]; err != nil {
			if len(items) == 1 {
				r.fails[item]++
			}
			return err
		}
	}
	r.open = slices.DeleteFunc(r.open, func(item string) bool { return slices.Contains(items, item) })
	return nil
}

// memory is an ItemStore and a CursorStore.
type memory struct {
	mu      sync.Mutex
	items   map[string]engine.FailedItem
	due     map[string]time.Time // when saved items may be executed again
	cursors map[string]string
	calls   []string
	finds   int   // calls of Find
	err     error // of all calls
	saveErr error // of Save
	moveErr error // of saving cursors
}

func newMemory() *memory {
	return &memory{items: map[string]engine.FailedItem{}, due: map[string]time.Time{}, cursors: map[string]string{}}
}

// failedItems is memory as an ItemStore.
type failedItems struct{ *memory }

func (m failedItems) Any(_ context.Context, q processor.Queue) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.any(q.ID), m.err
}

func (m failedItems) Started(_ context.Context, q processor.Queue) ([]engine.FailedItem, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.started(q.ID), m.err
}

func (m failedItems) Find(_ context.Context, _ processor.Queue, keys []string) ([]engine.FailedItem, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finds++
	return m.find(keys), m.err
}

// any reports whether a queue has items. The caller has locked it.
func (m *memory) any(queue string) bool {
	for key := range m.items {
		if key[:1] == queue {
			return true
		}
	}
	return false
}

// started returns the items of a queue that are Started. The caller has locked it.
func (m *memory) started(queue string) (list []engine.FailedItem) {
	for _, key := range slices.Sorted(maps.Keys(m.items)) {
		if key[:1] == queue && m.items[key].Started {
			list = append(list, m.find([]string{key})...)
		}
	}
	return list
}

// find returns the items with these keys. The caller has locked it.
func (m *memory) find(keys []string) (list []engine.FailedItem) {
	for _, key := range keys {
		item, ok := m.items[key]
		if !ok {
			continue
		}
		if _, saved := m.due[key]; !saved {
			m.due[key] = time.Now().Add(item.RetryIn)
		}
		item.RetryIn = time.Until(m.due[key])
		item.Queue = key[:1]
		list = append(list, item)
	}
	return list
}

// save stores an item. The caller has locked it.
func (m *memory) save(item engine.FailedItem) {
	m.items[item.Key], m.due[item.Key] = item, time.Now().Add(item.RetryIn)
}

// records returns a copy of the records.
func (m *memory) records() map[string]engine.FailedItem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.items)
}

func (m failedItems) Save(_ context.Context, _ processor.Queue, items []engine.FailedItem) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(m.err, m.saveErr); err != nil {
		return err
	}
	for _, item := range items {
		m.save(item)
		m.calls = append(m.calls, fmt.Sprintf("save %s %d %t", item.Key, item.Attempts, item.Dead))
	}
	return nil
}

func (m failedItems) Delete(_ context.Context, _ processor.Queue, keys []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		delete(m.items, key)
		m.calls = append(m.calls, "delete "+key)
	}
	return m.err
}

// cursorsOf is memory as a CursorStore.
type cursorsOf struct{ *memory }

func (m cursorsOf) Load(_ context.Context, q processor.Queue) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, "load cursor "+q.ID)
	return m.cursors[q.ID], m.err
}

func (m cursorsOf) Save(_ context.Context, q processor.Queue, cursor string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(m.err, m.moveErr); err != nil {
		return err
	}
	m.calls = append(m.calls, fmt.Sprintf("cursor %s %s", q.ID, cursor))
	m.cursors[q.ID] = cursor
	return nil
}

// journal returns the calls and clears them.
func (m *memory) journal() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := m.calls
	m.calls = nil
	return calls
}

// expect compares the calls since the last journal with the given ones.
func (m *memory) expect(t *testing.T, calls ...string) {
	t.Helper()
	if got := m.journal(); !slices.Equal(got, calls) {
		t.Errorf("calls of the store: %v, want %v", got, calls)
	}
}
