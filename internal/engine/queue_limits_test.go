package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// A queue executes queue_rate_per_second items per second, after a burst of one second. The other queues do not wait for
// it (X11).
func TestQueueRate(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		done := map[string]int{}
		var order []string
		d := &dealer{
			sel: func(_ context.Context, s processor.Selection) (page []string, _ error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				for i := range s.Limit { // other items with each select, or it would count as a call without effect
					page = append(page, fmt.Sprint(s.Queue.ID, done[s.Queue.ID]+i))
				}
				if s.Queue.ID == "b" && done["b"] > 0 {
					return nil, nil
				}
				return page, nil
			},
			exec: func(ctx context.Context, items []string) error {
				if err := nap(ctx, time.Millisecond); err != nil {
					return err
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				done[items[0][:1]] += len(items)
				order = append(order, items[0][:1])
				return nil
			},
		}
		s := settings()
		s.QueueRatePerSecond, s.FetchNumber, s.ExecuteNumber, s.ThreadNumber = 20, 500, 5, 1
		w.start(t, d, engine.Env{}, s, "a", "b")
		doneOf := func(q string) int {
			w.mu.Lock()
			defer w.mu.Unlock()
			return done[q]
		}
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		a, b := doneOf("a"), doneOf("b")
		w.mu.Lock()
		if a != 20 || b != 20 || slices.Index(order, "b") > 4 {
			t.Errorf("at once %d items of a and %d of b, in the order %v, want a burst of 20 each", a, b, order)
		}
		w.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := doneOf("a"); n < 20+19*60 || n > 20+20*60 {
			t.Errorf("%d items in a minute, want 20 per second after a burst of 20", n)
		}
		s.QueueRatePerSecond = 0.1
		if err := w.Configure(s); err != nil {
			t.Fatal(err)
		}
		before := doneOf("a")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := doneOf("a") - before; n < 29 || n > 32 {
			t.Errorf("%d items in five minutes, want one in ten seconds", n)
		}
	})
}

// The samples of an outage keep the rate of their queue (X11).
func TestQueueRateInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newBlocks(100_000)
		s := usual()
		s.QueueRatePerSecond, s.FetchNumber, s.ExecuteNumber = 5, 50, 5
		w.start(t, d, engine.Env{}, s, "a")
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if n := len(d.probes); n < 500 {
			t.Fatalf("%d items in three minutes, want nearly 5 per second", n)
		}
		for i, last := range d.probes[10:] {
			if took := last.Sub(d.probes[i]); took < 900*time.Millisecond {
				t.Fatalf("11 items within %s, want at most the burst of a second and those of the next one", took)
			}
		}
	})
}

// A queue has at most queue_max_in_flight batches in flight, whatever its page has (X11).
func TestQueueMaxInFlight(t *testing.T) {
	for _, notSleep := range []bool{false, true} {
		bubble(t, func(t *testing.T, w *world) {
			running, most := map[string]int{}, map[string]int{}
			r := newRows(w, slices.Concat(numbered("a", 40), numbered("b", 4))...)
			r.takes = time.Second
			d := countingRows{r, running, most}
			s := settings()
			s.QueueMaxInFlight, s.ThreadNumber, s.FetchNumber, s.NotSleep = 2, 6, 40, notSleep
			w.start(t, d, engine.Env{}, s, "a", "b")
			time.Sleep(1500 * time.Millisecond)
			w.mu.Lock()
			if most["a"] != 2 || most["b"] != 2 {
				t.Errorf("notsleep %t: at most %v batches in flight, want 2 of each queue", notSleep, most)
			}
			w.mu.Unlock()
			s.QueueMaxInFlight = 0
			if err := w.Configure(s); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			w.mu.Lock()
			defer w.mu.Unlock()
			if most["a"] != 6 || len(r.open) > 0 {
				t.Errorf("notsleep %t: at most %v in flight without a bound, and %d items left", notSleep, most, len(r.open))
			}
		})
	}
}

