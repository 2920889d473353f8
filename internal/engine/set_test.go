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

// shelves are the items of queues, which are selected together.
type shelves struct {
	dealer
	w     *world
	items map[string][]string
	bad   string // it is returned whatever queue is asked for
}

// newShelves returns a SetSelector. The queue of an item is its first letter. Execute notes the items and their queue.
func newShelves(w *world, items ...string) *shelves {
	s := &shelves{w: w, items: map[string][]string{}}
	for _, item := range items {
		s.items[item[:1]] = append(s.items[item[:1]], item)
	}
	s.exec = func(ctx context.Context, items []string) error {
		w.note("%v %s", items, bound(ctx))
		return nil
	}
	return s
}

func (s *shelves) SelectSet(_ context.Context, sel processor.Selection, owned []processor.Queue) (page []string, _ error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	var asked []string
	for _, q := range owned {
		asked = append(asked, q.ID)
		if len(owned) > 1 {
			page = append(page, s.items[q.ID]...)
		} else {
			page = append(page, s.items[q.ID]...)
			delete(s.items, q.ID)
		}
	}
	s.w.journal = append(s.w.journal, fmt.Sprintf("%s ask %v of %d, limit %d%s", time.Since(s.w.begin), asked, sel.Total, sel.Limit,
		sel.Queue.ID))
	if s.bad != "" {
		page = append(page, s.bad)
	}
	return page, nil
}

func (s *shelves) QueueOf(item string) string {
	if item == "boom" {
		panic("boom")
	}
	return item[:1]
}

// A SetSelector is asked for one queue at a time, and a batch has items of one queue. It is asked for idle queues
// together: for those of each total, because it divides by that.
func TestSetIsAskedForOneQueueUnlessItIsIdle(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newShelves(w, "a1", "b1", "a2")
		w.start(t, d, engine.Env{Bind: bind}, settings(), "a", "b")
		if err := w.Grant(processor.Queue{ID: "c", Index: 2, Epoch: 9}, 4); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		w.expect(t, "0s [a1 a2] a:7", "0s [b1] b:7", "0s ask [a] of 2, limit 10", "0s ask [a] of 2, limit 10",
			"0s ask [b] of 2, limit 10", "0s ask [b] of 2, limit 10", "0s ask [c] of 4, limit 10")
		w.mu.Lock()
		d.items["b"] = []string{"b2"}
		w.mu.Unlock()
		time.Sleep(time.Second)
		w.expect(t, "1s [b2] b:7", "1s ask [a b] of 2, limit 2", "1s ask [b] of 2, limit 10", "1s ask [b] of 2, limit 10",
			"1s ask [c] of 4, limit 1")
	})
}

// shortShelves is a SetSelector whose select of several queues ends at the limit, whatever queues the items are of.
type shortShelves struct{ *shelves }

func (l shortShelves) SelectSet(ctx context.Context, s processor.Selection, owned []processor.Queue) ([]string, error) {
	page, err := l.shelves.SelectSet(ctx, s, owned)
	clear(owned)
	return page[:min(len(page), s.Limit)], err
}

// X8: a peek whose select returns a full page asks again for the queues without an item on it, because one queue may have
// filled the page.
func TestAnIdleQueueWithManyItemsHidesNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := shortShelves{newShelves(w)}
		w.start(t, d, engine.Env{Bind: bind}, settings(), "a", "b", "c", "d")
		time.Sleep(500 * time.Millisecond)
		w.mu.Lock()
		w.journal = nil
		d.items["a"] = []string{"a1", "a2", "a3", "a4"}
		d.items["c"] = []string{"c1"}
		w.mu.Unlock()
		time.Sleep(time.Second)
		w.expect(t, "1s [a1 a2] a:7", "1s [a3 a4] a:7", "1s [c1] c:7", "1s ask [a b c d] of 4, limit 4", "1s ask [a] of 4, limit 10",
			"1s ask [a] of 4, limit 10", "1s ask [b c d] of 4, limit 3", "1s ask [c] of 4, limit 10", "1s ask [c] of 4, limit 10")
	})
}

// A dealer that returns items of no queue that it was asked for is not asked again.
func TestAPeekOfASetThatNamesOtherQueues(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := shortShelves{newShelves(w)}
		w.start(t, d, engine.Env{}, settings(), "a", "b")
		time.Sleep(500 * time.Millisecond)
		w.mu.Lock()
		w.journal, d.items["b"] = nil, []string{"x1", "x2", "x3"}
		w.mu.Unlock()
		time.Sleep(time.Second)
		w.expect(t, "1s ask [a b] of 2, limit 2")
	})
}

// A select that returns an item of another queue fails, and names the queue. None of its items is executed.
func TestSetThatReturnsItemsOfOtherQueues(t *testing.T) {
	for bad, want := range map[string]string{"x1": `queue a alone and returned an item of queue "x"`, "boom": "panic: boom"} {
		t.Run(bad, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := newShelves(w, "a1")
				d.bad = bad
				w.start(t, d, engine.Env{}, settings(), "a")
				time.Sleep(time.Minute)
				got := w.Stats()
				if got.LastError == nil || !strings.Contains(got.LastError.Error(), want) || got.SuccessCount != 0 {
					t.Errorf("last error %v, %d items done, want one with %s, and none", got.LastError, got.SuccessCount, want)
				}
				if got.FetchCount < 4 || got.FetchCount > 8 {
					t.Errorf("%d selects in a minute, want 4 to 8, with growing pauses", got.FetchCount)
				}
			})
		})
	}
}

// A SetSelector sweeps: each queue is selected until it is empty.
func TestSetSweeps(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := settings()
		s.Runs = true
		w.start(t, newShelves(w, "a1", "b1"), engine.Env{}, s)
		for i, id := range []string{"a", "b"} {
			if err := w.Grant(processor.Queue{ID: id, Index: i, Epoch: 1, Run: nightly()}, 2); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for _, id := range []string{"a", "b"} {
			if sweep := w.holding(t, id).Sweep; !sweep.Swept || sweep.ItemsDone != 1 {
				t.Errorf("sweep of %s: %+v, want that it has done 1 item", id, sweep)
			}
		}
	})
}

// ownPeek is a SetSelector with a Peek of its own.
type ownPeek struct {
	*shelves
	peeks int
}

func (o *ownPeek) Peek(context.Context, []processor.Selection) ([]string, error) {
	o.peeks++
	return nil, nil
}

func TestSetWithItsOwnPeek(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &ownPeek{shelves: newShelves(w)}
		w.start(t, d, engine.Env{}, settings(), "a", "b")
		time.Sleep(3500 * time.Millisecond)
		w.stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		if together := slices.ContainsFunc(w.journal, func(line string) bool { return strings.Contains(line, "a b") }); together ||
			d.peeks != 3 {
			t.Errorf("%d peeks, want 3, and no SelectSet of both queues:\n%s", d.peeks, strings.Join(w.journal, "\n"))
		}
	})
}
