package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// slow returns a dealer whose queues have five items each, once. A batch takes a second.
func slow(w *world, ids ...string) *dealer {
	pages := map[string][]string{}
	for _, id := range ids {
		pages[id] = []string{id + "1", id + "2", id + "3", id + "4", id + "5"}
	}
	return &dealer{sel: once(pages), exec: func(ctx context.Context, items []string) error {
		w.note("%v", items)
		return nap(ctx, time.Second)
	}}
}

func TestDrain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := settings()
		s.ThreadNumber = 2
		d := slow(w, "a", "b")
		at := d.sel
		d.sel = func(ctx context.Context, s processor.Selection) ([]string, error) {
			page, _ := at(ctx, s)
			return page, nap(ctx, time.Second)
		}
		w.start(t, d, engine.Env{}, s, "a", "b")
		time.Sleep(time.Second)
		w.expect(t, "1s [a1 a2]", "1s [b1 b2]")
		w.Drain("a")
		w.Drain("a")
		w.Drain("nobody's")
		h := w.holding(t, "a")
		if !h.Draining || h.Drained || h.InFlight != 1 || w.signalled() || w.Forget("a") {
			t.Errorf("holding: %+v, want Draining, no Drained, InFlight 1, no signal, Forget false", h)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		h = w.holding(t, "a")
		if !h.Drained || h.InFlight != 0 || !w.signalled() || w.signalled() {
			t.Errorf("holding: %+v, want Drained, InFlight 0, one signal", h)
		}
		time.Sleep(3 * time.Second)
		w.expect(t, "2s [b3 b4]", "2s [b5]") // the other queue goes on, and nothing of a starts
		if s := w.Stats(); s.SkipCount != 3 || s.SuccessCount != 7 || s.InFlight != 0 {
			t.Errorf("stats: %+v, want SkipCount 3, SuccessCount 7, InFlight 0", s)
		}
		if !w.Forget("a") || len(w.Queues()) != 1 {
			t.Errorf("held: %+v, want Forget true, one queue", w.Queues())
		}
	})
}

func TestDrainOfAnIdleQueue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(t, slow(w), engine.Env{}, settings(), "a")
		synctest.Wait()
		if w.Forget("a") {
			t.Error("Forget returned true for a queue that is not drained")
		}
		w.Drain("a")
		if !w.holding(t, "a").Drained || !w.signalled() {
			t.Error("the queue is not drained at once")
		}
		n := w.Stats().FetchCount
		time.Sleep(time.Minute)
		if w.Stats().FetchCount != n {
			t.Error("the queue was selected while it drained")
		}
		w.Resume("a")
		time.Sleep(time.Second)
		synctest.Wait()
		if w.Stats().FetchCount != n+2 {
			t.Errorf("%d selects after Resume, want 2", w.Stats().FetchCount-n)
		}
	})
}

// A running select is in flight, and the items that it returns after Drain are dropped (H1).
func TestDrainDuringSelect(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := slow(w)
		d.sel = func(ctx context.Context, _ processor.Selection) ([]string, error) {
			return []string{"a1"}, nap(ctx, time.Second)
		}
		w.start(t, d, engine.Env{}, settings(), "a")
		synctest.Wait()
		w.Drain("a")
		if h := w.holding(t, "a"); h.Drained || h.InFlight != 1 {
			t.Errorf("holding: %+v, want no Drained, InFlight 1", h)
		}
		time.Sleep(time.Second)
		w.expect(t)
		if !w.holding(t, "a").Drained || !w.signalled() || w.Stats().SkipCount != 1 {
			t.Errorf("holding: %+v, stats: %+v, want Drained, a signal, SkipCount 1", w.holding(t, "a"), w.Stats())
		}
	})
}

// A queue that is resumed while an old batch still runs waits for that batch.
func TestResumeKeepsSelectsApart(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := slow(w)
		d.sel = func(context.Context, processor.Selection) ([]string, error) {
			w.note("select")
			return []string{"a1"}, nil
		}
		d.exec = func(context.Context, []string) error { // ignores its context
			time.Sleep(3 * time.Second)
			return nil
		}
		w.start(t, d, engine.Env{}, settings(), "a")
		synctest.Wait()
		w.Revoke("a", nil)
		w.Resume("a")
		time.Sleep(4 * time.Second)
		w.expect(t, "0s select", "3s select")
	})
}

func TestRevokeCancelsCallsInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := slow(w, "a", "b")
		d.exec = func(ctx context.Context, items []string) error {
			err := nap(ctx, time.Minute)
			w.note("%s %v", items[0], err)
			return err
		}
		w.start(t, d, engine.Env{}, settings(), "a", "b")
		synctest.Wait()
		w.Drain("a")
		time.Sleep(time.Second)
		w.Revoke("a", nil)
		synctest.Wait()
		if !w.holding(t, "a").Drained || !w.signalled() {
			t.Errorf("holding: %+v, want Drained, a signal", w.holding(t, "a"))
		}
		text := w.text()
		if strings.Count(text, "context canceled") == 0 || strings.Contains(text, "b") {
			t.Errorf("journal: %s, want cancelled calls of a, and none of b", text)
		}
		w.Resume("a")
		w.Drain("b")
		time.Sleep(time.Hour)
		if w.holding(t, "a").Draining || w.Stats().FetchCount < 100 {
			t.Error("a revoked queue cannot be resumed")
		}
	})
}

// A batch that is revoked before the call of the dealer is dropped, like any unstarted item.
func TestRevokeBeforeTheCall(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		asked := 0
		env := engine.Env{Trusted: func() bool {
			if asked++; asked == 2 { // the first batch
				w.Revoke("a", nil)
			}
			return true
		}}
		s := settings()
		s.ThreadNumber = 1
		w.start(t, slow(w, "a"), env, s, "a")
		w.expect(t)
		if s := w.Stats(); s.SkipCount != 5 || s.InFlight != 0 || !w.holding(t, "a").Drained {
			t.Errorf("stats: %+v, want SkipCount 5, InFlight 0, Drained", s)
		}
	})
}

func TestGrantOfAHeldQueueIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(t, slow(w), engine.Env{}, settings(), "a")
		synctest.Wait()
		for _, epoch := range []int64{6, 7, 8} {
			err := w.Grant(processor.Queue{ID: "a", Epoch: epoch}, 1)
			if err == nil || !strings.Contains(err.Error(), "still held under epoch 7") {
				t.Errorf("grant under epoch %d: %v, want one with \"still held under epoch 7\"", epoch, err)
			}
		}
		w.Drain("a")
		if err := w.Grant(processor.Queue{ID: "a", Epoch: 8}, 1); err == nil {
			t.Error("the queue was granted while it drained")
		}
		if !w.Forget("a") {
			t.Error("Forget returned false")
		}
		if err := w.Grant(processor.Queue{ID: "a", Epoch: 8}, 1); err != nil {
			t.Error(err)
		}
	})
}

func TestQueuesAreInOrder(t *testing.T) {
	p, err := engine.New(&dealer{}, engine.Env{}, settings())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := p.Grant(processor.Queue{ID: string(rune('z' - i)), Index: i}, 20); err != nil {
			t.Fatal(err)
		}
	}
	for i, h := range p.Queues() {
		if h.Queue.Index != i {
			t.Fatalf("place %d: %+v", i, h.Queue)
		}
	}
}
