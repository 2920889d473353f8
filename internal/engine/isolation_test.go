package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// crashing returns settings under which two crashes are too many.
func crashing() engine.Settings {
	s := settings()
	s.MaxCrashes, s.ItemMaxAttempts = 1, 5
	return s
}

// grantCrashed grants queues with crash counts.
func (w *world) grantCrashed(t *testing.T, counts map[string]int, order ...string) {
	t.Helper()
	for i, id := range order {
		if err := w.Grant(processor.Queue{ID: id, Index: i, Epoch: 7, Crashes: counts[id]}, len(order)); err != nil {
			t.Fatal(err)
		}
	}
}

// S14: the processor executes the items of queues that have crashed too often one by one, one at a time among all
// queues. Each item has a record until its execution ends. A page without a crash ends this.
func TestCrashedQueuesAreExecutedOneByOne(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1", "a2", "a3", "b1", "b2", "c1", "c2"), newMemory()
		r.takes = time.Second
		r.bad["a2"] = errBroken
		s := crashing()
		s.Retry, s.RetryJitter = 10*time.Second, 0
		w.start(t, r, engine.Env{Items: failedItems{m}}, s)
		w.grantCrashed(t, map[string]int{"a": 2, "b": 3, "c": 1}, "a", "b", "c")
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if i := m.records()["a1"]; !i.Started || i.Attempts != 0 {
			t.Errorf("the record of the item in flight is %+v, want Started", i)
		}
		if len(m.records()) != 1 {
			t.Errorf("records of items: %v, want only that of a1", m.records())
		}
		time.Sleep(5 * time.Second)
		w.expect(t, "0s [a1]", "0s [c1 c2]", "1s [a2]", "2s [a3]", "3s [b1]", "4s [b2]") // c has not crashed too often
		if i := m.records()["a2"]; i.Attempts != 1 || i.Dead {
			t.Errorf("the record of the failing item is %+v, want 1 attempt", i)
		}
		if len(m.records()) != 1 {
			t.Errorf("records of items: %v, want only that of the failing item", m.records())
		}
		for _, id := range []string{"a", "b", "c"} {
			if !w.holding(t, id).Survived {
				t.Errorf("queue %s has not survived, want Survived", id)
			}
		}
		r.mu.Lock()
		r.open = append(r.open, "b3", "b4")
		r.mu.Unlock()
		time.Sleep(2 * time.Second)
		if text := w.text(); !strings.Contains(text, "[b3 b4]") {
			t.Errorf("after a page without a crash items are still executed one by one:\n%s", text)
		}
	})
}

// The item that a crashed owner has begun alone is dead, and the others are executed (S14).
func TestItemThatEndsItsProcessIsDead(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m, told := newRows(w, "a1", "a2", "a3"), newMemory(), &alertBook{}
		m.items["a1"] = engine.FailedItem{Key: "a1", Started: true}
		w.start(t, r, engine.Env{Items: failedItems{m}, Alert: told.add}, crashing())
		w.grantCrashed(t, map[string]int{"a": 3}, "a")
		time.Sleep(time.Minute)
		w.expect(t, "0s [a2]", "0s [a3]")
		i := m.records()["a1"]
		if !i.Dead || i.Started || i.Attempts != 1 ||
			!strings.Contains(i.LastError, "the process ended while it executed this item alone") {
			t.Errorf("the record of the item is %+v, want Dead with its cause", i)
		}
		if n := w.Stats().DeadCount; n != 1 {
			t.Errorf("%d items died, want 1", n)
		}
		if got := told.text(); got != "KILLER of a about item a1; " {
			t.Errorf("alerts: %s, want KILLER", got)
		}
	})
}

// An item whose owner did not crash again is executed, and its record goes.
func TestItemThatBeganWithoutACrashIsExecuted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1", "a2"), newMemory()
		m.items["a1"] = engine.FailedItem{Key: "a1", Started: true}
		w.start(t, r, engine.Env{Items: failedItems{m}}, crashing())
		w.grantCrashed(t, map[string]int{"a": 1}, "a")
		time.Sleep(time.Minute)
		w.expect(t, "0s [a1]", "0s [a2]")
		if len(m.records()) != 0 {
			t.Errorf("records of items: %v, want none", m.records())
		}
	})
}

