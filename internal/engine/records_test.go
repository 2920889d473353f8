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
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/processor"
)

// found returns how often the store was asked for keys.
func (m *memory) found() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.finds
}

// Items are looked up by their keys: the dead are not executed, the others go on from their last attempt, and a success
// deletes the record (X6).
func TestRecordsAreLookedUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b, m := &bin{newRows(w, numbered("a", 10)...), nil}, newMemory()
		for i := range 9 {
			key := fmt.Sprint("a", i)
			switch {
			case i < 5:
				m.items[key] = engine.FailedItem{Key: key, Attempts: 3, LastError: "was broken", Dead: true}
			default:
				m.items[key] = engine.FailedItem{Key: key, Attempts: 2, LastError: "was broken"}
			}
		}
		b.bad["a6"] = errBroken
		w.start(t, b, engine.Env{Items: failedItems{m}, Bind: bind}, limited(), "a")
		time.Sleep(time.Hour)
		want := []string{"0s [a5]", "0s [a6]", "0s [a7]", "0s [a8]", "0s [a9]"}
		for i := range 5 { // their last owner may have ended before it discarded them
			want = append(want, fmt.Sprintf("0s discard a%d: was broken a:7", i))
		}
		w.expect(t, append(want, "0s discard a6: broken a:7")...)
		records := m.records()
		for _, key := range []string{"a0", "a1", "a2", "a3", "a4", "a6"} {
			if !records[key].Dead || records[key].Attempts < 3 {
				t.Errorf("the record of %s is %+v, want Dead", key, records[key])
			}
			delete(records, key)
		}
		if len(records) > 0 {
			t.Errorf("records of items that succeeded: %v", records)
		}
	})
}

// The store is asked for the items of pages while it has records of the queue, and at most a minute longer.
func TestStoreIsAskedWhileItHasRecords(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, numbered("a", 10)...), newMemory()
		work := func(items ...string) {
			r.mu.Lock()
			r.open = append(r.open, items...)
			r.mu.Unlock()
			time.Sleep(3 * time.Minute)
			synctest.Wait()
		}
		w.start(t, r, engine.Env{Items: failedItems{m}}, limited(), "a")
		if work(); m.found() > 0 {
			t.Errorf("%d lookups for a queue without records, want none", m.found())
		}
		r.bad["a20"] = errBroken
		if work("a20"); m.found() == 0 || !m.records()["a20"].Dead {
			t.Errorf("%d lookups, the record of a20 is %+v, want some, and Dead", m.found(), m.records()["a20"])
		}
		m.mu.Lock()
		clear(m.items) // rota item drop, and the row is deleted by hand
		m.mu.Unlock()
		r.mu.Lock()
		r.open = nil
		r.mu.Unlock()
		work()
		before := m.found()
		if work(numbered("a", 10)...); m.found() != before {
			t.Errorf("%d lookups after the last record is gone, want none", m.found()-before)
		}
		w.Drain("a")
		time.Sleep(time.Minute)
		if w.Forget("a"); w.Notes() != 0 {
			t.Errorf("%d notes after the grant, want none", w.Notes())
		}
	})
}

// slowToSave is a store whose Save takes some seconds.
type slowToSave struct{ failedItems }

func (s slowToSave) Save(ctx context.Context, q processor.Queue, items []engine.FailedItem) error {
	time.Sleep(5 * time.Second)
	return s.failedItems.Save(ctx, q, items)
}

// A record that is being saved while the store is asked whether it has any counts (X6).
func TestStoreIsAskedBesideASave(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1")
		r.bad["a1"] = errBroken
		s := limited()
		s.NotSleep, s.Retry, s.RetryMax = true, time.Hour, time.Hour
		w.start(t, r, engine.Env{Items: slowToSave{failedItems{newMemory()}}}, s, "a")
		time.Sleep(2 * time.Second)
		w.Reload()
		time.Sleep(10 * time.Minute)
		w.expect(t, "0s [a1]")
	})
}

// An operator's change of a record counts with the next select, and what a worker has noted does not outlive it.
func TestChangedRecordsCountAtOnce(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		bubble(t, func(t *testing.T, w *world) {
			r, m := newRows(w, "a1"), newMemory()
			r.bad["a1"] = errBroken
			s := limited()
			s.Retry, s.RetryMax = time.Hour, time.Hour
			w.start(t, r, engine.Env{Items: failedItems{m}}, s, "a")
			time.Sleep(time.Minute)
			w.expect(t, "0s [a1]")
			m.mu.Lock()
			if delete(m.items, "a1"); !dropped {
				m.items["a1"] = engine.FailedItem{Key: "a1"}
				delete(m.due, "a1")
			}
			m.mu.Unlock()
			time.Sleep(2 * time.Second)
			if text := w.text(); strings.Count(text, "[a1]") != 1 {
				t.Errorf("dropped %t: journal: %s, want [a1] once more", dropped, text)
			}
			if n := m.records()["a1"].Attempts; n != 1 {
				t.Errorf("dropped %t: %d attempts, want the first", dropped, n)
			}
		})
	}
}

