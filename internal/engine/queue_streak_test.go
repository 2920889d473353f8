package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// tenants is a Keyed dealer. Queue a always has new items, which succeed. The items of the other queues stay until they
// succeed.
type tenants struct {
	*rows
	mu    sync.Mutex
	fresh int
}

func (d *tenants) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	if s.Queue.ID != "a" {
		return d.rows.Select(ctx, s)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fresh++
	return []string{fmt.Sprint("a", d.fresh)}, nil
}

// wantQueueFailing expects that a queue fails since a time after the start of the test, or not at all with -1.
func (w *world) wantQueueFailing(t *testing.T, id string, since time.Duration) {
	t.Helper()
	synctest.Wait()
	f := w.holding(t, id).Failing
	switch {
	case f == nil && since >= 0:
		t.Errorf("queue %s does not fail, want since %s", id, since)
	case f != nil && f.Since.Sub(w.begin) != since:
		t.Errorf("queue %s fails since %s, want %s; calls: %d, error: %v", id, f.Since.Sub(w.begin), since, f.Calls, f.Err)
	}
}

func (w *world) startTenants(t *testing.T, items ...string) *tenants {
	t.Helper()
	d := &tenants{rows: newRows(w, items...)}
	for _, item := range items {
		d.bad[item] = errBroken
	}
	s := failingAfter()
	s.SleepTimeInterval, s.RetryJitter = time.Second, 0
	w.start(t, d, engine.Env{}, s, "a", "b")
	return d
}

func (r *rows) mend(items ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range items {
		delete(r.bad, item)
	}
}

// X7: a queue whose items all fail is told, although another queue succeeds all the time, until one of its items is
// done. After that, the others of its items are poison for an hour.
func TestQueueThatFailsAloneIsFailing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := w.startTenants(t, numbered("b", 4)...)
		time.Sleep(30 * time.Minute)
		w.wantQueueFailing(t, "a", -1)
		w.wantQueueFailing(t, "b", 0)
		w.wantFailing(t, -1)
		if f := w.holding(t, "b").Failing; f == nil || f.Calls < 20 || f.Err == nil || time.Since(f.Until) > time.Second {
			t.Errorf("the failure is %+v, want many calls, an error, and that it lasts", f)
		}
		d.mend("b3")
		time.Sleep(2 * time.Minute)
		w.wantQueueFailing(t, "b", -1)
		time.Sleep(50 * time.Minute)
		w.wantQueueFailing(t, "b", -1)
		time.Sleep(20 * time.Minute)
		if f := w.holding(t, "b").Failing; f == nil {
			t.Error("queue b does not fail an hour after its last success")
		}
	})
}

// X7: two poison items are no failing queue, because other items of it may succeed when there are any.
func TestTwoPoisonItemsAreNoFailingQueue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.startTenants(t, numbered("b", 2)...)
		time.Sleep(time.Hour)
		w.wantQueueFailing(t, "b", -1)
	})
}

// X7: a queue in which nothing is left that could fail does not fail, although none of its items was done.
func TestQueueWithNothingLeftIsNotFailing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := w.startTenants(t, numbered("b", 4)...)
		time.Sleep(30 * time.Minute)
		w.wantQueueFailing(t, "b", 0)
		d.rows.mu.Lock()
		d.open = nil
		d.rows.mu.Unlock()
		time.Sleep(time.Minute)
		w.wantQueueFailing(t, "b", -1)
	})
}

// X7: one item stops the queue of a cursor, and says enough.
func TestPoisonAtACursorIsAFailingQueue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 7), newMemory()
		d.bad["a02"] = errBroken
		w.start(t, d, engine.Env{Cursors: cursorsOf{m}, Bind: bindCursor}, failingAfter(), "a")
		time.Sleep(20 * time.Minute)
		w.wantQueueFailing(t, "a", 0)
		w.wantFailing(t, -1) // it may be poison
	})
}

// X7: each failed batch of a dealer without keys counts.
func TestQueueWithoutKeysIsFailing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{
			sel: func(_ context.Context, s processor.Selection) ([]string, error) { return []string{s.Queue.ID}, nil },
			exec: func(_ context.Context, items []string) error {
				if items[0] == "b" {
					return errBroken
				}
				return nil
			},
		}
		w.start(t, d, engine.Env{}, failingAfter(), "a", "b")
		time.Sleep(20 * time.Minute)
		w.wantQueueFailing(t, "a", -1)
		w.wantQueueFailing(t, "b", 0)
	})
}

// X7: a queue that is not worked does not fail, and the time in which it is not worked does not count. A long call says
// nothing before its end.
func TestQueueThatRestsIsNotFailing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := w.startTenants(t, numbered("b", 4)...)
		time.Sleep(30 * time.Minute)
		w.Drain("b")
		w.wantQueueFailing(t, "b", -1)
		time.Sleep(5 * time.Hour)
		w.Resume("b")
		w.wantQueueFailing(t, "b", 5*time.Hour)
		d.rows.mu.Lock()
		d.takes = 3 * time.Hour
		d.rows.mu.Unlock()
		time.Sleep(2 * time.Hour)
		if f := w.holding(t, "b").Failing; f == nil || time.Since(f.Until) < time.Hour {
			t.Errorf("the failure is %+v, want that it is known until a call began long ago", f)
		}
	})
}

// X7: what an earlier owner has found holds until a call of the queue says otherwise.
func TestFailureOfAnEarlierOwnerIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := w.startTenants(t)
		d.rows.mu.Lock()
		d.open = numbered("c", 4)
		for _, item := range d.open {
			d.bad[item] = errBroken
		}
		d.rows.mu.Unlock()
		for _, id := range []string{"c", "d"} {
			if err := w.Grant(processor.Queue{ID: id, Index: 2, Epoch: 9, FailingSince: w.begin.Add(-time.Hour)},
				4); err != nil {
				t.Fatal(err)
			}
		}
		w.wantQueueFailing(t, "c", -time.Hour)
		w.wantQueueFailing(t, "d", -1) // it is empty
		time.Sleep(time.Minute)
		w.wantQueueFailing(t, "c", -time.Hour)
		d.mend(numbered("c", 4)...)
		time.Sleep(2 * time.Minute)
		w.wantQueueFailing(t, "c", -1)
	})
}