// The bounds of one queue are its own, and change while it is worked (X11).
func TestLimitsOfOneQueue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		running, most := map[string]int{}, map[string]int{}
		r := newRows(w, slices.Concat(numbered("a", 40), numbered("b", 40), numbered("c", 40))...)
		r.takes = time.Second
		s := settings()
		s.QueueMaxInFlight, s.QueueRatePerSecond, s.ThreadNumber, s.FetchNumber = 2, 1000, 9, 40
		w.start(t, countingRows{r, running, most}, engine.Env{}, s)
		for id, l := range map[string]processor.QueueLimits{"a": {MaxInFlight: 1}, "b": {MaxInFlight: -1}, "c": {RatePerSecond: 1}} {
			if err := w.Grant(processor.Queue{ID: id, Epoch: 1, Limits: l}, 3); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(4500 * time.Millisecond)
		w.mu.Lock()
		if most["a"] != 1 || most["b"] < 6 || most["c"] > 1 {
			t.Errorf("at most %v batches in flight, want 1 of a, the others of b, and 1 of c at a time", most)
		}
		w.mu.Unlock()
		w.SetLimits("a", processor.QueueLimits{})
		w.SetLimits("c", processor.QueueLimits{})
		time.Sleep(time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		if most["a"] != 2 || most["c"] != 2 || len(r.open) > 0 {
			t.Errorf("at most %v in flight with the bound of the settings, and %d items left", most, len(r.open))
		}
	})
}

// A queue that rests for a low rate, and may drain meanwhile, does not rest on when the rate rises (X11).
func TestRateThatRises(t *testing.T) {
	for _, drains := range []bool{false, true} {
		for name, rise := range map[string]func(*world) error{
			"limits": func(w *world) error {
				w.SetLimits("a", processor.QueueLimits{RatePerSecond: 1000})
				return nil
			},
			"settings": func(w *world) error { return w.Configure(settings()) },
		} {
			bubble(t, func(t *testing.T, w *world) {
				r := newRows(w, numbered("a", 40)...)
				s := settings()
				s.QueueRatePerSecond = 0.001
				w.start(t, r, engine.Env{}, s, "a")
				time.Sleep(10 * time.Second)
				if drains {
					w.Drain("a")
				}
				if err := rise(w); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				w.Resume("a")
				time.Sleep(10 * time.Second)
				r.mu.Lock()
				defer r.mu.Unlock()
				if len(r.open) > 0 {
					t.Errorf("%s, draining %t: %d of 40 items left", name, drains, len(r.open))
				}
			})
		}
	}
}

// A queue starts as many batches in its turn as its weight says (X11).
func TestWeightOfTurns(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var order []string
		d := &dealer{sel: func(ctx context.Context, s processor.Selection) ([]string, error) {
			if w.Stats().FetchCount > 1 {
				return nil, nil
			}
			return numbered(s.Queue.ID, 9), nap(ctx, time.Second)
		}}
		d.exec = func(ctx context.Context, items []string) error {
			w.mu.Lock()
			order = append(order, items[0][:1])
			w.mu.Unlock()
			return nap(ctx, time.Second)
		}
		s := settings()
		s.ThreadNumber, s.ExecuteNumber = 2, 1
		w.start(t, d, engine.Env{}, s)
		for id, weight := range map[string]int{"a": 3, "b": 0} {
			if err := w.Grant(processor.Queue{ID: id, Epoch: 1, Limits: processor.QueueLimits{Weight: weight}}, 2); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(6500 * time.Millisecond)
		w.mu.Lock()
		defer w.mu.Unlock()
		if a, b := strings.Count(strings.Join(order[:8], ""), "a"), strings.Count(strings.Join(order[:8], ""), "b"); a != 6 || b != 2 {
			t.Errorf("the first batches are of %v, want 6 of a and 2 of b", order[:8])
		}
	})
}

// countingRows counts the batches in flight.
type countingRows struct {
	*rows
	running, most map[string]int
}

func (c countingRows) Execute(ctx context.Context, items []string) error {
	q := items[0][:1]
	c.w.mu.Lock()
	c.running[q]++
	c.most[q] = max(c.most[q], c.running[q])
	c.w.mu.Unlock()
	defer func() {
		c.w.mu.Lock()
		c.running[q]--
		c.w.mu.Unlock()
	}()
	return c.rows.Execute(ctx, items)
}
