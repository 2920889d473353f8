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

// A cursor does not pass the failing item. The processor finds it in single batches, and the sweep ends before it (X3).
func TestSweepWithACursorEndsAtAFailedItem(t *testing.T) {
	for name, bad := range map[string]error{
		"error": errBroken, "permanent": processor.Permanent(errBroken),
		"retryAfter": processor.RetryAfter(time.Hour, errBroken),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d, m := newTape(w, 9), newMemory()
				m.cursors["a"] = "a00"
				d.bad["a03"] = bad
				s := settings()
				s.ExecuteNumber, s.SleepTimeNoData = 3, time.Hour
				env := engine.Env{Items: failedItems{m}, Cursors: cursorsOf{m}, Bind: bindCursor}
				w.start(t, d, env, s)
				if err := w.Grant(processor.Queue{ID: "a", Cursor: "a00", Run: nightly()}, 1); err != nil {
					t.Fatal(err)
				}
				state := w.failedWith(t, "a", errBroken.Error())
				want := []string{"load cursor a", "cursor a a01", "cursor a a02", "load cursor a"}
				if calls := m.journal(); state.Cursor != "a02" || state.ItemsDone != 2 || state.ItemsFailed != 1 ||
					!slices.Equal(calls, want) || w.Stats().DeadCount > 0 {
					t.Errorf("sweep: %+v, store %v, want Cursor a02, ItemsDone 2, ItemsFailed 1, calls %v, DeadCount 0", state, calls,
						want)
				}
				if keys := failedKeys(state); !slices.Equal(keys, []string{"a03"}) || !state.AllFailed {
					t.Errorf("failed items %v, all of them: %t, want a03 only, because nothing before it has failed", keys,
						state.AllFailed)
				}
				w.expect(t, "0s a01-a01 a01", "0s a01-a03 a03", "0s a02-a02 a02", "0s a03-a03 a03")
			})
		})
	}
}

// A batch that was committed is done, even if Execute returns an error: it is neither executed again nor passed.
func TestSweepLoadsTheCursorAfterAnError(t *testing.T) {
	for _, number := range []int{1, 3} {
		t.Run(fmt.Sprintf("execute_number %d", number), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d, m := newTape(w, 9), newMemory()
				d.bad["a04"] = errBroken
				d.commit = func(cursor string) {
					m.mu.Lock()
					defer m.mu.Unlock()
					m.cursors["a"] = cursor
				}
				s := settings()
				s.ExecuteNumber = number
				w.sweep(t, d, engine.Env{Cursors: cursorsOf{m}}, s, "a")
				if state := w.swept(t, "a", 9, 0); state.Cursor != "a08" || strings.Count(w.text(), "-") != 9/number {
					t.Errorf("sweep: %+v, want Cursor a08, and %d batches\n%s", state, 9/number, w.text())
				}
			})
		})
	}
}

// F5: the COMMIT of a batch that has failed may be under way: the cursor is loaded when the transaction has ended.
func TestSweepLoadsTheCursorAfterTheCommitHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 9), newMemory()
		d.bad["a04"] = errBroken
		underWay := ""
		d.commit = func(cursor string) {
			m.mu.Lock()
			defer m.mu.Unlock()
			underWay = cursor
		}
		enter := func(context.Context, processor.Queue, bool) (bool, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if underWay == "" {
				return false, nil
			}
			m.cursors["a"], underWay = underWay, ""
			return true, nil
		}
		s := settings()
		s.ExecuteNumber = 1
		w.sweep(t, d, engine.Env{Enter: enter, Cursors: cursorsOf{m}}, s, "a")
		if state := w.swept(t, "a", 9, 0); state.Cursor != "a08" {
			t.Errorf("sweep: %+v, want Cursor a08\n%s", state, w.text())
		}
	})
}

// A cancelled batch may have been committed: the processor loads the cursor before the next select.
func TestSweepLoadsTheCursorAfterACancelledBatch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 6), newMemory()
		d.takes = 10 * time.Second
		w.sweep(t, d, engine.Env{Cursors: cursorsOf{m}}, settings(), "a")
		time.Sleep(time.Second)
		m.mu.Lock()
		m.cursors["a"] = "a01"
		m.mu.Unlock()
		w.Revoke("a", nil)
		synctest.Wait()
		w.Resume("a")
		time.Sleep(time.Minute)
		w.swept(t, "a", 4, 0)
		w.expect(t, "0s a00-a01 <nil>", "1s a02-a03 <nil>", "11s a04-a05 <nil>")
	})
}

// coarse has cursors that are only the first letter of an item.
type coarse struct{ *tape }

func (coarse) Cursor(item string) string { return item[:1] }

func (c coarse) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	if s.Queue.Cursor != "" {
		return nil, nil
	}
	return c.tape.Select(ctx, s)
}

// A cursor that does not distinguish an item from the one before it does not prove a commit.
func TestSweepWithACoarseCursorCountsFailedItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 2), newMemory()
		d.bad["a01"] = errBroken
		s := settings()
		s.ExecuteNumber, s.FetchNumber = 1, 2
		w.sweep(t, coarse{d}, engine.Env{Cursors: cursorsOf{m}}, s, "a")
		if state := w.failedWith(t, "a", errBroken.Error()); state.ItemsDone != 1 || state.ItemsFailed != 1 {
			t.Errorf("sweep: %+v, want ItemsDone 1, ItemsFailed 1", state)
		}
	})
}

