package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// Without trust nothing starts, unstarted items are dropped, and Trusted is not called again until there is a reason.
func TestNothingStartsWithoutTrust(t *testing.T) {
	for name, wake := range map[string]func(*world){
		"wake":   func(w *world) { w.Wake() },
		"grant":  func(w *world) { _ = w.Grant(processor.Queue{ID: fmt.Sprint(len(w.Queues()))}, 1) },
		"resume": func(w *world) { w.Drain("b"); w.Resume("b") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var no atomic.Bool
				var asked atomic.Int32
				env := engine.Env{Trusted: func() bool { asked.Add(1); return !no.Load() }}
				s := settings()
				s.ThreadNumber = 1
				w.start(t, slow(w, "a"), env, s, "a", "b")
				synctest.Wait()
				no.Store(true)
				time.Sleep(time.Hour)
				w.expect(t, "0s [a1 a2]")
				if n := asked.Load(); n != 3 { // the select of a, a batch, the next batch
					t.Errorf("Trusted was called %d times, want 3", n)
				}
				if s := w.Stats(); s.SkipCount != 3 || s.FetchCount != 1 || s.InFlight != 0 {
					t.Errorf("stats: %+v, want SkipCount 3, FetchCount 1, InFlight 0", s)
				}
				wake(w) // too early: it asks once, and sleeps again
				time.Sleep(time.Hour)
				if n := asked.Load(); n != 4 {
					t.Errorf("Trusted was called %d times, want 4", n)
				}
				no.Store(false)
				wake(w)
				synctest.Wait()
				if s := w.Stats(); s.FetchCount < 3 {
					t.Errorf("stats after wake: %+v, want FetchCount at least 3", s)
				}
			})
		})
	}
}

// A Wake between the answer of Trusted and the end of the call is not lost.
func TestWakeIsNotLost(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		answers := []bool{false}
		env := engine.Env{Trusted: func() bool {
			if len(answers) == 0 {
				return true
			}
			answers = answers[1:]
			w.Wake()
			return false
		}}
		s := settings()
		s.ThreadNumber = 1
		w.start(t, slow(w, "a"), env, s, "a")
		time.Sleep(10 * time.Second)
		if n := w.Stats().SuccessCount; n != 5 {
			t.Errorf("%d items executed, want 5", n)
		}
	})
}

type key struct{}

// bind puts the queue of a batch into its context, as the manager does for the fence.
func bind(ctx context.Context, q processor.Queue, _ *string) context.Context {
	return context.WithValue(ctx, key{}, q)
}

// bound returns the queue in a context: "a:7" is queue a under epoch 7.
func bound(ctx context.Context) string {
	q, ok := ctx.Value(key{}).(processor.Queue)
	if !ok {
		return ""
	}
	return fmt.Sprint(q.ID, ":", q.Epoch)
}

func TestContextCarriesTheQueueOfTheBatch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := slow(w, "a", "b")
		d.exec = func(ctx context.Context, items []string) error {
			w.note("%v %v", items, bound(ctx))
			return nil
		}
		w.start(t, d, engine.Env{Bind: bind}, settings(), "a")
		if err := w.Grant(processor.Queue{ID: "b", Epoch: 9}, 2); err != nil {
			t.Fatal(err)
		}
		w.expect(t, "0s [a1 a2] a:7", "0s [a3 a4] a:7", "0s [a5] a:7",
			"0s [b1 b2] b:9", "0s [b3 b4] b:9", "0s [b5] b:9")
	})
}

// A due lane is selected before the next batch of a long page, so that a long page does not delay other queues.
func TestLongPageDoesNotDelaySelects(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, append(numbered("a", 100), "b0", "c0")...)
		r.takes = time.Second
		s := settings()
		s.ThreadNumber, s.FetchNumber, s.ExecuteNumber = 2, 100, 1
		w.start(t, r, engine.Env{}, s, "a")
		time.Sleep(1500 * time.Millisecond)
		w.grant(t, "b", "c")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		text := w.text()
		for _, item := range []string{"b0", "c0"} {
			if !strings.Contains(text, item) {
				t.Errorf("%s waits for the page of another queue:\n%s", item, text)
			}
		}
	})
}

// Many empty lanes that are often due still leave executors to the batches of a page.
func TestEmptyLanesLeaveExecutorsToPages(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{sel: func(ctx context.Context, s processor.Selection) ([]string, error) {
			if s.Queue.ID == "a" {
				return numbered("a", 10), nil
			}
			return nil, nap(ctx, 100*time.Millisecond)
		}}
		d.exec = func(ctx context.Context, _ []string) error { return nap(ctx, 100*time.Millisecond) }
		s := settings()
		s.ThreadNumber, s.SleepTimeNoData = 2, time.Millisecond
		w.start(t, d, engine.Env{}, s, "a", "b", "c", "d", "e", "f", "g", "h")
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.Stats().SuccessCount; n < 500 {
			t.Errorf("only %d items in a minute, want at least 500", n)
		}
	})
}

