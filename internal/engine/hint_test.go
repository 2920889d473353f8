package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// X9: a hint makes the queues due that rest because they have found nothing.
func TestHint(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
		want []string
	}{
		{"ID", []string{"1"}, []string{"1"}},
		{"whole number", []string{"1001", "-2"}, []string{"1", "2"}},
		{"unknown", []string{"north", "1.5", "99999999999999999999"}, nil},
		{"twice", []string{"1", "5"}, []string{"1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				i := newInbox(w)
				w.start(t, i, engine.Env{}, settings())
				for n := range 4 {
					if err := w.Grant(processor.Queue{ID: fmt.Sprint(n), Index: n, Epoch: 1}, 4); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(1500 * time.Millisecond)
				w.expect(t, "0s select 0", "0s select 1", "0s select 2", "0s select 3", "1s peek [0 1 2 3]")
				w.Hint(c.keys...)
				var want []string
				for _, id := range c.want {
					want = append(want, "1.5s select "+id)
				}
				w.expect(t, want...)
			})
		})
	}
}

// X9 N3: after a split, queues have different totals.
func TestHintAfterASplit(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		w.start(t, &dealer{sel: i.Select, exec: i.Execute}, engine.Env{}, settings())
		for n, total := range map[int]int{0: 2, 1: 4, 3: 4} {
			if err := w.Grant(processor.Queue{ID: fmt.Sprint(n), Index: n, Epoch: 1}, total); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(500 * time.Millisecond)
		w.Hint("7", "6")
		w.expect(t, "0s select 0", "0s select 1", "0s select 3", "500ms select 0", "500ms select 3")
	})
}

// X9: without a key, one peek asks which of the idle queues have work, and all others are due.
func TestHintForAllQueues(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		w.start(t, i, engine.Env{}, settings(), "a", "b", "c")
		time.Sleep(1500 * time.Millisecond)
		w.expect(t, "0s select a", "0s select b", "0s select c", "1s peek [a b c]")
		i.arrive("b1")
		w.Hint()
		w.expect(t, "1.5s execute [b1]", "1.5s peek [a b c]", "1.5s select b", "1.5s select b")
	})
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		w.start(t, &dealer{sel: i.Select, exec: i.Execute}, engine.Env{}, settings(), "a", "b")
		time.Sleep(500 * time.Millisecond)
		w.Hint()
		w.expect(t, "0s select a", "0s select b", "500ms select a", "500ms select b")
	})
}

// X9: a hint that comes while the queue is selected, or peeked, is not lost: the snapshot of that may be too old.
func TestHintDuringASelect(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		d := &dealer{exec: i.Execute}
		d.sel = func(ctx context.Context, s processor.Selection) ([]string, error) {
			items, err := i.Select(ctx, s)
			time.Sleep(100 * time.Millisecond)
			return items, err
		}
		w.start(t, d, engine.Env{}, settings(), "a")
		time.Sleep(50 * time.Millisecond)
		i.arrive("a1")
		w.Hint("a")
		time.Sleep(200 * time.Millisecond)
		w.expect(t, "0s select a", "100ms select a", "200ms execute [a1]", "200ms select a")
	})
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		i.quiet = true
		i.peek = func(_ context.Context, idle []string) ([]string, error) {
			busy := i.busy(idle)
			time.Sleep(100 * time.Millisecond)
			return busy, nil
		}
		w.start(t, i, engine.Env{}, settings(), "a", "b")
		time.Sleep(1050 * time.Millisecond)
		i.arrive("a1")
		w.Hint()
		time.Sleep(200 * time.Millisecond)
		w.expect(t, "1.21s execute [a1]")
	})
}

// X9: however many hints come, a queue is selected each 10 ms at most.
func TestHintsAreJoined(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		i := newInbox(w)
		i.quiet = true
		s := settings()
		s.SleepTimeNoData = time.Hour
		w.start(t, i, engine.Env{}, s, "a", "b")
		time.Sleep(time.Second)
		for range 1000 {
			w.Hint("a")
			w.Hint()
			time.Sleep(time.Millisecond)
		}
		if n := i.selected("a"); n < 90 || n > 105 {
			t.Errorf("%d selects of a in a second of hints", n)
		}
		if n := i.peeked(); n > 105 {
			t.Errorf("%d peeks in a second of hints", n)
		}
	})
}

// X9: a hint shortens no pause after failures, no outage, and not the wait of a cursor.
func TestHintShortensNoPause(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, w *world, i *inbox){
		"a failed select": func(t *testing.T, w *world, i *inbox) {
			t.Helper()
			s := settings()
			s.Retry, s.RetryJitter = time.Minute, 0
			w.start(t, &dealer{exec: i.Execute, sel: func(ctx context.Context, s processor.Selection) ([]string, error) {
				_, _ = i.Select(ctx, s)
				return nil, errBroken
			}}, engine.Env{}, s, "a")
		},
		"sleep_time_interval": func(t *testing.T, w *world, i *inbox) {
			t.Helper()
			s := settings()
			s.SleepTimeInterval = time.Minute
			i.arrive("a1")
			w.start(t, i, engine.Env{}, s, "a")
		},
		"a cursor that waits": func(t *testing.T, w *world, i *inbox) {
			t.Helper()
			s := settings()
			s.Retry, s.RetryJitter = time.Minute, 0
			i.arrive("a1!")
			w.start(t, &cursoredInbox{keyedInbox{i}}, engine.Env{}, s, "a")
		},
		"an outage": func(t *testing.T, w *world, i *inbox) {
			t.Helper()
			s := settings()
			s.ProbeMax, s.SleepTimeNoData, s.Retry, s.RetryJitter = time.Hour, time.Hour, time.Minute, 0
			i.arrive("b1!", "b2!", "b3!", "b4!")
			w.start(t, &keyedInbox{i}, engine.Env{}, s, "a", "b")
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				i := newInbox(w)
				i.quiet = true
				start(t, w, i)
				time.Sleep(10 * time.Second)
				before := i.selected("a")
				w.Hint("a")
				w.Hint()
				time.Sleep(time.Second)
				if n := i.selected("a"); n != before || before == 0 {
					t.Errorf("%d selects of a, and %d after the hint", before, n)
				}
			})
		})
	}
}

// cursoredInbox is an inbox that is read in order.
type cursoredInbox struct{ keyedInbox }

func (cursoredInbox) Cursor(item string) string { return item }
