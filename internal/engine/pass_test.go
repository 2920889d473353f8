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

// shelf is rows as a Paged dealer. Its items are in the order of their names.
type shelf struct {
	*rows
	selectTakes time.Duration
	ignores     bool // Select ignores Selection.After
	afters      []string
}

func newShelf(w *world, n int) *shelf { return &shelf{rows: newRows(w, ordered("a", n)...)} }

// ordered returns n items of a queue whose names are in order.
func ordered(queue string, n int) (items []string) {
	for i := range n {
		items = append(items, fmt.Sprintf("%s%06d", queue, i))
	}
	return items
}

func (*shelf) Position(item string) string { return item }

func (s *shelf) Select(_ context.Context, sel processor.Selection) (page []string, err error) {
	time.Sleep(s.selectTakes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits, s.afters = append(s.limits, sel.Limit), append(s.afters, sel.After)
	slices.Sort(s.open)
	for _, item := range s.open {
		if item[:1] == sel.Queue.ID && (s.ignores || item > sel.After) && len(page) < sel.Limit {
			page = append(page, item)
		}
	}
	return page, nil
}

// insert adds an item.
func (s *shelf) insert(item string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, item)
}

// left returns the items that are open, without those in the given list.
func (s *shelf) left(without []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.open), func(item string) bool { return slices.Contains(without, item) })
}

// dead makes a store in which items are dead.
func dead(items ...string) failedItems {
	m := newMemory()
	for _, item := range items {
		m.items[item] = engine.FailedItem{Key: item, Attempts: 3, Dead: true}
	}
	return failedItems{m}
}

// small returns settings whose selects return at most 20 items.
func small() engine.Settings {
	s := settings()
	s.FetchNumber, s.ItemMaxAttempts = 2, 3
	return s
}

// With many times as many dead items as a select returns, the healthy items behind them are executed at once (X2).
func TestItemsBehindDeadItems(t *testing.T) {
	for _, notSleep := range []bool{false, true} {
		bubble(t, func(t *testing.T, w *world) {
			d := newShelf(w, 250)
			parked := slices.Clone(d.open[:200])
			var alerts []engine.Alert
			s := small()
			s.NotSleep, s.SleepTimeNoData = notSleep, time.Hour
			w.start(t, d, engine.Env{Items: dead(parked...), Alert: func(a engine.Alert) { alerts = append(alerts, a) }},
				s, "a")
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if left := d.left(parked); len(left) > 0 || len(alerts) > 0 {
				t.Errorf("left: %v, alerts %v, want none\nselects behind %v", left, alerts, d.afters)
			}
			// a pass that began beside items in flight proves nothing; the next follows after a pause
			time.Sleep(10 * time.Second)
			if w.holding(t, "a").EmptySince.IsZero() {
				t.Error("the queue does not count as empty")
			}
		})
	}
}

// The dead items at the head of the page on which a pass ends are selected once, and not again with each select (X2).
func TestDeadItemsAtTheHeadAreSelectedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newShelf(w, 295)
		parked := slices.Clone(d.open[:195])
		d.selectTakes = 10 * time.Millisecond
		w.start(t, d, engine.Env{Items: dead(parked...)}, small(), "a")
		time.Sleep(time.Second)
		synctest.Wait()
		if left, n := d.left(parked), w.Stats().FetchItemCount; len(left) > 0 || n > 350 {
			t.Errorf("left: %v, %d items were selected, want none, and 350 at most\nselects behind %v", left, n, d.afters)
		}
	})
}

// Items that back off ahead of the position are found by the next pass.
func TestItemsThatBackOffBehindDeadItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newShelf(w, 202)
		parked := slices.Clone(d.open[:200])
		store := dead(parked...)
		store.items[parked[0]] = engine.FailedItem{Key: parked[0], Attempts: 1, RetryIn: 10 * time.Second}
		d.bad[d.open[201]] = errBroken
		s := small()
		s.SleepTimeNoData = time.Hour
		w.start(t, d, engine.Env{Items: store}, s, "a")
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if left := d.left(parked[1:]); len(left) > 1 || d.fails[left[0]] != 3 {
			t.Errorf("left: %v, failed alone %v, want one that failed 3 times", left, d.fails)
		}
		if text := w.text(); !strings.Contains(text, "10s ["+parked[0]+"]") {
			t.Errorf("journal: %s, want %s after 10 s", text, parked[0])
		}
	})
}