// Lanes that always have work take turns, and a lane that becomes due in the meantime is not skipped.
func TestLanesTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var order []string
		d := &dealer{sel: func(_ context.Context, s processor.Selection) ([]string, error) {
			order = append(order, s.Queue.ID)
			if s.Queue.ID == "d" {
				return nil, nil
			}
			return []string{s.Queue.ID + "1"}, nil
		}}
		d.exec = func(ctx context.Context, _ []string) error { return nap(ctx, 300*time.Millisecond) }
		s := settings()
		s.ThreadNumber = 1
		w.start(t, d, engine.Env{}, s, "a", "b", "c", "d")
		time.Sleep(3 * time.Second)
		w.stop()
		// d rests from 0.9 s to 1.9 s. At that time b and c have been due for longer. a ends at 2.1 s and is due later.
		if got := strings.Join(order, ""); !strings.HasPrefix(got, "abcdabcabcda") {
			t.Errorf("order of selects: %s, want abcdabcabcda first", got)
		}
	})
}

// Pages that are ready at the same time give their batches in turn.
func TestPagesGiveBatchesInTurn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{sel: func(ctx context.Context, s processor.Selection) ([]string, error) {
			if w.Stats().FetchCount > 1 {
				return nil, nil
			}
			id := s.Queue.ID
			return []string{id + "1", id + "2", id + "3"}, nap(ctx, time.Second)
		}}
		d.exec = func(ctx context.Context, items []string) error {
			w.note("%s", items[0][:1])
			return nap(ctx, time.Second)
		}
		s := settings()
		s.ThreadNumber, s.ExecuteNumber = 2, 1
		w.start(t, d, engine.Env{}, s, "a", "b")
		time.Sleep(4 * time.Second)
		w.expect(t, "1s a", "1s b", "2s a", "2s b", "3s a", "3s b")
	})
}

// A page with batches left gets its turn, although the other pages have one batch each and are replaced all the time
// (X11). A turn also ends with a page of fewer batches than the weight of its queue.
func TestPageOfTwoBatchesGetsItsTurn(t *testing.T) {
	for _, weight := range []int{1, 2} {
		t.Run(fmt.Sprintf("weight %d", weight), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) { pageOfTwoBatchesGetsItsTurn(t, w, weight) })
		})
	}
}

// pageOfTwoBatchesGetsItsTurn expects that the second batch of the pages of queue a is executed beside queues of a
// weight.
func pageOfTwoBatchesGetsItsTurn(t *testing.T, w *world, weight int) {
	d := &dealer{sel: func(_ context.Context, s processor.Selection) ([]string, error) {
		id := s.Queue.ID
		if id == "a" {
			return []string{id + "1", id + "2", id + "3"}, nil
		}
		return []string{id + "1", id + "2"}, nil
	}}
	last := 0
	d.exec = func(ctx context.Context, items []string) error {
		w.mu.Lock()
		if items[0] == "a3" {
			last++
		}
		w.mu.Unlock()
		return nap(ctx, 10*time.Millisecond)
	}
	s := settings()
	s.ThreadNumber, s.ExecuteNumber, s.RatePerSecond = 5, 2, 10
	w.start(t, d, engine.Env{}, s, "a", "b", "c", "d", "e", "f")
	for _, id := range []string{"b", "c", "d", "e", "f"} {
		w.SetLimits(id, processor.QueueLimits{Weight: weight})
	}
	time.Sleep(time.Minute)
	w.mu.Lock()
	defer w.mu.Unlock()
	if last < 10 {
		t.Errorf("the second batch of queue a was executed %d times in a minute", last)
	}
}

func TestAtMostThreadNumberCalls(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var now, most atomic.Int32
		busy := func(ctx context.Context) error {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				continue
			}
			return nap(ctx, time.Second)
		}
		d := &dealer{
			sel: func(ctx context.Context, _ processor.Selection) ([]string, error) {
				return []string{"1", "2", "3", "4", "5"}, busy(ctx)
			},
			exec: func(ctx context.Context, _ []string) error { return busy(ctx) },
		}
		s := settings()
		s.ThreadNumber = 3
		w.start(t, d, engine.Env{}, s, "a", "b", "c", "d", "e")
		time.Sleep(time.Minute)
		w.stop()
		if most.Load() != 3 {
			t.Errorf("%d calls at once, want 3", most.Load())
		}
		if n := w.Stats().SuccessCount; n < 200 { // 3 executors, 60 s, 1 select for 3 batches with 5 items
			t.Errorf("%d items: executors idle while there is work, want at least 200", n)
		}
	})
}
