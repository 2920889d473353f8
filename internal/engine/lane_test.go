package engine_test

import (
	"context"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

func TestPageIsDividedIntoBatches(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{sel: once(map[string][]string{"a": {"a1", "a2", "a3", "a4", "a5"}})}
		d.exec = func(ctx context.Context, items []string) error {
			w.note("%v", items)
			return nap(ctx, time.Second)
		}
		s := settings()
		s.ThreadNumber, s.FetchNumber = 2, 3 // a select may return more than FetchNumber items
		w.start(t, d, engine.Env{}, s, "a")
		time.Sleep(10 * time.Second)
		w.expect(t, "0s [a1 a2]", "0s [a3 a4]", "1s [a5]")
		if s := w.Stats(); s.SuccessCount != 5 || s.FetchItemCount != 5 || s.InFlight != 0 {
			t.Errorf("stats: %+v, want SuccessCount 5, FetchItemCount 5, InFlight 0", s)
		}
	})
}

func TestSelectionHasTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		got := make(chan processor.Selection, 1)
		d := &dealer{sel: func(_ context.Context, s processor.Selection) ([]string, error) {
			got <- s
			return nil, nil
		}}
		s := settings()
		s.Parameter = "p"
		w.start(t, d, engine.Env{}, s)
		q := processor.Queue{ID: "a", Index: 3, Parameter: "qp", Cursor: "c", Epoch: 9}
		if err := w.Grant(q, 16); err != nil {
			t.Fatal(err)
		}
		want := processor.Selection{TaskType: "settle", OwnSign: "TEST", Parameter: "p", Queue: q, Total: 16, Limit: 10}
		if s := <-got; !reflect.DeepEqual(s, want) {
			t.Errorf("selection %+v, want %+v", s, want)
		}
	})
}

// A queue is selected again when nothing of it is in flight. It does not make other queues wait.
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
		w.start(t, d, engine.Env{}, settings(), "a", "b")
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
		w.start(t, d, engine.Env{}, s, "a")
		time.Sleep(9 * time.Second)
		w.expect(t, "0s select", "5s select", "7.1s select")
	})
}

func TestOldestCallInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{sel: once(map[string][]string{"a": {"a1", "a2", "a3"}, "b": {"b1"}})}
		d.exec = func(ctx context.Context, _ []string) error { return nap(ctx, 10*time.Second) }
		w.start(t, d, engine.Env{}, settings())
		time.Sleep(time.Second)
		w.grant(t, "a")
		time.Sleep(time.Second)
		w.grant(t, "b")
		synctest.Wait()
		s := w.Stats()
		if s.InFlight != 4 || s.OldestCallSince.Sub(w.begin) != time.Second ||
			s.LastFetchTime.Sub(w.begin) != 2*time.Second || !s.LastErrorTime.IsZero() {
			t.Errorf("stats: %+v, want InFlight 4, OldestCallSince 1 s, LastFetchTime 2 s after the start, LastErrorTime zero",
				s)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s := w.Stats(); s.InFlight != 0 || !s.OldestCallSince.IsZero() || s.ExecuteTime != 30*time.Second {
			t.Errorf("stats: %+v, want InFlight 0, OldestCallSince zero, ExecuteTime 30 s", s)
		}
	})
}