// An item that is cancelled has no record left, because it did not end the process.
func TestCancelledItemIsNotBlamed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1", "a2"), newMemory()
		r.takes = time.Minute
		w.start(t, r, engine.Env{Items: failedItems{m}}, crashing())
		w.grantCrashed(t, map[string]int{"a": 2}, "a")
		time.Sleep(time.Second)
		w.Revoke("a", nil)
		w.expect(t, "0s [a1]")
		if len(m.records()) != 0 {
			t.Errorf("records of items: %v, want none", m.records())
		}
		if !w.holding(t, "a").Drained {
			t.Error("the queue is not drained")
		}
	})
}

// An item does not begin alone if that cannot be recorded. No attempt is counted then, and its page is no proof that the
// queue can be worked.
func TestNothingBeginsAloneWithoutARecord(t *testing.T) {
	for _, items := range [][]string{{"a1"}, {"a1", "a2"}} {
		bubble(t, func(t *testing.T, w *world) {
			r, m := newRows(w, slices.Clone(items)...), newMemory()
			m.saveErr = errBroken
			w.start(t, r, engine.Env{Items: failedItems{m}}, crashing())
			w.grantCrashed(t, map[string]int{"a": 2}, "a")
			time.Sleep(10 * time.Second)
			w.expect(t)
			if c := w.Stats(); c.SuccessCount > 0 || c.FailureCount == 0 || c.FailedCalls == 0 {
				t.Errorf("counters: %+v, want only failures", c)
			}
			if w.holding(t, "a").Survived {
				t.Errorf("the queue of %v has survived a page that was not executed", items)
			}
			m.mu.Lock()
			m.saveErr = nil
			m.mu.Unlock()
			time.Sleep(2 * time.Minute)
			for _, item := range items {
				if text := w.text(); !strings.Contains(text, "["+item+"]") {
					t.Errorf("after the store is back: %s, want %s", text, item)
				}
			}
			if !w.holding(t, "a").Survived {
				t.Errorf("the queue of %v has not survived a page that was executed", items)
			}
		})
	}
}

// Two processors of one process execute one item at a time.
func TestProcessorsOfAProcessTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		env := engine.Env{Alone: make(chan struct{}, 1)}
		var other world
		other.begin = w.begin
		for i, one := range []*world{w, &other} {
			r := newRows(w, fmt.Sprint("a", 2*i+1), fmt.Sprint("a", 2*i+2))
			r.takes = time.Second
			one.start(t, r, env, crashing())
			one.grantCrashed(t, map[string]int{"a": 2}, "a")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, second := range []string{"0s ", "1s ", "2s ", "3s "} {
			if n := strings.Count("\n"+w.text(), "\n"+second); n != 1 {
				t.Errorf("%d items began at %s, want 1:\n%s", n, second, w.text())
			}
		}
	})
}

// A queue whose item waits for the turn of its process drains at once: the item does not start.
func TestQueueDrainsBesideAnItemAlone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		alone := make(chan struct{}, 1)
		alone <- struct{}{} // another processor executes an item that hangs
		r, m := newRows(w, "a1", "a2"), newMemory()
		w.start(t, r, engine.Env{Items: failedItems{m}, Alone: alone}, crashing())
		w.grantCrashed(t, map[string]int{"a": 2}, "a")
		time.Sleep(time.Minute)
		w.Drain("a")
		synctest.Wait()
		if h := w.holding(t, "a"); !h.Drained || h.Survived || !w.signalled() {
			t.Errorf("holding: %+v, want it Drained, not Survived, and a signal", h)
		}
		<-alone
		time.Sleep(time.Minute)
		w.expect(t)
		w.Resume("a")
		w.expect(t, "2m0s [a1]", "2m0s [a2]")
		if s := w.Stats(); s.InFlight != 0 || s.SuccessCount != 2 || s.SkipCount != 2 || len(m.records()) > 0 {
			t.Errorf("counters: %+v, records %v, want 2 done and 2 skipped", s, m.records())
		}
	})
}

