package processor_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/processor"
)

// keyed is a dealer of functions whose items are their own keys.
type keyed struct{ dealer }

func (*keyed) Key(item string) string { return item }

func notSleep() processor.Settings {
	s := settings()
	s.NotSleep = true
	return s
}

// An item that ends, and commits, between the snapshot of a select and its return is not executed again (X1).
func TestNotSleepDropsWhatWasInHandDuringTheSelect(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := 0
		d := &keyed{}
		d.sel = func(ctx context.Context, s processor.Selection) ([]string, error) {
			switch n++; n {
			case 1:
				return []string{"a1"}, nil
			case 2: // a1 is in hand now, and done when this returns
				w.note("limit %d", s.Limit)
				return []string{"a1", "a2"}, nap(ctx, 2*time.Second)
			}
			return nil, nil
		}
		d.exec = func(ctx context.Context, items []string) error {
			w.note("%v", items)
			return nap(ctx, time.Second)
		}
		w.start(t, d, processor.Env{}, notSleep(), "a")
		time.Sleep(10 * time.Second)
		w.expect(t, "0s [a1]", "0s limit 11", "2s [a2]")
		if s := w.Stats(); s.SkipCount != 1 || s.SuccessCount != 2 || s.InHand != 0 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// A lane is selected as soon as all its items are started, and rests when that brings nothing new.
func TestNotSleepSelectsWhileOthersExecute(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 7)...)
		r.takes = 10 * time.Second
		s := notSleep()
		s.FetchNumber, s.SleepTimeNoData, s.SleepTimeInterval = 3, 4*time.Second, time.Second
		s.ThreadNumber = 5
		w.start(t, r, processor.Env{}, s, "a")
		time.Sleep(11 * time.Second)
		w.expect(t, "0s [a0 a1]", "0s [a2]", "1s [a3 a4]", "1s [a5]", "2s [a6]")
		if want := []int{3, 6, 9}; !slices.Equal(r.limits[:3], want) {
			t.Errorf("limits %v, want %v", r.limits, want)
		}
	})
}

func TestNotSleepRestsWithoutNewItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1", "a2")
		r.takes = time.Minute
		s := notSleep()
		s.SleepTimeNoData = 5 * time.Second
		w.start(t, r, processor.Env{}, s, "a")
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if n := w.Stats().FetchCount; n != 8 { // 0, 0, 5, 10, ... 30 s
			t.Errorf("%d selects", n)
		}
		if !w.holding(t, "a").EmptySince.IsZero() {
			t.Error("a queue with items in hand counts as empty")
		}
		w.Drain("a")
		if h := w.holding(t, "a"); h.Drained || h.InHand != 1 {
			t.Errorf("holding: %+v", h)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !w.holding(t, "a").Drained {
			t.Error("not drained")
		}
	})
}

// The mode changes while batches run: back in SLEEP nothing is selected before they have ended.
func TestConfigureMode(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1", "a2")
		r.takes = time.Minute
		w.start(t, r, processor.Env{}, settings(), "a")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := w.Stats().FetchCount; n != 1 {
			t.Errorf("%d selects in SLEEP", n)
		}
		if err := w.Configure(notSleep()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9500 * time.Millisecond)
		synctest.Wait()
		if n := w.Stats().FetchCount; n != 11 {
			t.Errorf("%d selects in NOTSLEEP", n-1)
		}
		if err := w.Configure(settings()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := w.Stats().FetchCount; n != 11 {
			t.Errorf("%d selects in SLEEP again", n-11)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := w.Stats().FetchCount; n <= 11 {
			t.Error("not selected any more")
		}
	})
}

// plainCursored and others have powers that do not go together.
type (
	plainDiscarder struct{ dealer }
	setCursored    struct{ setDealer }
	keyedCursored  struct{ rows }
)

func (*setCursored) Cursor(item string) string                       { return item }
func (*keyedCursored) Cursor(item string) string                     { return item }
func (*plainDiscarder) Discard(context.Context, string, error) error { return nil }

func TestPowersThatDoNotGoTogether(t *testing.T) {
	for _, c := range []struct {
		dealer   processor.TaskDealer[string]
		notSleep bool
		want     string
	}{
		{&dealer{}, true, "NOTSLEEP) needs a dealer that is Keyed"},
		{&keyedCursored{}, true, "NOTSLEEP) must be SLEEP for a dealer that is Cursored"},
		{&setCursored{}, false, "Cursored must not be a SetSelector"},
		{&plainDiscarder{}, false, "Discarder must be Keyed"},
	} {
		s := settings()
		s.NotSleep = c.notSleep
		_, err := processor.New(c.dealer, processor.Env{TaskType: "settle"}, s)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %s", err, c.want)
		}
		p, err := processor.New(c.dealer, processor.Env{}, settings())
		if !c.notSleep {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Configure(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Configure: %v", err)
		}
	}
}

// A lane that is due is selected before the next batch of a long page, so that no page keeps the others waiting (9).
func TestLongPageDoesNotKeepOthersFromBeingSelected(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, append(numbered("a", 100), "b0", "c0")...)
		r.takes = time.Second
		s := settings()
		s.ThreadNumber, s.FetchNumber, s.ExecuteNumber = 2, 100, 1
		w.start(t, r, processor.Env{}, s, "a")
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

// Lanes that have nothing, however many and however often they are due, leave the executors to a page in between.
func TestEmptyLanesLeaveTimeForPages(t *testing.T) {
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
		w.start(t, d, processor.Env{}, s, "a", "b", "c", "d", "e", "f", "g", "h")
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.Stats().SuccessCount; n < 500 {
			t.Errorf("only %d items in a minute", n)
		}
	})
}
