package processor_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/processor"
)

// found returns how often the store was asked for keys.
func (m *memory) found() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.finds
}

// Memory holds no more records than its bound. Items beyond it are looked up by their keys: the dead are not executed,
// the others go on from their last attempt, and a success deletes the record (X6).
func TestRecordsBeyondTheBound(t *testing.T) {
	for _, most := range []int{0, 2, 5} {
		bubble(t, func(t *testing.T, w *world) {
			w.most = &most
			b, m := &bin{newRows(w, numbered("a", 10)...), nil}, newMemory()
			for i := range 9 {
				key := fmt.Sprint("a", i)
				switch {
				case i < 5:
					m.items[key] = processor.FailedItem{Key: key, Attempts: 3, LastError: "was broken", Dead: true}
				default:
					m.items[key] = processor.FailedItem{Key: key, Attempts: 2, LastError: "was broken"}
				}
			}
			b.bad["a6"] = errBroken
			w.start(t, b, processor.Env{Items: failedItems{m}, Bind: bind}, limited(), "a")
			time.Sleep(time.Hour)
			want := []string{"0s [a5]", "0s [a6]", "0s [a7]", "0s [a8]", "0s [a9]"}
			for i := range 5 { // their last owner may have ended before it discarded them
				want = append(want, fmt.Sprintf("0s discard a%d: was broken a:7", i))
			}
			w.expect(t, append(want, "0s discard a6: broken a:7")...)
			records := m.records()
			for _, key := range []string{"a0", "a1", "a2", "a3", "a4", "a6"} {
				if !records[key].Dead || records[key].Attempts < 3 {
					t.Errorf("bound %d: the record of %s is %+v, want Dead", most, key, records[key])
				}
				delete(records, key)
			}
			if len(records) > 0 {
				t.Errorf("bound %d: records of items that succeeded: %v", most, records)
			}
			if n, dead := w.Records(), w.DeadKeys(); n > most || dead > most {
				t.Errorf("bound %d: memory holds %d records and %d dead keys", most, n, dead)
			}
		})
	}
}

// While memory holds all records, the store is asked for none.
func TestRecordsInMemoryAreNotLookedUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, numbered("a", 10)...), newMemory()
		for i := range 5 {
			r.bad[fmt.Sprint("a", i)] = errBroken
		}
		w.start(t, r, processor.Env{Items: failedItems{m}}, limited(), "a")
		time.Sleep(time.Minute)
		w.Reload()
		time.Sleep(time.Hour)
		if n := w.DeadKeys(); n != 5 || w.Records() != 0 {
			t.Errorf("memory holds %d dead keys and %d records, want 5 and none", n, w.Records())
		}
		if n := m.found(); n > 0 || w.Stats().DeadCount != 5 {
			t.Errorf("%d lookups, %d dead, want none and 5", n, w.Stats().DeadCount)
		}
		w.Drain("a")
		time.Sleep(time.Minute)
		if w.Forget("a"); w.Records() != 0 || w.DeadKeys() != 0 {
			t.Errorf("memory holds %d records and %d dead keys after the grant, want none", w.Records(), w.DeadKeys())
		}
	})
}