// An item that waits for the turn of its process is no call that does not end: the alert would name an innocent queue.
// Its call runs since its turn came.
func TestItemThatWaitsForItsTurnIsNotStalled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		alone := make(chan struct{}, 1)
		alone <- struct{}{} // another processor executes an item that hangs
		r := newRows(w, "a1")
		r.takes = time.Hour
		w.start(t, r, engine.Env{Items: failedItems{newMemory()}, Alone: alone}, crashing())
		w.grantCrashed(t, map[string]int{"a": 2}, "a")
		time.Sleep(10 * time.Minute)
		if all := w.Stalled(5 * time.Minute); len(all) != 0 {
			t.Errorf("stalled: %+v, want none: the item waits for its turn", all)
		}
		<-alone
		time.Sleep(6 * time.Minute)
		if all := w.Stalled(5 * time.Minute); len(all) != 1 || time.Since(all[0].Since) != 6*time.Minute {
			t.Errorf("stalled: %+v, want the item, since its turn came", all)
		}
	})
}

// A queue that drains, or whose select fails, passes its turn on.
func TestTurnIsPassedOn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1", "a2", "b1", "c1")
		d := &failingSelect{rows: r, queue: "b"}
		r.takes = time.Second
		w.start(t, d, engine.Env{}, crashing())
		w.grantCrashed(t, map[string]int{"a": 2, "b": 2, "c": 2}, "a", "b", "c")
		time.Sleep(500 * time.Millisecond)
		w.Drain("a")
		time.Sleep(2 * time.Second)
		w.expect(t, "0s [a1]", "1s [c1]")
		w.Resume("a")
		time.Sleep(2 * time.Second)
		w.expect(t, "2.5s [a2]")
	})
}

// failingSelect is rows whose select of one queue fails.
type failingSelect struct {
	*rows
	queue string
}

func (d *failingSelect) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	if s.Queue.ID == d.queue {
		return nil, errBroken
	}
	return d.rows.Select(ctx, s)
}

// Nothing distinguishes the items of a dealer without keys. Its queue waits after crashes (S14).
func TestCrashedQueueWithoutKeysWaits(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{sel: once(map[string][]string{"a": {"a1", "a2"}, "b": {"b1"}})}
		d.exec = func(_ context.Context, items []string) error { w.note("%v", items); return nil }
		s := crashing()
		s.Retry, s.RetryJitter = 4*time.Second, 0
		w.start(t, d, engine.Env{}, s)
		w.grantCrashed(t, map[string]int{"a": 2}, "a", "b")
		time.Sleep(time.Minute)
		w.expect(t, "0s [b1]", "4s [a1 a2]")
		if !w.holding(t, "a").Survived {
			t.Error("queue a has not survived, want Survived")
		}
	})
}

// A cursor passes the item that ends its process, and the items behind it are executed one by one, then in batches.
func TestCursorPassesTheItemThatEndsItsProcess(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 15), newMemory()
		m.items["a02"] = engine.FailedItem{Key: "a02", Started: true}
		w.start(t, d, engine.Env{Bind: bindCursor, Items: failedItems{m}, Cursors: cursorsOf{m}}, crashing())
		if err := w.Grant(processor.Queue{ID: "a", Epoch: 7, Cursor: "a01", Crashes: 3}, 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		text := w.text()
		if strings.Contains(text, "a02-") || !strings.Contains(text, "a03-a03 a03") ||
			!strings.Contains(text, "a12-a13 a13") {
			t.Errorf("journal, want a03 alone, not a02, and a12 with a13 on the next page:\n%s", text)
		}
		if i := m.records()["a02"]; !i.Dead || len(m.records()) != 1 {
			t.Errorf("records of items: %v, want a02 dead", m.records())
		}
		if m.cursors["a"] != "a14" {
			t.Errorf("the cursor is %s, want a14", m.cursors["a"])
		}
	})
}

// crashedRun starts a sweep of a queue that has crashed as often as a run allows.
func (w *world) crashedRun(t *testing.T, d processor.TaskDealer[string], env engine.Env) {
	t.Helper()
	s := crashing()
	s.Runs = true
	w.start(t, d, env, s)
	w.grantCrashedRun(t, "a")
}

func (w *world) grantCrashedRun(t *testing.T, ids ...string) {
	t.Helper()
	for i, id := range ids {
		if err := w.Grant(processor.Queue{ID: id, Index: i, Epoch: 7, Crashes: 1, Run: nightly()}, len(ids)); err != nil {
			t.Fatal(err)
		}
	}
}

