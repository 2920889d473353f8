package processor_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/processor"
)

// Without trust nothing starts, unstarted items are dropped, and nobody asks again before there is a reason to.
func TestNothingStartsWithoutTrust(t *testing.T) {
	for name, wake := range map[string]func(*world){
		"wake":   func(w *world) { w.Wake() },
		"grant":  func(w *world) { _ = w.Grant(processor.Queue{ID: fmt.Sprint(len(w.Held()))}, 1) },
		"resume": func(w *world) { w.Drain("b"); w.Resume("b") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var no atomic.Bool
				var asked atomic.Int32
				env := processor.Env{Trusted: func() bool { asked.Add(1); return !no.Load() }}
				s := settings()
				s.ThreadNumber = 1
				w.start(t, slow(w, "a"), env, s, "a", "b")
				synctest.Wait()
				no.Store(true)
				time.Sleep(time.Hour)
				w.expect(t, "0s [a1 a2]")
				if n := asked.Load(); n != 3 { // select a, a batch, the next batch
					t.Errorf("asked %d times", n)
				}
				if s := w.Stats(); s.SkipCount != 3 || s.FetchCount != 1 || s.InHand != 0 {
					t.Errorf("stats: %+v", s)
				}
				wake(w) // too early: asks once, and sleeps again
				time.Sleep(time.Hour)
				if n := asked.Load(); n != 4 {
					t.Errorf("asked %d times", n)
				}
				no.Store(false)
				wake(w)
				synctest.Wait()
				if s := w.Stats(); s.FetchCount < 3 {
					t.Errorf("stats after wake: %+v", s)
				}
			})
		})
	}
}

// Trust that comes back between the answer of Trusted and its being booked is not overlooked.
func TestWakeIsNotLost(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		answers := []bool{false}
		env := processor.Env{Trusted: func() bool {
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
			t.Errorf("%d items executed", n)
		}
	})
}

type key struct{}

// bind puts the queues of a batch into its context, as the manager does for the fence.
func bind(ctx context.Context, queues []processor.Queue, _ *string) context.Context {
	return context.WithValue(ctx, key{}, queues)
}

// bound tells the queues in a context: "a:7" is queue a under epoch 7.
func bound(ctx context.Context) (names []string) {
	queues, _ := ctx.Value(key{}).([]processor.Queue)
	for _, q := range queues {
		names = append(names, fmt.Sprint(q.ID, ":", q.Epoch))
	}
	slices.Sort(names)
	return names
}

func TestContextCarriesTheQueueOfTheBatch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := slow(w, "a", "b")
		d.exec = func(ctx context.Context, items []string) error {
			w.note("%v %v", items, bound(ctx))
			return nil
		}
		w.start(t, d, processor.Env{Bind: bind}, settings(), "a")
		if err := w.Grant(processor.Queue{ID: "b", Epoch: 9}, 2); err != nil {
			t.Fatal(err)
		}
		w.expect(t, "0s [a1 a2] [a:7]", "0s [a3 a4] [a:7]", "0s [a5] [a:7]",
			"0s [b1 b2] [b:9]", "0s [b3 b4] [b:9]", "0s [b5] [b:9]")
	})
}
