package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// measured is a dealer that always has items, and whose Execute takes a second. It counts its calls.
type measured struct {
	dealer
	now, most atomic.Int64 // calls of Execute in flight: at present, and at once at most
	selects   atomic.Int64
}

func newMeasured(w *world) *measured {
	d := &measured{}
	d.sel = func(_ context.Context, s processor.Selection) ([]string, error) {
		d.selects.Add(1)
		return numbered(s.Queue.ID, s.Limit), nil
	}
	d.exec = func(_ context.Context, items []string) error {
		n := d.now.Add(1)
		d.most.Store(max(d.most.Load(), n))
		w.note("%s", items[0][:1])
		time.Sleep(time.Second)
		d.now.Add(-1)
		return nil
	}
	return d
}

// A share of max_in_flight bounds the batches in flight. A new share is in force at once, and a smaller one cancels
// nothing (P10).
func TestShareBoundsTheBatchesInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newMeasured(w)
		w.start(t, d, engine.Env{}, settings(), "a", "b", "c")
		atOnce := func(most int, want int64) {
			t.Helper()
			w.SetMaxInFlight(most)
			// What was in flight has ended, and no call begins or ends at an instant at which this test looks: calls
			// take a second, and these instants are 1.1 s and 20 s apart.
			time.Sleep(1100 * time.Millisecond)
			d.most.Store(0)
			before := w.Stats().SuccessCount
			time.Sleep(20 * time.Second)
			if got := d.most.Load(); got != want {
				t.Errorf("%d calls of Execute at once with a share of %d, want %d", got, most, want)
			}
			if done := w.Stats().SuccessCount - before; done < 20*want {
				t.Errorf("%d items in 20 s with a share of %d", done, most)
			}
		}
		atOnce(2, 2)
		atOnce(1, 1)
		atOnce(9, 4)
		atOnce(3, 3)

		w.signalled()
		w.SetMaxInFlight(1)
		if n := w.BatchesInFlight(); n != 3 || w.signalled() {
			t.Errorf("%d batches in flight after the share fell, drained: %t; want the 3 that there were", n, w.signalled())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := w.BatchesInFlight(); n != 1 || !w.signalled() {
			t.Errorf("%d batches in flight when they have ended, and no signal; want 1", n)
		}
	})
}

// With a share of 0, a server holds no items and selects nothing, so that another one may execute them (P10).
func TestServerWithoutAShareHoldsNoItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, d := settings(), newMeasured(w)
		s.ExecuteNumber = 1
		w.start(t, d, engine.Env{}, s, "a", "b")
		time.Sleep(1500 * time.Millisecond)
		w.SetMaxInFlight(0)
		if stats := w.Stats(); stats.InFlight != 4 {
			t.Errorf("%d items in flight, want the 4 that are being executed", stats.InFlight)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		selects := d.selects.Load()
		if stats := w.Stats(); stats.InFlight != 0 || w.BatchesInFlight() != 0 {
			t.Errorf("%d items and %d batches in flight without a share", stats.InFlight, w.BatchesInFlight())
		}
		time.Sleep(time.Minute)
		if got := d.selects.Load() - selects; got != 0 {
			t.Errorf("%d selects without a share", got)
		}
		w.SetMaxInFlight(1)
		time.Sleep(10 * time.Second)
		if got := d.selects.Load() - selects; got == 0 {
			t.Error("no select after the share rose")
		}
	})
}

// Items whose select was in flight when the share fell to 0 do not stay on their page.
func TestSelectOfALostShareKeepsNoItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newMeasured(w)
		sel := d.sel
		d.sel = func(ctx context.Context, s processor.Selection) ([]string, error) {
			time.Sleep(time.Second)
			return sel(ctx, s)
		}
		w.start(t, d, engine.Env{}, settings(), "a")
		synctest.Wait()
		w.SetMaxInFlight(0)
		time.Sleep(time.Minute)
		if stats := w.Stats(); stats.InFlight != 0 || stats.FetchItemCount == 0 || d.most.Load() != 0 {
			t.Errorf("%d items in flight of %d, %d calls; want none", stats.InFlight, stats.FetchItemCount, d.most.Load())
		}
	})
}

// P10: with a single call in flight, the processor executes items of all queues.
func TestMaxInFlightStarvesNoQueue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(t, newMeasured(w), engine.Env{}, settings(), "a", "b", "c", "d", "e", "f")
		w.SetMaxInFlight(1)
		time.Sleep(10 * time.Minute)
		text := w.text()
		var counts []int
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			counts = append(counts, strings.Count(text, " "+id))
		}
		if least, most := slices.Min(counts), slices.Max(counts); least < most/2 || least == 0 {
			t.Errorf("batches by queue: %v", counts)
		}
	})
}

// A batch that ends while executors are removed leaves its place in flight to another executor.
func TestEndedBatchFreesItsPlaceForAnotherExecutor(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s, d := settings(), newMeasured(w)
		w.start(t, d, engine.Env{}, s, "a", "b")
		w.SetMaxInFlight(1)
		for threads := 4; threads > 0; threads-- {
			s.ThreadNumber = threads
			if err := w.Configure(s); err != nil {
				t.Fatal(err)
			}
			before := w.Stats().SuccessCount
			time.Sleep(10500 * time.Millisecond)
			if done := w.Stats().SuccessCount - before; done < 16 {
				t.Errorf("%d items in 10 s with %d executors, want 2 in each second", done, threads)
			}
		}
	})
}