// If the cursor cannot be loaded, the sweep fails at the last known cursor.
func TestSweepFailsWithItsCursorStore(t *testing.T) {
	for name, breakStore := range map[string]func(*memory){
		"load": func(m *memory) { m.err = errors.New("gone") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d, m := newTape(w, 9), newMemory()
				d.bad["a03"] = errBroken
				d.commit = func(string) { // the commit fails
					m.mu.Lock()
					defer m.mu.Unlock()
					breakStore(m)
				}
				s := settings()
				s.ExecuteNumber = 1
				w.sweep(t, d, engine.Env{Cursors: cursorsOf{m}, Bind: bindCursor}, s, "a")
				state := w.failedWith(t, "a", errBroken.Error())
				if state.ItemsDone != 3 || state.ItemsFailed != 0 || state.Cursor != "a02" || strings.Contains(w.text(), "a04") {
					t.Errorf("sweep: %+v, want ItemsDone 3, ItemsFailed 0, Cursor a02, no a04\n%s", state, w.text())
				}
			})
		})
	}
}

// A failed batch whose cursor cannot be loaded is no success: the breaker opens (X5).
func TestOutageOfTheCursorStoreOpensTheBreaker(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 1), newMemory()
		d.items = []string{"a00", "b00", "c00"}
		for _, item := range d.items {
			d.bad[item] = errBroken
		}
		d.commit = func(string) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.err = errors.New("gone")
		}
		s := settings()
		s.ProbeMax, s.ThreadNumber = time.Minute, 1
		w.sweep(t, d, engine.Env{Cursors: cursorsOf{m}, Bind: bindCursor}, s, "a", "b", "c")
		time.Sleep(time.Second)
		if c := w.Stats(); c.OutageSince.IsZero() || c.SuccessCount > 0 {
			t.Errorf("counters: %+v, want an outage and no success", c)
		}
	})
}

// lossyCursors is a CursorStore that saves the first cursor of queue a and returns an error nevertheless.
type lossyCursors struct {
	cursorsOf
	lost *bool
}

func (c lossyCursors) Save(ctx context.Context, q processor.Queue, cursor string) error {
	if err := c.cursorsOf.Save(ctx, q, cursor); err != nil || *c.lost || q.ID != "a" {
		return err
	}
	*c.lost = true
	return errors.New("no reply")
}

// orderedLog is a log whose selects go by the cursor alone, so that they return what is done too.
type orderedLog struct {
	log
	items []string
}

func (l orderedLog) Select(_ context.Context, s processor.Selection) (page []string, err error) {
	for _, item := range l.items {
		if item[:1] == s.Queue.ID && item > s.Queue.Cursor && len(page) < s.Limit {
			page = append(page, item)
		}
	}
	return page, nil
}

// A sweep that goes on after a cursor was not saved, because an outage has not ended, loads the cursor: it may have been
// saved without a reply.
func TestSweepLoadsTheCursorAfterAnErrorInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		items := append(sortable("a", 20), "b1", "c1", "d1")
		d, m, lost := newService(w, slices.Clone(items)...), newMemory(), false
		d.down = true
		for _, item := range items[20:] { // so that no other queue ends the outage
			d.bad[item] = errBroken
		}
		w.start(t, orderedLog{log{d}, items}, engine.Env{Cursors: lossyCursors{cursorsOf{m}, &lost}}, inRuns())
		w.grantRun(t, nightly(), "b", "c", "d") // they fail, and open the breaker
		time.Sleep(5 * time.Second)
		w.grantRun(t, nightly(), "a")
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.Stats().OutageSince.IsZero() {
			t.Fatal("no outage")
		}
		d.set(false)
		time.Sleep(5 * time.Minute)
		w.swept(t, "a", 19, 0) // the first item is behind the loaded cursor
		for _, item := range items[:20] {
			if d.done[item] != 1 {
				t.Errorf("item %s was executed %d times, want once", item, d.done[item])
			}
		}
	})
}

// During a sweep, its progress is visible in the state of the queue.
func TestSweepReportsItsProgress(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newTape(w, 8)
		d.takes = time.Second
		s := settings()
		s.ExecuteNumber = 1
		w.sweep(t, d, engine.Env{}, s, "a")
		time.Sleep(4500 * time.Millisecond)
		h := w.holding(t, "a")
		if h.Sweep.Ended() || h.Sweep.Cursor != "a03" || h.Sweep.ItemsDone != 4 || h.Sweep.ItemsFailed != 0 {
			t.Errorf("sweep: %+v, want not ended, Cursor a03, ItemsDone 4, ItemsFailed 0", h.Sweep)
		}
		if w.emptied() {
			t.Error("the signal came before the end")
		}
		time.Sleep(10 * time.Second)
		w.swept(t, "a", 8, 0)
	})
}

// lostTape panics when it is asked for the cursor of one item.
type lostTape struct {
	*tape
	at string
}

// keyedTape has keys too, which make no difference.
type keyedTape struct{ *lostTape }

func (keyedTape) Key(item string) string { return item }

func (l *lostTape) Cursor(item string) string {
	if item == l.at && len(l.w.text()) > 0 { // not during the first select
		panic("boom")
	}
	return item
}

func TestSweepFailsIfCursorPanics(t *testing.T) {
	for name, with := range map[string]func(*lostTape) processor.TaskDealer[string]{
		"without keys": func(d *lostTape) processor.TaskDealer[string] { return d },
		"with keys":    func(d *lostTape) processor.TaskDealer[string] { return keyedTape{d} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				s := settings()
				s.ExecuteNumber = 1
				w.sweep(t, with(&lostTape{newTape(w, 9), "a03"}), engine.Env{}, s, "a")
				state := w.failedWith(t, "a", "panic: boom")
				if state.ItemsDone != 3 || state.Cursor != "a02" || strings.Contains(w.text(), "a04") {
					t.Errorf("sweep: %+v, want ItemsDone 3, Cursor a02, no a04\n%s", state, w.text())
				}
			})
		})
	}
}