// A sweep finds the item that ends its process as mode CONTINUOUS does (S14): the items are executed alone, and none of
// their records is left.
func TestCrashedSweepExecutesItemsOneByOne(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1", "a2", "a3", "b1"), newMemory()
		r.takes = time.Second
		r.bad["a2"] = errBroken
		w.crashedRun(t, r, engine.Env{Items: failedItems{m}})
		w.grantCrashedRun(t, "b")
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if i := m.records()["a1"]; !i.Started || len(m.records()) != 1 {
			t.Errorf("records of items: %v, want only that of a1, Started", m.records())
		}
		time.Sleep(time.Minute)
		w.expect(t, "0s [a1]", "1s [a2]", "2s [a3]", "3s [b1]")
		w.swept(t, "a", 2, 1)
		w.swept(t, "b", 1, 0)
		if len(m.records()) != 0 {
			t.Errorf("records of items: %v, want none", m.records())
		}
		if !w.holding(t, "a").Survived || !w.holding(t, "b").Survived {
			t.Error("the queues have not survived, want Survived")
		}
	})
}

// The item that a crashed owner has begun alone fails the sweep for good, by name, and so it does in the next sweep,
// which finds it dead at once.
func TestSweepPassesTheItemThatEndsItsProcess(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m, told := &bin{newRows(w, "a1", "a2", "a3"), nil}, newMemory(), &alertBook{}
		m.items["a1"] = engine.FailedItem{Key: "a1", Started: true}
		env := engine.Env{Items: failedItems{m}, Alert: told.add}
		w.crashedRun(t, r, env)
		for range 2 {
			time.Sleep(time.Minute)
			state := w.holding(t, "a").Sweep
			if !state.Swept || state.ItemsFailed != 1 || !sameItems(failedKeys(state), []string{"a1"}) || !state.Permanent ||
				!strings.Contains(fmt.Sprint(state.Err), "item a1 is dead: the process ended while it executed this item alone") {
				t.Errorf("sweep: %+v, want it complete except a1, for good", state)
			}
			if i := m.records()["a1"]; !i.Dead || len(m.records()) != 1 {
				t.Errorf("records of items: %v, want a1 dead", m.records())
			}
			w.Drain("a")
			w.Forget("a")
			run := nightly()
			run.FailedBefore = []string{"a1"}
			if err := w.Grant(processor.Queue{ID: "a", Epoch: 8, Run: run}, 1); err != nil {
				t.Fatal(err)
			}
		}
		w.expect(t, "0s [a2]", "0s [a3]")
		if got := told.text(); got != "KILLER of a about item a1; " {
			t.Errorf("alerts: %s, want KILLER, once", got)
		}
	})
}

// An item that an operator has released after its death is executed alone in a sweep, and its record goes.
func TestSweepExecutesAReleasedItem(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1", "a2", "a3"), newMemory()
		m.items["a1"] = engine.FailedItem{Key: "a1"}
		s := inRuns()
		w.start(t, r, engine.Env{Items: failedItems{m}}, s)
		w.grantRun(t, nightly(), "a")
		time.Sleep(time.Minute)
		w.swept(t, "a", 3, 0)
		w.expect(t, "0s [a1]", "0s [a2 a3]")
		if len(m.records()) != 0 {
			t.Errorf("records of items: %v, want none", m.records())
		}
	})
}

// A cursor of a sweep stops at the item that ends its process, and the sweep names it (X3).
func TestCursorOfASweepStopsAtTheItemThatEndsItsProcess(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 15), newMemory()
		m.items["a02"] = engine.FailedItem{Key: "a02", Started: true}
		s := crashing()
		s.Runs = true
		w.start(t, d, engine.Env{Bind: bindCursor, Items: failedItems{m}, Cursors: cursorsOf{m}}, s)
		if err := w.Grant(processor.Queue{ID: "a", Epoch: 7, Cursor: "a01", Crashes: 2, Run: nightly()}, 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		state := w.failedWith(t, "a", "item a02 is dead")
		if !state.Permanent || state.ItemsFailed != 1 || !sameItems(failedKeys(state), []string{"a02"}) || w.text() != "" {
			t.Errorf("sweep: %+v, want it failed at a02\n%s", state, w.text())
		}
	})
}