// An item whose record memory does not hold loses no attempt in an outage, and is retried after it as the policy says
// (X5, X6).
func TestOutageOfItemsWithoutRecordsInMemory(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		none := 0
		w.most = &none
		r, m := newRows(w, "a1", "a2", "a3", "a4"), newMemory()
		for _, item := range r.open {
			r.bad[item] = errDown
		}
		w.start(t, r, processor.Env{Items: failedItems{m}}, usual(), "a")
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
		none := 0
		w.most = &none
		r, m := newRows(w, "a1"), newMemory()
		m.items["a1"] = processor.FailedItem{Key: "a1", Attempts: 2, LastError: "was broken"}
		r.bad["a1"] = errBroken
		s := crashing()
		s.ItemMaxAttempts = 3
		w.start(t, r, processor.Env{Items: failedItems{m}}, s)
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

func (elsewhere) Load(context.Context, processor.Queue, int, int) (processor.LoadedItems, error) {
	return processor.LoadedItems{More: true}, nil
}

func (elsewhere) Find(_ context.Context, _ processor.Queue, keys []string) (list []processor.FailedItem, _ error) {
	for _, key := range keys {
		list = append(list, processor.FailedItem{Key: key, Queue: "b", Attempts: 3, Dead: true})
	}
	return list, nil
}

// An item of another queue has another identity if its key is a cursor, and the same if the dealer is Keyed (X6).
func TestCursorsOfOtherQueuesAreOtherItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		m := newMemory()
		w.start(t, newTape(w, 2), processor.Env{Cursors: cursorsOf{m}, Items: elsewhere{failedItems{m}}}, settings(), "a")
		time.Sleep(time.Minute)
		w.expect(t, "0s a00-a01 <nil>")
	})
	bubble(t, func(t *testing.T, w *world) {
		w.start(t, newRows(w, "a1"), processor.Env{Items: elsewhere{failedItems{newMemory()}}}, settings(), "a")
		time.Sleep(time.Minute)
		w.expect(t)
	})
}

// A select with few items behind many dead ones whose records memory does not hold finds them (X2).
func TestItemsBehindDeadItemsWithoutRecordsInMemory(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		none := 0
		w.most = &none
		r, m := newRows(w, numbered("a", 40)...), newMemory()
		for _, key := range r.open[:35] {
			m.items[key] = processor.FailedItem{Key: key, Attempts: 3, Dead: true}
		}
		s := settings()
		s.FetchNumber = 5
		told := &alertBook{}
		w.start(t, r, processor.Env{Items: failedItems{m}, Alert: told.add}, s, "a")
		time.Sleep(5 * time.Second) // the limit grows fast
		synctest.Wait()
		r.mu.Lock()
		open := len(r.open)
		r.mu.Unlock()
		if open != 35 {
			t.Errorf("after 5 selects %d items are open, want the 35 dead ones", open)
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

// Memory holds the keys of a million dead items at most, which take some tens of megabytes.
func TestDeadItemsTakeLittleMemory(t *testing.T) {
	racetest.Skip(t)
	for dead, want := range map[int]int{100_000: 400_000, 400_000: 1_000_000} { // of each of four queues, and of all
		p, grown := loadDead(t, dead)
		t.Logf("%d dead keys in memory, %.1f MB", p.DeadKeys(), float64(grown)/1e6)
		if n := p.DeadKeys(); n < want || n > want+4 || p.Records() > 0 || grown > 50*int64(n) {
			t.Errorf("%d dead keys and %d records in memory, %d bytes; want %d keys and at most 50 bytes for each",
				n, p.Records(), grown, want)
		}
		runtime.KeepAlive(p)
	}
}

// loadDead returns a processor that has loaded the dead items of four queues, and the memory that they take.
func loadDead(t *testing.T, dead int) (p *processor.Processor, grown int64) {
	t.Helper()
	p, err := processor.New(&rows{w: &world{}}, processor.Env{Items: deadBefore{nothing, dead}}, settings())
	if err != nil {
		t.Fatal(err)
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	for i := range 4 {
		if err := p.Grant(processor.Queue{ID: ids[i], Index: i}, 4); err != nil {
			t.Fatal(err)
		}
	}
	go func() { ended <- p.Run(ctx) }()
	for p.Stats().FetchCount < 8 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return p, heap() - before
}

// A digest of a usual key is computed without an allocation.
func TestDigestAllocatesNothing(t *testing.T) {
	key := strings.Repeat("x", 256)
	if n := testing.AllocsPerRun(100, func() { processor.DigestOf(key) }); n > 0 {
		t.Errorf("%.0f allocations for a digest, want none", n)
	}
}
