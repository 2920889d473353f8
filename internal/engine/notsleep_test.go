package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// keyed is a dealer whose items are their own keys.
type keyed struct{ dealer }

func (*keyed) Key(item string) string { return item }

func notSleep() engine.Settings {
	s := settings()
	s.NotSleep = true
	return s
}

// An item that is committed between the snapshot of a select and its return is not executed again (X1).
func TestNotSleepDropsItemsInFlightDuringTheSelect(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := 0
		d := &keyed{}
		d.sel = func(ctx context.Context, s processor.Selection) ([]string, error) {
			switch n++; n {
			case 1:
				return []string{"a1"}, nil
			case 2: // a1 is in flight now, and done when this select returns
				w.note("limit %d", s.Limit)
				return []string{"a1", "a2"}, nap(ctx, 2*time.Second)
			}
			return nil, nil
		}
		d.exec = func(ctx context.Context, items []string) error {
			w.note("%v", items)
			return nap(ctx, time.Second)
		}
		w.start(t, d, engine.Env{}, notSleep(), "a")
		time.Sleep(10 * time.Second)
		w.expect(t, "0s [a1]", "0s limit 11", "2s [a2]")
		if s := w.Stats(); s.SkipCount != 1 || s.SuccessCount != 2 || s.InFlight != 0 {
			t.Errorf("stats: %+v, want SkipCount 1, SuccessCount 2, InFlight 0", s)
		}
	})
}

// A lane is selected as soon as all its items are started, and rests if the select returns nothing new.
func TestNotSleepSelectsWhileOthersExecute(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 7)...)
		r.takes = 10 * time.Second
		s := notSleep()
		s.FetchNumber, s.SleepTimeNoData, s.SleepTimeInterval = 3, 4*time.Second, time.Second
		s.ThreadNumber = 5
		w.start(t, r, engine.Env{}, s, "a")
		time.Sleep(11 * time.Second)
		w.expect(t, "0s [a0 a1]", "0s [a2]", "1s [a3 a4]", "1s [a5]", "2s [a6]")
		if want := []int{3, 6, 9}; !slices.Equal(r.limits[:3], want) {
			t.Errorf("limits %v, want %v", r.limits, want)
		}
	})
}

// An item that fails when its queue rests already is retried after its own pause, not after that of the queue.
func TestNotSleepRetriesAfterThePauseOfTheItem(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1")
		r.bad["a1"], r.takes = errBroken, 100*time.Millisecond
		s := limited()
		s.NotSleep, s.SleepTimeNoData, s.RetryJitter = true, 30*time.Second, 0
		w.start(t, r, engine.Env{}, s, "a")
		time.Sleep(20 * time.Second)
		w.expect(t, "0s [a1]", "1.1s [a1]", "3.2s [a1]")
	})
}

func TestNotSleepRestsWithoutNewItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1", "a2")
		r.takes = time.Minute
		s := notSleep()
		s.SleepTimeNoData = 5 * time.Second
		w.start(t, r, engine.Env{}, s, "a")
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if n := w.Stats().FetchCount; n != 8 { // 0, 0, 5, 10, ... 30 s
			t.Errorf("%d selects, want 8", n)
		}
		if !w.holding(t, "a").EmptySince.IsZero() {
			t.Error("a queue with items in flight counts as empty")
		}
		w.Drain("a")
		if h := w.holding(t, "a"); h.Drained || h.InFlight != 1 {
			t.Errorf("holding: %+v, want no Drained, InFlight 1", h)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !w.holding(t, "a").Drained {
			t.Error("the queue is not drained")
		}
	})
}

// If the mode changes to SLEEP while batches run, the next select waits for their end.
func TestConfigureMode(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1", "a2")
		r.takes = time.Minute
		w.start(t, r, engine.Env{}, settings(), "a")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := w.Stats().FetchCount; n != 1 {
			t.Errorf("%d selects in SLEEP, want 1", n)
		}
		if err := w.Configure(notSleep()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9500 * time.Millisecond)
		synctest.Wait()
		if n := w.Stats().FetchCount; n != 11 {
			t.Errorf("%d selects in NOTSLEEP, want 10", n-1)
		}
		if err := w.Configure(settings()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := w.Stats().FetchCount; n != 11 {
			t.Errorf("%d selects in SLEEP again, want 0", n-11)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := w.Stats().FetchCount; n <= 11 {
			t.Error("the queue is not selected any more")
		}
	})
}
