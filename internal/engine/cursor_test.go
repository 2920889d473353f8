package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// tape is an append-only source of queue a: a00, a01, and so on. Its cursor is the last item that is done.
type tape struct {
	w        *world
	items    []string
	takes    time.Duration
	bad      map[string]error
	commit   func(cursor string) // simulates a fenced transaction, before the error of bad
	selected []string            // cursors
}

func newTape(w *world, n int) *tape {
	t := &tape{w: w, bad: map[string]error{}}
	for i := range n {
		t.items = append(t.items, fmt.Sprintf("a%02d", i))
	}
	return t
}

func (t *tape) Cursor(item string) string { return item }

func (t *tape) Select(_ context.Context, s processor.Selection) (page []string, _ error) {
	t.selected = append(t.selected, s.Queue.Cursor)
	for _, item := range t.items {
		if item > s.Queue.Cursor && len(page) < s.Limit {
			page = append(page, item)
		}
	}
	return page, nil
}

func (t *tape) Execute(ctx context.Context, items []string) error {
	t.w.note("%s-%s %v", items[0], items[len(items)-1], ctx.Value(cursorKey{}))
	if err := nap(ctx, t.takes); err != nil {
		return err
	}
	for _, item := range items {
		if err := t.bad[item]; err != nil {
			if t.commit != nil {
				t.commit(items[len(items)-1])
			}
			return err
		}
	}
	return nil
}

type cursorKey struct{}

func bindCursor(ctx context.Context, _ processor.Queue, cursor *string) context.Context {
	if cursor == nil {
		return context.WithValue(ctx, cursorKey{}, "none")
	}
	return context.WithValue(ctx, cursorKey{}, *cursor)
}

// Batches of one queue run one after another, with any number of executors (X3).
func TestCursoredBatchesRunOneByOne(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 7), newMemory()
		d.takes = time.Second
		s := settings()
		s.FetchNumber = 5
		w.start(t, d, engine.Env{Cursors: cursorsOf{m}, Bind: bindCursor}, s)
		if err := w.Grant(processor.Queue{ID: "a", Cursor: "a00"}, 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		w.expect(t, "0s a01-a02 a02", "1s a03-a04 a04", "2s a05-a05 a05", "3s a06-a06 a06")
		m.expect(t, "cursor a a02", "cursor a a04", "cursor a a05", "cursor a a06")
		if !slices.Equal(d.selected[:3], []string{"a00", "a05", "a06"}) || w.holding(t, "a").Queue.Cursor != "a06" {
			t.Errorf("selected after cursors %v, held %+v, want [a00 a05 a06 ...], cursor a06", d.selected, w.holding(t, "a"))
		}
	})
}

// The processor finds the failing item in single batches, retries it in place, and passes it when it is dead and
// recorded (X3).
func TestCursorWaitsForAFailingItemUntilItIsDead(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 5), newMemory()
		d.bad["a01"] = errBroken
		s := settings()
		s.ExecuteNumber, s.ItemMaxAttempts = 3, 2
		s.Retry, s.RetryMax = 10*time.Second, 10*time.Second
		w.start(t, d, engine.Env{Cursors: cursorsOf{m}, Items: failedItems{m}, Bind: bindCursor}, s, "a")
		time.Sleep(4 * time.Second)
		w.expect(t, "0s a00-a00 a00", "0s a00-a02 a02", "0s a01-a01 a01")
		time.Sleep(20 * time.Second) // the pause is from 5 s to 10 s
		synctest.Wait()
		var after []string
		for line := range strings.Lines(w.text()) {
			after = append(after, strings.Fields(line)[1])
		}
		if !slices.Equal(after, []string{"a01-a01", "a02-a02", "a03-a04"}) {
			t.Errorf("after the pause: %v, want [a01-a01 a02-a02 a03-a04]", after)
		}
		want := []string{
			"load cursor a", "cursor a a00", "save a01 1 false", "load cursor a", "save a01 2 true",
			"load cursor a", "cursor a a01", "cursor a a02", "cursor a a04",
		}
		if got := m.journal(); !slices.Equal(got, want) {
			t.Errorf("store:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if s := w.Stats(); s.DeadCount != 1 || s.SuccessCount != 4 || s.InFlight != 0 {
			t.Errorf("stats: %+v, want DeadCount 1, SuccessCount 4, InFlight 0", s)
		}
	})
}

