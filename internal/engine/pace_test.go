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

// stream is a dealer whose queues always have new items, except queue "z": it has the one item that put leaves there.
type stream struct {
	takes time.Duration // of one item

	mu     sync.Mutex
	next   map[string]int
	lone   bool
	put    time.Time
	waited chan time.Duration
	limits []int
}

func newStream(takes time.Duration) *stream {
	return &stream{takes: takes, next: map[string]int{}, waited: make(chan time.Duration, 1)}
}

func (d *stream) putLone() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lone, d.put = true, time.Now()
}

func (d *stream) Select(_ context.Context, s processor.Selection) (page []string, _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.Queue.ID == "z" {
		if d.lone {
			page = append(page, "z")
		}
		return page, nil
	}
	d.limits = append(d.limits, s.Limit)
	for range s.Limit {
		d.next[s.Queue.ID]++
		page = append(page, fmt.Sprint(s.Queue.ID, d.next[s.Queue.ID]))
	}
	return page, nil
}

func (d *stream) Execute(ctx context.Context, items []string) error {
	d.mu.Lock()
	takes := time.Duration(len(items)) * d.takes
	if items[0] == "z" && d.lone {
		d.lone = false
		d.waited <- time.Since(d.put)
	}
	d.mu.Unlock()
	return nap(ctx, takes)
}

// slowDown changes the time that one item takes.
func (d *stream) slowDown(takes time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.takes = takes
}

func (d *stream) lastLimit() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.limits[len(d.limits)-1]
}

// typical returns the defaults of a task type.
func typical() engine.Settings {
	return engine.Settings{
		ThreadNumber: 5, FetchNumber: 500, ExecuteNumber: 1, SleepTimeNoData: 500 * time.Millisecond,
		Retry: time.Second, RetryMax: 5 * time.Minute, ItemMaxAttempts: 25,
	}
}

// A lone item does not wait for pages of fetch_number items of 15 other queues, however long an item takes.
func TestLoneItemWaitsForShortPages(t *testing.T) {
	for _, takes := range []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		t.Run(takes.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := newStream(takes)
				w.start(t, d, engine.Env{}, typical(), "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o",
					"z")
				for range 10 {
					time.Sleep(7 * time.Second)
					d.putLone()
					if waited := <-d.waited; waited > 8*time.Second { // three pages before it
						t.Errorf("the lone item waited %s, want at most 8s", waited)
					}
				}
			})
		})
	}
}

// A page whose items take much longer than expected gives way to a queue that waits, and its items come again.
func TestLongPageGivesWay(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newStream(time.Millisecond)
		s := typical()
		s.ThreadNumber, s.ExecuteNumber = 1, 1
		w.start(t, d, engine.Env{}, s, "a", "z")
		time.Sleep(10250 * time.Millisecond)
		d.slowDown(time.Second) // in the middle of a page, which takes half a second
		d.putLone()
		if waited := <-d.waited; waited > 5*time.Second {
			t.Errorf("the lone item waited %s for a page of slow items, want at most 5s", waited)
		}
		if n := w.Stats().SkipCount; n == 0 {
			t.Error("no item was dropped, want the rest of the long page")
		}
	})
}

// The size of a page follows the time per item, down and up again, between a batch per executor and fetch_number.
func TestPageSizeFollowsTheTimePerItem(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newStream(20 * time.Millisecond)
		w.start(t, d, engine.Env{}, typical(), "a")
		expect := func(after time.Duration, least, most int) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if n := d.lastLimit(); n < least || n > most {
				t.Errorf("the limit of a select is %d, want %d to %d", n, least, most)
			}
		}
		expect(10*time.Second, 240, 260) // 5 executors, 1 s
		d.slowDown(2 * time.Second)
		expect(5*time.Minute, 20, 20) // aloneBatches for each executor
		d.slowDown(time.Millisecond)
		expect(10*time.Second, 500, 500) // fetch_number
		d.slowDown(50 * time.Millisecond)
		expect(30*time.Second, 95, 110)
	})
}

// With a rate, a page is what the rate allows in a second, so that RetryAfter and other queues do not wait for more.
func TestPageSizeFollowsTheRate(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newStream(time.Millisecond)
		s := typical()
		s.RatePerSecond, s.ExecuteNumber = 20, 100
		w.start(t, d, engine.Env{}, s, "a", "z")
		time.Sleep(10 * time.Second)
		d.putLone()
		if waited := <-d.waited; waited > 3*time.Second {
			t.Errorf("the lone item waited %s, want at most 3s", waited)
		}
		if n := d.lastLimit(); n > 20 {
			t.Errorf("the limit of a select is %d at 20 items per second, want at most 20", n)
		}
	})
}

// retriedOnce is rows whose item a5 fails once and asks for another attempt after a second.
type retriedOnce struct {
	*rows
	failedAt, retriedAt time.Time
}

func (r *retriedOnce) Execute(ctx context.Context, items []string) error {
	switch {
	case items[0] != "a5":
	case r.failedAt.IsZero():
		r.failedAt = time.Now()
		return processor.RetryAfter(time.Second, errBroken)
	default:
		r.retriedAt = time.Now()
	}
	return r.rows.Execute(ctx, items)
}

// RetryAfter is kept although the queue has many other items and a rate.
func TestRetryAfterIsNotDelayedByALongPage(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := &retriedOnce{rows: newRows(w, numbered("a", 2000)...)}
		s := typical()
		s.RatePerSecond = 20
		w.start(t, r, engine.Env{}, s, "a")
		time.Sleep(time.Minute)
		synctest.Wait()
		if took := r.retriedAt.Sub(r.failedAt); r.retriedAt.IsZero() || took > 5*time.Second {
			t.Errorf("the item was retried after %s, want 1s to 5s", took)
		}
	})
}