// An item that an operator retries does not wait for the pause of a Discard that has failed.
func TestRetriedItemDoesNotWaitForItsDiscard(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b, m := &bin{newRows(w, "a1"), errors.New("no room")}, newMemory()
		m.items["a1"] = engine.FailedItem{Key: "a1", Attempts: 3, LastError: "was broken", Dead: true}
		s := limited()
		s.Retry, s.RetryMax = time.Hour, time.Hour
		w.start(t, b, engine.Env{Items: failedItems{m}, Bind: bind}, s, "a")
		time.Sleep(time.Minute)
		m.mu.Lock()
		m.items["a1"] = engine.FailedItem{Key: "a1"}
		delete(m.due, "a1")
		m.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if text := w.text(); strings.Count(text, "[a1]") != 1 || len(b.open) > 0 {
			t.Errorf("journal: %s, want [a1]", text)
		}
	})
}

// A failed item loses no attempt in an outage, and is retried after it as the policy says (X5, X6).
func TestOutageOfFailedItems(t *testing.T) {
	racetest.Defer(t)
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1", "a2", "a3", "a4"), newMemory()
		for _, item := range r.open {
			r.bad[item] = errDown
		}
		w.start(t, r, engine.Env{Items: failedItems{m}}, usual(), "a")
		time.Sleep(90 * time.Minute)
		synctest.Wait()
		for key, i := range m.records() {
			if i.Attempts > 1 || i.Dead {
				t.Errorf("the record of %s is %+v, want the attempt that opened the breaker", key, i)
			}
		}
		r.mu.Lock()
		r.bad = map[string]error{"a1": errBroken}
		r.open = append(r.open, "a5")
		r.mu.Unlock()
		time.Sleep(2 * time.Minute) // a5 closes the breaker
		r.mu.Lock()
		before, open := r.fails["a1"], slices.Clone(r.open)
		r.mu.Unlock()
		if slices.Contains(open, "a5") || !w.Stats().OutageSince.IsZero() {
			t.Errorf("open: %v, stats %+v, want a5 done and no outage", open, w.Stats())
		}
		time.Sleep(6 * time.Hour)
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		if n := r.fails["a1"] - before; n > 15 || len(r.open) != 1 {
			t.Errorf("a1 was executed %d times in 6 hours after the outage, open %v; want its pauses, and the others done", n,
				r.open)
		}
	})
}

// An item that is executed alone after crashes keeps its attempts (S14, X6).
func TestItemAloneKeepsItsAttempts(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1"), newMemory()
		m.items["a1"] = engine.FailedItem{Key: "a1", Attempts: 2, LastError: "was broken"}
		r.bad["a1"] = errBroken
		s := crashing()
		s.ItemMaxAttempts = 3
		w.start(t, r, engine.Env{Items: failedItems{m}}, s)
		w.grantCrashed(t, map[string]int{"a": 3}, "a")
		time.Sleep(time.Minute)
		w.expect(t, "0s [a1]")
		if i := m.records()["a1"]; !i.Dead || i.Attempts != 3 {
			t.Errorf("the record is %+v, want Dead with 3 attempts", i)
		}
	})
}

// elsewhere is a store that finds dead items of another queue under each key.
type elsewhere struct{ failedItems }

func (elsewhere) Any(context.Context, processor.Queue) (bool, error) { return true, nil }

func (elsewhere) Find(_ context.Context, _ processor.Queue, keys []string) (list []engine.FailedItem, _ error) {
	for _, key := range keys {
		list = append(list, engine.FailedItem{Key: key, Queue: "b", Attempts: 3, Dead: true})
	}
	return list, nil
}

// An item of another queue has another identity if its key is a cursor, and the same if the dealer is Keyed (X6).
func TestCursorsOfOtherQueuesAreOtherItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		m := newMemory()
		w.start(t, newTape(w, 2), engine.Env{Cursors: cursorsOf{m}, Items: elsewhere{failedItems{m}}}, settings(), "a")
		time.Sleep(time.Minute)
		w.expect(t, "0s a00-a01 <nil>")
	})
	bubble(t, func(t *testing.T, w *world) {
		w.start(t, newRows(w, "a1"), engine.Env{Items: elsewhere{failedItems{newMemory()}}}, settings(), "a")
		time.Sleep(time.Minute)
		w.expect(t)
	})
}

// A select with few items behind many dead ones finds them: its limit grows fast (X2).
func TestLimitReachesBehindDeadItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, numbered("a", 40)...), newMemory()
		for _, key := range r.open[:35] {
			m.items[key] = engine.FailedItem{Key: key, Attempts: 3, Dead: true}
		}
		s := settings()
		s.FetchNumber = 5
		told := &alertBook{}
		w.start(t, r, engine.Env{Items: failedItems{m}, Alert: told.add}, s, "a")
		synctest.Wait()
		r.mu.Lock()
		open := len(r.open)
		r.mu.Unlock()
		if open != 35 {
			t.Errorf("at once %d items are open, want the 35 dead ones", open)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		if n := len(r.open); n != 35 || slices.Max(r.limits) > 50 || len(told.take()) > 0 {
			t.Errorf("%d items are open, limits %v, want the 35 dead ones, 50 at most, and no alert", n, r.limits)
		}
		if last := r.limits[len(r.limits)-1]; last != 40 {
			t.Errorf("the last limit is %d, want that of 35 dead items and 5 others", last)
		}
	})
}