// A failure that is no attempt, because an outage is likely, leaves no record that the item has started: the process
// has survived the item, and the next owner must not find it guilty (S14, X5).
func TestItemThatFailsInAnOutageIsNotBlamed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, numbered("a", 10)...), newMemory()
		for _, item := range r.open {
			r.bad[item] = errBroken
		}
		s := crashing()
		s.ProbeMax = time.Minute
		w.start(t, r, engine.Env{Items: failedItems{m}}, s)
		w.grantCrashed(t, map[string]int{"a": 2}, "a")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if records := m.records(); len(records) != 3 || w.Stats().FailureCount < 10 {
			t.Errorf("records %v after %d failures, want those of the 3 items that have failed before the outage", records,
				w.Stats().FailureCount)
		}
		for key, i := range m.records() {
			if i.Started {
				t.Errorf("%s has ended, and its record says that it has started", key)
			}
		}
	})
}

// An item whose cursor could not be saved has ended all the same (S14).
func TestItemWhoseCursorIsNotSavedIsNotBlamed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 2), newMemory()
		m.moveErr = errBroken
		w.start(t, d, engine.Env{Bind: bindCursor, Items: failedItems{m}, Cursors: cursorsOf{m}}, crashing())
		w.grantCrashed(t, map[string]int{"a": 2}, "a")
		synctest.Wait()
		if w.text() == "" || len(m.records()) != 0 {
			t.Errorf("records after %s: %v, want none", w.text(), m.records())
		}
	})
}

// forgetful is rows whose Key panics after an Execute.
type forgetful struct {
	*rows
	executed atomic.Bool
}

func (d *forgetful) Key(item string) string {
	if d.executed.Load() {
		panic("no key")
	}
	return item
}

func (d *forgetful) Execute(context.Context, []string) error {
	d.executed.Store(true)
	return errBroken
}

// A Key that panics fails the sweep and not the process, also for an item that is executed alone.
func TestPanicOfKeyAfterAnItemAlone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		m := newMemory()
		w.crashedRun(t, &forgetful{rows: newRows(w, "a1")}, engine.Env{Items: failedItems{m}})
		synctest.Wait()
		w.failedWith(t, "a", "broken")
		if len(m.records()) != 0 {
			t.Errorf("records of items: %v, want none", m.records())
		}
	})
}

// canceller is a Discarder whose Discard lasts until it is cancelled.
type canceller struct{ *rows }

func (c canceller) Discard(ctx context.Context, item string, _ error) error {
	c.w.note("discard %s", item)
	return nap(ctx, time.Hour)
}

// An item that has died alone stays dead if its Discard is cancelled: what is taken back is the start of an item that
// has not ended (S14).
func TestACancelledDiscardKeepsTheDeath(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := canceller{newRows(w, "a1", "a2")}, newMemory()
		d.bad["a1"] = processor.Permanent(errBroken)
		w.start(t, d, engine.Env{Items: failedItems{m}}, crashing())
		w.grantCrashed(t, map[string]int{"a": 2}, "a")
		time.Sleep(time.Second)
		w.Revoke("a", nil)
		w.expect(t, "0s [a1]", "0s discard a1")
		if i, there := m.records()["a1"]; !i.Dead {
			t.Errorf("the record of the item that has died is %+v (%t), want Dead", i, there)
		}
	})
}

// In an outage, a queue whose items are executed one by one tries a sample of them as any other, and not the rest of its
// page (X5, S14).
func TestAnOutageEndsThePageOfACrashedQueue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 40)...)
		for _, item := range r.open {
			r.bad[item] = errBroken
		}
		s := crashing()
		s.FetchNumber, s.ProbeMax = 40, 30*time.Second
		w.start(t, r, engine.Env{}, s)
		w.grantCrashed(t, map[string]int{"a": 2}, "a")
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if n := strings.Count(w.text(), "["); n > 4 {
			t.Errorf("%d items were tried at once, want the three that open the breaker and one sample:\n%s", n, w.text())
		}
	})
}

// S14: a Discard that ends the goroutine of its executor does not keep other items from being executed alone.
func TestExitInDiscardEndsTheTurn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1", "b1"), newMemory()
		r.bad["a1"] = processor.Permanent(errBroken)
		w.start(t, exiting{r}, engine.Env{Items: failedItems{m}}, crashing())
		w.grantCrashed(t, map[string]int{"a": 2, "b": 2}, "a", "b")
		time.Sleep(time.Minute)
		if text := w.text(); !strings.Contains(text, "[b1]") {
			t.Errorf("executed: %s, want b1, too", text)
		}
	})
}

// exiting is a dealer whose Discard ends its goroutine.
type exiting struct{ *rows }

func (exiting) Discard(context.Context, string, error) error {
	runtime.Goexit()
	return nil
}
