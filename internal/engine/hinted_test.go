package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// hintedWorld starts the processor of a dealer whose writers send hints, with the queues a and b.
func hintedWorld(t *testing.T, w *world, d processor.TaskDealer[string], env engine.Env) (hears *atomic.Bool) {
	t.Helper()
	hears = new(atomic.Bool)
	hears.Store(true)
	env.Hears = hears.Load
	s := settings()
	s.Hinted = true
	w.start(t, d, env, s, "a", "b")
	return hears
}

// X9: while the process hears hints, empty queues are looked at once in 30 s, whether or not the dealer peeks. While it
// hears none, they are looked at as often as without them.
func TestHintedQueuesArePolledAsANet(t *testing.T) {
	for name, peeks := range map[string]bool{"peeks": true, "selects": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				i := newInbox(w)
				i.quiet, i.peek = true, func(_ context.Context, idle []string) ([]string, error) { return i.busy(idle), nil }
				var d processor.TaskDealer[string] = i
				if !peeks {
					d = &dealer{sel: i.Select, exec: i.Execute}
				}
				hears := hintedWorld(t, w, d, engine.Env{})
				looks := func() int { return i.peeked() + i.selected("a") }
				time.Sleep(time.Second)
				before := looks()
				time.Sleep(5 * time.Minute)
				if n := looks() - before; n < 5 || n > 25 {
					t.Errorf("%d looks in five minutes with hints", n)
				}
				i.arrive("a1")
				w.Hint("a")
				time.Sleep(100 * time.Millisecond)
				if len(i.busy([]string{"a"})) > 0 {
					t.Error("an item with a hint waits")
				}
				hears.Store(false)
				w.Hint()
				time.Sleep(5 * time.Second)
				i.arrive("a2")
				time.Sleep(3 * time.Second)
				if len(i.busy([]string{"a"})) > 0 {
					t.Error("an item of a deaf process waits for longer than two intervals")
				}
			})
		})
	}
}

// X9: items that come without a hint raise an alert, and items with hints raise none.
func TestUnhintedItemsRaiseAnAlert(t *testing.T) {
	for _, c := range []struct{ hints, peeks bool }{{true, true}, {false, true}, {true, false}, {false, false}} {
		t.Run(fmt.Sprintf("hints %t peeks %t", c.hints, c.peeks), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var alerts atomic.Int32
				i := newInbox(w)
				i.quiet, i.peek = true, func(_ context.Context, idle []string) ([]string, error) { return i.busy(idle), nil }
				var d processor.TaskDealer[string] = i
				if !c.peeks {
					d = &dealer{sel: i.Select, exec: i.Execute}
				}
				hintedWorld(t, w, d, engine.Env{Alert: func(a engine.Alert) {
					if a.Kind == engine.AlertUnhinted {
						alerts.Add(1)
					}
				}})
				for range 10 {
					time.Sleep(20 * time.Second) // a peek comes before the poll
					i.arrive("a1")
					if c.hints && c.peeks {
						w.Hint() // which a peek follows
					} else if c.hints {
						w.Hint("a")
					}
				}
				time.Sleep(time.Minute)
				if told := alerts.Load() > 0; told == c.hints {
					t.Errorf("%d alerts", alerts.Load())
				}
			})
		})
	}
}

// X9: a hint for all queues that comes while the process may select nothing counts when it may again.
func TestAHintThatComesWhileNothingMayBeSelected(t *testing.T) {
	for name, c := range map[string]struct{ stop, goOn func(*world, *atomic.Bool) }{
		"no share of max_in_flight": {
			func(w *world, _ *atomic.Bool) { w.SetMaxInFlight(0) }, func(w *world, _ *atomic.Bool) { w.SetMaxInFlight(4) },
		},
		"no trust": {
			func(_ *world, trusted *atomic.Bool) { trusted.Store(false) },
			func(w *world, trusted *atomic.Bool) { trusted.Store(true); w.Wake() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var trusted atomic.Bool
				trusted.Store(true)
				i := newInbox(w)
				i.quiet, i.peek = true, func(_ context.Context, idle []string) ([]string, error) { return i.busy(idle), nil }
				hintedWorld(t, w, i, engine.Env{Trusted: trusted.Load})
				time.Sleep(5 * time.Second)
				c.stop(w, &trusted)
				i.arrive("a1")
				w.Hint()
				time.Sleep(time.Second)
				c.goOn(w, &trusted)
				time.Sleep(time.Second)
				if len(i.busy([]string{"a"})) > 0 {
					t.Error("an item with a hint waits a second after the process may select again")
				}
			})
		})
	}
}

// X9: a hint for all queues whose peek hangs, or waits for those of other task types, is followed by selects as soon as
// without hints, and they are no reason for UNHINTED.
func TestAHintWhosePeekHangs(t *testing.T) {
	for name, hint := range map[string]func(w *world, i *inbox, hold func()){
		"alone": func(w *world, i *inbox, hold func()) {
			hold()
			i.arrive("a1")
			w.Hint()
		},
		"after one that has read too early": func(w *world, i *inbox, hold func()) {
			w.Hint()
			time.Sleep(time.Second / 2)
			i.arrive("a1")
			w.Hint()
			hold()
		},
		"after one that hangs": func(w *world, i *inbox, hold func()) {
			hold()
			time.Sleep(35 * time.Second)
			i.arrive("a1")
			w.Hint()
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var alerts atomic.Int32
				i, peeking := newInbox(w), make(chan struct{}, 1)
				i.quiet, i.peek = true, func(_ context.Context, idle []string) ([]string, error) {
					busy := i.busy(idle)
					time.Sleep(time.Second)
					return busy, nil
				}
				hintedWorld(t, w, i, engine.Env{Peeking: peeking, Alert: func(engine.Alert) { alerts.Add(1) }})
				for range 10 {
					time.Sleep(time.Minute)
					synctest.Wait()
					hint(w, i, func() { peeking <- struct{}{} }) // a peek of another task type
					time.Sleep(5 * time.Second)
					if len(i.busy([]string{"a"})) > 0 {
						t.Error("an item with a hint has waited for five seconds")
					}
					<-peeking
				}
				if n := alerts.Load(); n > 0 {
					t.Errorf("%d alerts", n)
				}
			})
		})
	}
}