// After an error the processor loads the cursor, because the batch may have been committed.
func TestCursorIsLoadedAgainAfterAnError(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 6), newMemory()
		d.bad["a01"] = errBroken
		d.commit = func(cursor string) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.cursors["a"] = cursor
		}
		w.start(t, d, engine.Env{Cursors: cursorsOf{m}}, settings(), "a")
		time.Sleep(10 * time.Second)
		w.expect(t, "0s a00-a01 <nil>", "0s a02-a03 <nil>", "0s a04-a05 <nil>") // no single batches, no item twice
	})
}

func TestCursorSaveError(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 4), newMemory()
		m.moveErr = errors.New("busy")
		w.start(t, d, engine.Env{Cursors: cursorsOf{m}, Items: failedItems{m}}, settings(), "a")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		text := w.text()
		if n := strings.Count(text, "a00-a01"); n < 2 || strings.Contains(text, "a02") {
			t.Errorf("journal: %s, want a00-a01 twice or more, and no a02", text)
		}
		if s := w.Stats(); s.Parked != 0 || s.SuccessCount != 0 || !errors.Is(s.LastError, m.moveErr) {
			t.Errorf("stats: %+v, want Parked 0, SuccessCount 0, LastError %v", s, m.moveErr)
		}
		m.mu.Lock()
		m.moveErr = nil
		m.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if m.cursors["a"] != "a03" {
			t.Errorf("cursor %s, want a03", m.cursors["a"])
		}
	})
}

// A cursor does not pass a dead item before it is recorded: nothing else would show that it failed (X3).
func TestDeadItemIsRecordedBeforeTheCursorPasses(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 3), newMemory()
		d.bad["a01"], m.saveErr = processor.Permanent(errBroken), errors.New("disk full")
		w.start(t, d, engine.Env{Cursors: cursorsOf{m}, Items: failedItems{m}}, settings(), "a")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if m.cursors["a"] != "a00" {
			t.Errorf("cursor %s, want a00", m.cursors["a"])
		}
		if n := strings.Count(w.text(), "a01-a01"); n != 1 {
			t.Errorf("a dead item was executed %d times, want 1", n)
		}
		m.mu.Lock()
		m.saveErr = nil
		m.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if m.cursors["a"] != "a02" || !m.items["a01"].Dead {
			t.Errorf("cursor %s, items %v, want a02, and a01 dead", m.cursors["a"], m.items)
		}
	})
}

// A batch that did not start blocks the batches behind it (X3).
func TestCursorDoesNotPassUnstartedBatch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newTape(w, 6)
		asked := 0
		env := engine.Env{Trusted: func() bool {
			if asked++; asked == 3 { // the second batch
				w.Wake() // too early: the page is not dropped for lack of trust
				return false
			}
			return true
		}}
		s := settings()
		s.ThreadNumber = 1
		w.start(t, d, env, s, "a")
		time.Sleep(time.Second)
		w.expect(t, "0s a00-a01 <nil>", "0s a02-a03 <nil>", "0s a04-a05 <nil>")
		if !slices.Equal(d.selected[:2], []string{"", "a01"}) {
			t.Errorf("selected after cursors %v, want \"\" and a01 first", d.selected)
		}
	})
}

