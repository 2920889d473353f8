package processor_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/processor"
)

func TestPageIsCutIntoBatches(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{sel: once(map[string][]string{"a": {"a1", "a2", "a3", "a4", "a5"}})}
		d.exec = func(ctx context.Context, items []string) error {
			w.note("%v", items)
			return nap(ctx, time.Second)
		}
		s := settings()
		s.ThreadNumber, s.FetchNumber = 2, 3 // more than FetchNumber items are fine
		w.start(t, d, processor.Env{}, s, "a")
		time.Sleep(10 * time.Second)
		w.expect(t, "0s [a1 a2]", "0s [a3 a4]", "1s [a5]")
		if s := w.Stats(); s.SuccessCount != 5 || s.FetchItemCount != 5 || s.InHand != 0 {
			t.Errorf("stats: %+v", s)
		}
	})
}

func TestSelectionTellsTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		got := make(chan processor.Selection, 1)
		d := &dealer{sel: func(_ context.Context, s processor.Selection) ([]string, error) {
			got <- s
			return nil, nil
		}}
		s := settings()
		s.Parameter = "p"
		w.start(t, d, processor.Env{}, s)
		q := processor.Queue{ID: "a", Index: 3, Parameter: "qp", Cursor: "c", Epoch: 9}
		if err := w.Grant(q, 16); err != nil {
			t.Fatal(err)
		}
		want := processor.Selection{TaskType: "settle", OwnSign: "TEST", Parameter: "p", Queue: q, Total: 16, Limit: 10}
		if s := <-got; s != want {
			t.Errorf("selection %+v, want %+v", s, want)
		}
	})
}

// A queue is selected again when nothing of it is in hand, and no other queue waits for that.
func TestSleepWaitsForItsOwnLaneOnly(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var a atomic.Int32
		d := &dealer{sel: func(_ context.Context, s processor.Selection) ([]string, error) {
			w.note("select %s", s.Queue.ID)
			if s.Queue.ID == "a" && a.Add(1) == 1 {
				return []string{"a1", "a2", "a3"}, nil
			}
			return nil, nil
		}}
		d.exec = func(ctx context.Context, items []string) error {
			return nap(ctx, time.Duration(items[0][1]-'0')*time.Second) // a1: 1 s, a3: 3 s
		}
		w.start(t, d, processor.Env{}, settings(), "a", "b")
		time.Sleep(3500 * time.Millisecond)
		w.expect(t, "0s select a", "0s select b", "1s select b", "2s select b", "3s select a", "3s select b")
	})
}

func TestSleepTimes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var n atomic.Int32
		d := &dealer{sel: func(_ context.Context, _ processor.Selection) ([]string, error) {
			w.note("select")
			if n.Add(1) == 2 {
				return []string{"a1"}, nil
			}
			return nil, nil
		}}
		d.exec = func(ctx context.Context, _ []string) error { return nap(ctx, 2*time.Second) }
		s := settings()
		s.SleepTimeNoData, s.SleepTimeInterval = 5*time.Second, 100*time.Millisecond
		w.start(t, d, processor.Env{}, s, "a")
		time.Sleep(9 * time.Second)
		w.expect(t, "0s select", "5s select", "7.1s select")
	})
}

// Lanes that always have work take turns, and one that becomes due meanwhile is not passed over.
func TestTurnsAreFair(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var order []string
		d := &dealer{sel: func(_ context.Context, s processor.Selection) ([]string, error) {
			order = append(order, s.Queue.ID)
			if s.Queue.ID == "d" {
				return nil, nil
			}
			return []string{s.Queue.ID + "1"}, nil
		}}
		d.exec = func(ctx context.Context, _ []string) error { return nap(ctx, 300*time.Millisecond) }
		s := settings()
		s.ThreadNumber = 1
		w.start(t, d, processor.Env{}, s, "a", "b", "c", "d")
		time.Sleep(3 * time.Second)
		w.stop()
		// d rests from 0.9 s to 1.9 s. Then b and c have been due for longer, and a, which ended at 2.1 s, has not.
		if got := strings.Join(order, ""); !strings.HasPrefix(got, "abcdabcabcda") {
			t.Errorf("order of selects: %s", got)
		}
	})
}

// Pages that are worked at the same time have their batches taken in turn.
func TestPagesAreWorkedInTurn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{sel: func(ctx context.Context, s processor.Selection) ([]string, error) {
			if w.Stats().FetchCount > 1 {
				return nil, nil
			}
			id := s.Queue.ID
			return []string{id + "1", id + "2", id + "3"}, nap(ctx, time.Second)
		}}
		d.exec = func(ctx context.Context, items []string) error {
			w.note("%s", items[0][:1])
			return nap(ctx, time.Second)
		}
		s := settings()
		s.ThreadNumber, s.ExecuteNumber = 2, 1
		w.start(t, d, processor.Env{}, s, "a", "b")
		time.Sleep(4 * time.Second)
		w.expect(t, "1s a", "1s b", "2s a", "2s b", "3s a", "3s b")
	})
}

func TestAtMostThreadNumberCalls(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var now, most atomic.Int32
		busy := func(ctx context.Context) error {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				continue
			}
			return nap(ctx, time.Second)
		}
		d := &dealer{
			sel: func(ctx context.Context, _ processor.Selection) ([]string, error) {
				return []string{"1", "2", "3", "4", "5"}, busy(ctx)
			},
			exec: func(ctx context.Context, _ []string) error { return busy(ctx) },
		}
		s := settings()
		s.ThreadNumber = 3
		w.start(t, d, processor.Env{}, s, "a", "b", "c", "d", "e")
		time.Sleep(time.Minute)
		w.stop()
		if most.Load() != 3 {
			t.Errorf("%d calls at once, want 3", most.Load())
		}
		if n := w.Stats().SuccessCount; n < 200 { // 3 executors, 60 s, 1 select for 3 batches with 5 items
			t.Errorf("only %d items: executors idle while there is work", n)
		}
	})
}

func TestOldestInHand(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{sel: once(map[string][]string{"a": {"a1", "a2", "a3"}, "b": {"b1"}})}
		d.exec = func(ctx context.Context, _ []string) error { return nap(ctx, 10*time.Second) }
		w.start(t, d, processor.Env{}, settings())
		time.Sleep(time.Second)
		w.grant(t, "a")
		time.Sleep(time.Second)
		w.grant(t, "b")
		synctest.Wait()
		s := w.Stats()
		if s.InHand != 4 || s.OldestInHandSince.Sub(w.begin) != time.Second || s.LastFetchTime.Sub(w.begin) != 2*time.Second || !s.LastErrorTime.IsZero() {
			t.Errorf("stats: %+v", s)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s := w.Stats(); s.InHand != 0 || !s.OldestInHandSince.IsZero() || s.ExecuteTime != 30*time.Second {
			t.Errorf("stats: %+v", s)
		}
	})
}
