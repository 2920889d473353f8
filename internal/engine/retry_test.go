package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// usual returns settings like the defaults of package center.
func usual() engine.Settings {
	return engine.Settings{
		ThreadNumber: 5, FetchNumber: 500, ExecuteNumber: 100, SleepTimeNoData: 500 * time.Millisecond,
		Retry: time.Second, RetryFactor: 2, RetryJitter: 0.5, RetryMax: 6 * time.Hour, ItemMaxAttempts: 25,
		ProbeMax: 30 * time.Second,
	}
}

// With the usual policy an item is dead after days, not after an outage.
func TestItemIsRetriedForDays(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1")
		r.bad["a1"] = errBroken
		s := usual()
		s.SleepTimeNoData = 24 * time.Hour // only the pauses of the item cause selects
		w.start(t, r, engine.Env{}, s, "a")
		for w.Stats().DeadCount == 0 && time.Since(w.begin) < 10*24*time.Hour {
			time.Sleep(time.Minute)
		}
		if d := time.Since(w.begin); d < 31*time.Hour || d > 67*time.Hour || r.fails["a1"] != 25 {
			t.Errorf("a1 is dead after %s and %d attempts, want 31 h to 67 h and 25", d, r.fails["a1"])
		}
	})
}

func TestPausesGrowByTheFactor(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1")
		r.bad["a1"] = errBroken
		s := usual()
		s.RetryFactor, s.RetryJitter, s.RetryMax, s.SleepTimeNoData = 3, 0, 10*time.Second, time.Hour
		w.start(t, r, engine.Env{}, s, "a")
		time.Sleep(25 * time.Second)
		w.expect(t, "0s [a1]", "1s [a1]", "4s [a1]", "13s [a1]", "23s [a1]")
	})
}

// The pause of a queue stays below a minute, so that it notices soon that an outage is over.
func TestQueuePausesForAMinuteAtMost(t *testing.T) {
	for name, inSelect := range map[string]bool{"select": true, "execute": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				s := usual()
				s.RetryJitter, s.ProbeMax = 0, 0 // without the breaker
				w.start(t, failing(w, inSelect, func() error { return errBroken }), engine.Env{}, s, "a")
				time.Sleep(200 * time.Second)
				w.expect(t, "0s a", "1s a", "3s a", "7s a", "15s a", "31s a", "1m3s a", "2m3s a", "3m3s a")
			})
		})
	}
}

// selectTimes is rows that notes the times of its selects.
type selectTimes struct {
	*rows
	begun []time.Duration
}

func (d *selectTimes) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	d.mu.Lock()
	d.begun = append(d.begun, time.Since(d.w.begin))
	d.mu.Unlock()
	return d.rows.Select(ctx, s)
}

// densest returns the largest number of selects in any ten seconds after from.
func (d *selectTimes) densest(from time.Duration) (most int) {
	for i, first := range d.begun {
		n := 0
		for _, other := range d.begun[i:] {
			if other < first+10*time.Second {
				n++
			}
		}
		if first >= from {
			most = max(most, n)
		}
	}
	return most
}

// Retries that become due one after the other share the selects.
func TestRetriesShareSelects(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &selectTimes{rows: newRows(w, numbered("a", 500)...)}
		for _, item := range d.open {
			d.bad[item] = errBroken
		}
		d.takes = 10 * time.Millisecond
		w.start(t, d, engine.Env{}, usual(), "a")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := d.densest(time.Second); n > 21 {
			t.Errorf("%d selects of a queue of failing items in ten seconds, want at most 21", n)
		}
	})
}

// X2: a failure of Busy is no attempt, however often it comes: the item waits as it asks, and the store has the pause. Other
// failures count from where they were.
func TestBusyIsNoAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1", "a2"), newMemory()
		r.bad["a1"] = processor.Busy(7*time.Second, errBroken)
		s := usual()
		s.SleepTimeNoData, s.ItemMaxAttempts = time.Second, 3
		w.start(t, r, engine.Env{Items: failedItems{m}}, s, "a")
		time.Sleep(time.Minute)
		want := engine.FailedItem{Key: "a1", LastError: "broken (retry after 7s)"}
		got := m.records()["a1"]
		got.RetryIn = 0
		if diff := cmp.Diff(want, got); diff != "" || r.fails["a1"] != 8 {
			t.Errorf("after %d failures in a minute, want 8: the record differs:\n%s", r.fails["a1"], diff)
		}
		r.mu.Lock()
		r.bad["a1"] = errBroken
		r.mu.Unlock()
		time.Sleep(time.Minute)
		if got := m.records()["a1"]; !got.Dead || got.Attempts != 3 {
			t.Errorf("after three other failures the record is %+v, want dead", got)
		}
	})
	if err := processor.Busy(0, errBroken); err != errBroken { //nolint:errorlint // it is the same error
		t.Errorf("without a pause, Busy returns %v", err)
	}
}