// A queue that is drained or revoked during a batch goes on after the items that are done.
func TestCursorAfterRevoke(t *testing.T) {
	for name, stop := range map[string]func(*world){
		"drain":  func(w *world) { w.Drain("a") },
		"revoke": func(w *world) { w.Revoke("a", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d, m := newTape(w, 4), newMemory()
				d.takes = 2 * time.Second
				w.start(t, d, engine.Env{Cursors: cursorsOf{m}}, settings(), "a")
				time.Sleep(time.Second)
				stop(w)
				w.Resume("a")
				time.Sleep(time.Minute)
				synctest.Wait()
				if m.cursors["a"] != "a03" {
					t.Errorf("cursor %s, want a03", m.cursors["a"])
				}
				if n := strings.Count(w.text(), "a00-a01"); (n == 1) != (name == "drain") {
					t.Errorf("journal: %s, want a00-a01 once after Drain, and again after Revoke", w.text())
				}
			})
		})
	}
}

// A new owner waits for a failed item like the old one, also in the middle of a page.
func TestCursorWaitsForAnItemThatFailedElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 5), newMemory()
		m.items["a02"] = engine.FailedItem{Key: "a02", Attempts: 1, RetryIn: 10 * time.Second}
		s := settings()
		s.ExecuteNumber, s.SleepTimeNoData = 5, 7*time.Second
		w.start(t, d, engine.Env{Cursors: cursorsOf{m}, Items: failedItems{m}}, s, "a")
		time.Sleep(30 * time.Second)
		w.expect(t, "0s a00-a01 <nil>", "10s a02-a02 <nil>", "10s a03-a04 <nil>")
	})
}

func TestCursorOfALostQueue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 5), newMemory()
		m.moveErr = errBroken
		env := engine.Env{Cursors: cursorsOf{m}, Lost: func(err error) bool { return errors.Is(err, errBroken) }}
		w.start(t, d, env, settings(), "a")
		time.Sleep(time.Hour)
		w.expect(t, "0s a00-a01 <nil>")
		if h := w.holding(t, "a"); !h.Lost || !h.Drained || h.Queue.Cursor != "" {
			t.Errorf("holding: %+v, want Lost, Drained, no Cursor", h)
		}
		if s := w.Stats(); s.FailureCount != 0 || s.LastError != nil || s.InFlight != 0 {
			t.Errorf("stats: %+v, want FailureCount 0, no LastError, InFlight 0", s)
		}
	})
}

// changedBehind is a store whose records an operator drops behind a look-up of them, before its select has ended.
type changedBehind struct {
	failedItems
	w *world
}

func (c changedBehind) Find(ctx context.Context, q processor.Queue, keys []string) ([]engine.FailedItem, error) {
	found, err := c.failedItems.Find(ctx, q, keys)
	c.mu.Lock()
	changed := len(c.items) > 0
	clear(c.items)
	c.mu.Unlock()
	if changed {
		c.w.Reload()
	}
	return found, err
}

// X6: a cursor waits for an item that backs off. If an operator changes its record while the select is under way that
// finds it, the cursor does not wait for the pause of the old record.
func TestRecordsChangeDuringASelect(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		m := newMemory()
		m.items["a00"] = engine.FailedItem{Key: "a00", Attempts: 1, RetryIn: 10 * time.Hour}
		w.start(t, newTape(w, 1), engine.Env{Items: changedBehind{failedItems{m}, w}, Cursors: cursorsOf{m}, Bind: bindCursor},
			settings(), "a")
		time.Sleep(time.Minute)
		w.expect(t, "1s a00-a00 a00")
	})
}

// A change of the records counts for a queue that drains meanwhile, such as one that is paused: after Resume it does not
// wait for the time that the record had before (X6).
func TestRecordsChangeDuringADrain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 1), newMemory()
		d.bad["a00"] = errBroken
		s := settings()
		s.Retry, s.RetryMax, s.RetryJitter = time.Hour, time.Hour, 0
		w.start(t, d, engine.Env{Cursors: cursorsOf{m}, Items: failedItems{m}}, s, "a")
		time.Sleep(time.Second)
		w.Drain("a")
		m.mu.Lock()
		clear(m.items)
		m.mu.Unlock()
		w.Reload()
		time.Sleep(time.Minute)
		w.Resume("a")
		w.expect(t, "0s a00-a00 <nil>", "1m1s a00-a00 <nil>")
	})
}
