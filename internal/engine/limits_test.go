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

// busy is a dealer that always has items.
func busy(w *world) *dealer {
	return &dealer{
		sel: func(_ context.Context, s processor.Selection) ([]string, error) { return numbered(s.Queue.ID, 50), nil },
		exec: func(_ context.Context, items []string) error {
			w.note("%d of %s", len(items), items[0][:1])
			return nil
		},
	}
}

// The rate is for the whole task type: a server that holds two of four queues has half of it (X4).
func TestRateIsSharedByQueues(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := settings()
		s.RatePerSecond = 40
		w.start(t, busy(w), engine.Env{}, s)
		for i, id := range []string{"a", "b"} {
			if err := w.Grant(processor.Queue{ID: id, Index: i}, 4); err != nil {
				t.Fatal(err)
			}
		}
		rate := func(want int64) {
			t.Helper()
			before := w.Stats().SuccessCount
			time.Sleep(100 * time.Second)
			synctest.Wait()
			if n := w.Stats().SuccessCount - before; n < want-20 || n > want+20 { // a burst is the share of one second
				t.Errorf("%d items in 100 s, want %d", n, want)
			}
		}
		rate(2000)
		w.Drain("b")
		if h := w.holding(t, "b"); !h.Drained {
			t.Errorf("the rate holds up a drain: %+v, want Drained", h)
		}
		rate(1000)
		w.Resume("b")
		rate(2000)
		s.RatePerSecond = 0.4
		if err := w.Configure(s); err != nil {
			t.Fatal(err)
		}
		rate(20)
		if a, b := strings.Count(w.text(), "of a"), strings.Count(w.text(), "of b"); a < b || b < a/3 {
			t.Errorf("batches: %d of a, %d of b, want fewer of b, but at least a third", a, b)
		}
	})
}

// A batch that waits for the rate does not occupy an executor (X4).
func TestWaitForRateOccupiesNoExecutor(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := settings()
		s.ThreadNumber, s.RatePerSecond = 2, 0.01
		d := busy(w)
		d.sel = func(_ context.Context, s processor.Selection) ([]string, error) {
			if s.Queue.ID == "a" {
				return numbered("a", 50), nil
			}
			w.note("select %s", s.Queue.ID)
			return nil, nil
		}
		w.start(t, d, engine.Env{}, s, "a", "b")
		time.Sleep(2500 * time.Millisecond)
		w.expect(t, "0s 1 of a", "0s select b", "1s select b", "2s select b")
	})
}

// A server with a small share does not begin with a whole batch: the first second of 16 servers has the rate of two
// (X4).
func TestFirstSecondOfManyServersKeepsTheRate(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := settings()
		s.FetchNumber, s.ExecuteNumber, s.RatePerSecond = 500, 100, 50
		servers := make([]*world, 16)
		for i := range servers {
			servers[i] = &world{begin: w.begin}
			servers[i].start(t, newStream(0), engine.Env{}, s)
			if err := servers[i].Grant(processor.Queue{ID: "a", Index: i}, 16); err != nil {
				t.Fatal(err)
			}
		}
		executed := func() (n int64) {
			synctest.Wait()
			for _, one := range servers {
				n += one.Stats().SuccessCount
			}
			return n
		}
		time.Sleep(time.Second)
		if n := executed(); n > 100 { // a burst is the share of a second
			t.Errorf("%d items in the first second at 50 per second, want at most 100", n)
		}
		time.Sleep(59 * time.Second)
		if n := executed(); n < 2900 || n > 3100 {
			t.Errorf("%d items in the first minute at 50 per second, want 3000", n)
		}
	})
}

// A batch that is larger than a burst is split, and the rate is reached (X4).
func TestRateSplitsBatches(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := settings()
		s.ExecuteNumber, s.RatePerSecond = 100, 8
		d := busy(w)
		w.start(t, d, engine.Env{}, s, "a")
		time.Sleep(2500 * time.Millisecond)
		w.expect(t, "0s 8 of a", "1s 8 of a", "2s 8 of a")
	})
}

// X4: a processor with a rate share uses that part of the rate, and not the part of its granted queues.
func TestRateShareReplacesThePartOfTheQueues(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := settings()
		s.RatePerSecond = 64
		w.start(t, newStream(0), engine.Env{}, s)
		for i := range 10 {
			if err := w.Grant(processor.Queue{ID: string(rune('a' + i)), Index: i, Run: &processor.Run{ID: "r"}},
				64); err != nil {
				t.Fatal(err)
			}
		}
		for _, part := range []float64{1, 0.25} {
			w.SetRateShare(part)
			before := w.Stats().SuccessCount
			time.Sleep(100 * time.Second)
			synctest.Wait()
			if n, want := float64(w.Stats().SuccessCount-before), 6400*part; n < want-64 || n > want+64 {
				t.Errorf("part %g: %g items in 100 s at 64 per second, want %g", part, n, want)
			}
		}
	})
}