// X2: the policy bounds the pause that a dealer asks for, of an item, of a batch and of a select. A service that asks for
// 136 years parks nothing for longer.
func TestRetryMaxBoundsTheAskedPause(t *testing.T) {
	forever := func() error { return processor.RetryAfter(4_294_967_295*time.Second, errBroken) }
	for _, probeMax := range []time.Duration{0, 30 * time.Second} {
		bubble(t, func(t *testing.T, w *world) {
			r := newRows(w, "a1")
			r.bad["a1"] = forever()
			s := usual()
			s.RetryMax, s.SleepTimeNoData, s.ProbeMax = 10*time.Second, time.Hour, probeMax
			w.start(t, r, engine.Env{}, s, "a")
			time.Sleep(25 * time.Second)
			w.expect(t, "0s [a1]", "10s [a1]", "20s [a1]")
		})
		for _, inSelect := range []bool{true, false} {
			bubble(t, func(t *testing.T, w *world) {
				s := usual()
				s.RetryMax, s.ProbeMax = 10*time.Second, probeMax
				w.start(t, failing(w, inSelect, forever), engine.Env{}, s, "a")
				time.Sleep(25 * time.Second)
				w.expect(t, "0s a", "10s a", "20s a")
			})
		}
	}
}

// X2: an item that has failed is retried beside a backlog, although a page has fewer items than a batch may have.
func TestRetryBesideABacklogOfSmallPages(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 3000)...)
		r.bad["a0"] = errBroken
		s := settings()
		s.ThreadNumber, s.FetchNumber, s.ExecuteNumber, s.QueueRatePerSecond, s.ItemMaxAttempts = 2, 100, 10, 5, 5
		w.start(t, r, engine.Env{}, s, "a")
		time.Sleep(5 * time.Minute)
		r.mu.Lock()
		defer r.mu.Unlock()
		if n := r.fails["a0"]; n != 5 || len(r.open) < 1000 {
			t.Errorf("the item failed %d times in five minutes beside %d others, want 5 times beside 1000 at least",
				n, len(r.open))
		}
	})
}

// X2: an item that has failed is retried beside a backlog, although each page takes so long that it is cut for another
// queue that waits.
func TestRetryBesideABacklogOfCutPages(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ids := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
		var items []string
		for _, id := range ids {
			items = append(items, numbered(id, 1000)...)
		}
		r := newRows(w, items...)
		r.bad["a0"], r.takes = errBroken, 300*time.Millisecond
		s := settings()
		s.ThreadNumber, s.FetchNumber, s.ExecuteNumber, s.RatePerSecond = 5, 100, 1, 5
		w.start(t, r, engine.Env{}, s, ids...)
		w.SetMaxInFlight(1)
		time.Sleep(20 * time.Minute)
		r.mu.Lock()
		defer r.mu.Unlock()
		if n := r.fails["a0"]; n < 5 {
			t.Errorf("the item failed %d times in 20 minutes, want at least 5 times", n)
		}
	})
}

// X2: an item that failed once is retried although items before it fail for ever, more of them than there are retries
// beside a backlog.
func TestRetriesOfPoisonLetOthersRetry(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const poison = 60 // each is due once a second, and 50 calls a second leave about seven for retries
		d := newBlocks(poison)
		late := blockKey("a", poison)
		retried := make(chan struct{})
		failed := false
		flaky := &dealer{sel: d.Select, exec: func(ctx context.Context, items []string) error {
			if slices.Contains(items, late) {
				if !failed {
					failed = true
					return errBroken
				}
				defer close(retried)
			}
			return d.Execute(ctx, items)
		}}
		s := usual()
		s.ThreadNumber, s.ExecuteNumber, s.RetryMax, s.ItemMaxAttempts = 1, 1, time.Second, 0
		d.takes = 20 * time.Millisecond
		w.start(t, keyedDealer{flaky}, engine.Env{Items: failedItems{newMemory()}}, s, "a")
		select {
		case <-retried:
		case <-time.After(10 * time.Minute):
			t.Error("the item was not retried in ten minutes")
		}
	})
}

// X2: a retry comes ahead of the items that have paid for it, because each of these pages takes so long that it is cut
// for another queue.
func TestRetryComesAheadOfItemsOfCutPages(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ids := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
		var items []string
		for _, id := range ids {
			items = append(items, numbered(id, 800)...)
		}
		r := newRows(w, items...)
		r.bad["a0"], r.takes = errBroken, 100*time.Millisecond
		s := settings()
		s.ThreadNumber, s.FetchNumber, s.ExecuteNumber, s.RatePerSecond = 6, 10, 1, 5
		w.start(t, r, engine.Env{}, s, ids...)
		time.Sleep(20 * time.Minute)
		r.mu.Lock()
		defer r.mu.Unlock()
		if n := r.fails["a0"]; n < 10 {
			t.Errorf("the item failed %d times in 20 minutes, want at least 10 times", n)
		}
	})
}