// An item that is inserted ahead of the dead items is executed, while new items at the end come without pause.
func TestItemAheadOfThePosition(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newShelf(w, 200)
		parked := slices.Clone(d.open)
		d.selectTakes = 10 * time.Millisecond
		for i := range 1000 {
			d.open = append(d.open, fmt.Sprintf("a9%05d", i))
		}
		d.takes = 100 * time.Millisecond
		w.start(t, d, engine.Env{Items: dead(parked...)}, small(), "a")
		time.Sleep(time.Second)
		d.insert("a0")
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if left := d.left(parked); slices.Contains(left, "a0") || len(left) < 100 {
			t.Errorf("%d left, want many, and not a0", len(left))
		}
	})
}

// Selects over items that are all dead take a small part of the time, and find what is new.
func TestPassesOverDeadItemsAreRare(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newShelf(w, 200)
		parked := slices.Clone(d.open)
		d.selectTakes = 100 * time.Millisecond
		w.start(t, d, engine.Env{Items: dead(parked...)}, small(), "a")
		time.Sleep(time.Minute)
		synctest.Wait()
		passes := 0
		for _, after := range d.afters {
			if after == "" {
				passes++
			}
		}
		if passes < 2 || passes > 4 || len(d.afters) > 100 {
			t.Errorf("%d selects in %d passes, want 100 at most in 2 to 4", len(d.afters), passes)
		}
		d.insert("a0")
		d.insert("b")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if left := d.left(parked); !slices.Equal(left, []string{"b"}) {
			t.Errorf("left: %v, want b of another queue", left)
		}
	})
}

// A sweep passes more failed items than a select returns, and is complete when a whole pass has found nothing (R9).
func TestSweepBehindFailedItems(t *testing.T) {
	for _, notSleep := range []bool{false, true} {
		bubble(t, func(t *testing.T, w *world) {
			d := newShelf(w, 200)
			for _, item := range d.open[:150] {
				d.bad[item] = errBroken
			}
			s := small()
			s.NotSleep, s.SleepTimeNoData = notSleep, time.Hour
			w.sweep(t, d, engine.Env{}, s, "a")
			w.swept(t, "a", 50, 150)
			for item, n := range d.fails {
				if n != 1 {
					t.Errorf("%s was executed %d times, want 1", item, n)
				}
			}
			if len(d.limits) > 400 {
				t.Errorf("%d selects, want fewer", len(d.limits))
			}
		})
	}
}

// The processor sends one alert about a dealer that ignores Selection.After, and does not select it in a loop.
func TestIgnoredAfterRaisesOneAlert(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newShelf(w, 200)
		d.ignores = true
		var alerts []engine.Alert
		w.start(t, d, engine.Env{Items: dead(d.open...), Alert: func(a engine.Alert) { alerts = append(alerts, a) }},
			small(), "a")
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(alerts) != 1 || !strings.Contains(alerts[0].Text, "Select ignores Selection.After") || len(d.limits) > 130 {
			t.Errorf("%d selects, alerts %v, want 130 at most and one", len(d.limits), alerts)
		}
	})
	bubble(t, func(t *testing.T, w *world) {
		d := newShelf(w, 200)
		d.ignores = true
		for _, item := range d.open {
			d.bad[item] = errBroken
		}
		w.sweep(t, d, engine.Env{}, small(), "a")
		w.failedWith(t, "a", "no progress")
	})
}

// Reload begins a new pass, so that an item that an operator retries is found at once.
func TestReloadBeginsANewPass(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newShelf(w, 200)
		parked := slices.Clone(d.open)
		d.selectTakes = time.Second
		store := dead(parked...)
		w.start(t, d, engine.Env{Items: store}, small(), "a")
		time.Sleep(15 * time.Second) // the next pass would begin after 200 s
		store.mu.Lock()
		delete(store.items, parked[0])
		store.mu.Unlock()
		w.Reload()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if left := d.left(parked[1:]); len(left) > 0 {
			t.Errorf("left: %v, want none", left)
		}
	})
}

// placeless is a shelf without positions.
type placeless struct{ *shelf }

func (placeless) Position(string) string { panic("no position") }

func TestPanicOfPositionFailsTheSelect(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := placeless{newShelf(w, 200)}
		w.start(t, d, engine.Env{Items: dead(d.open...)}, small(), "a")
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := w.Stats(); s.FetchCount == 0 || s.LastError == nil || !strings.Contains(s.LastError.Error(), "no position") {
			t.Errorf("stats: %+v, want selects that fail", s)
		}
	})
}
