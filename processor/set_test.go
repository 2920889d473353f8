package processor_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/processor"
)

// slowSet returns a SetSelector with one page of the given items. A batch takes a second.
func slowSet(w *world, items ...string) *setDealer {
	d := &setDealer{selSet: onceSet(items...)}
	d.exec = func(ctx context.Context, items []string) error {
		w.note("%v %v", items, bound(ctx))
		return nap(ctx, time.Second)
	}
	return d
}

func TestSetBatchesSpanQueues(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := slowSet(w, "a1", "b1", "b2", "b3", "a2")
		plain := d.selSet
		d.selSet = func(ctx context.Context, s processor.Selection, owned []processor.Queue) ([]string, error) {
			if s.Total != 2 || s.Limit != 10 || s.Queue != (processor.Queue{}) || len(owned) != 2 || owned[1].Epoch != 7 {
				t.Errorf("selection %+v of queues %+v, want Total 2, Limit 10, no Queue, 2 queues under epoch 7", s, owned)
			}
			w.note("select")
			return plain(ctx, s, owned)
		}
		w.start(t, d, processor.Env{Bind: bind}, settings(), "a", "b")
		time.Sleep(2500 * time.Millisecond)
		w.expect(t, "0s [a1 b1] [a:7 b:7]", "0s [a2] [a:7]", "0s [b2 b3] [b:7]", "0s select", "1s select", "2s select")
		if s := w.Stats(); s.SuccessCount != 5 || s.InFlight != 0 {
			t.Errorf("stats: %+v, want SuccessCount 5, InFlight 0", s)
		}
	})
}

// Drain drops the unstarted items of one queue and waits only for the batches that hold items of it (H1).
func TestSetDrain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := settings()
		s.ThreadNumber = 2
		w.start(t, slowSet(w, "a1", "b1", "b2", "b3", "a2", "b4", "a3", "b5"), processor.Env{}, s, "a", "b")
		w.expect(t, "0s [a1 b1] []", "0s [b2 b3] []")
		w.Drain("a")
		if h := w.holding(t, "a"); h.Drained || h.InFlight != 1 {
			t.Errorf("holding: %+v, want no Drained, InFlight 1", h)
		}
		time.Sleep(time.Second)
		w.expect(t, "1s [b4 b5] []")
		if h := w.holding(t, "a"); !h.Drained || !w.signalled() || !w.Forget("a") {
			t.Errorf("holding: %+v, want Drained, a signal, Forget true", h)
		}
		time.Sleep(10 * time.Second)
		w.expect(t)
		if s := w.Stats(); s.SkipCount != 2 || s.SuccessCount != 6 || s.InFlight != 0 {
			t.Errorf("stats: %+v, want SkipCount 2, SuccessCount 6, InFlight 0", s)
		}
	})
}

func TestSetDrainDuringSelect(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := slowSet(w)
		d.selSet = func(ctx context.Context, _ processor.Selection, owned []processor.Queue) ([]string, error) {
			if len(owned) == 2 {
				return []string{"a1", "b1", "a2"}, nap(ctx, time.Second)
			}
			return nil, nil
		}
		w.start(t, d, processor.Env{Bind: bind}, settings(), "a", "b")
		synctest.Wait()
		w.Drain("a")
		if h := w.holding(t, "a"); h.InFlight != 1 || h.Drained {
			t.Errorf("holding: %+v, want InFlight 1, no Drained", h)
		}
		time.Sleep(time.Second)
		w.expect(t, "1s [b1] [b:7]")
		if !w.holding(t, "a").Drained {
			t.Errorf("holding: %+v, want Drained", w.holding(t, "a"))
		}
	})
}

// Revoke cancels the batches that hold items of the queue, and no other batches.
func TestSetRevoke(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := slowSet(w, "a1", "b1", "b2", "b3", "a2", "a3", "b4", "c1")
		d.exec = func(ctx context.Context, items []string) error {
			err := nap(ctx, time.Second)
			w.note("%v %v", items, err)
			return err
		}
		w.start(t, d, processor.Env{}, settings(), "a", "b", "c")
		synctest.Wait()
		w.Revoke("a", nil)
		w.expect(t, "0s [a1 b1] context canceled", "0s [a2 a3] context canceled")
		if !w.holding(t, "a").Drained || w.holding(t, "b").InFlight != 2 {
			t.Errorf("held: %+v, want Drained, InFlight 2", w.Queues())
		}
		time.Sleep(1500 * time.Millisecond)
		w.expect(t, "1s [b2 b3] <nil>", "1s [b4 c1] <nil>")
		if s := w.Stats(); s.FailureCount != 0 || s.SuccessCount != 4 || s.FetchCount < 2 {
			t.Errorf("stats: %+v, want FailureCount 0, SuccessCount 4, FetchCount at least 2", s)
		}
	})
}

// If a select is cancelled because one of its queues is lost, the other queues are selected again at once.
func TestSetRevokeDuringSelect(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := slowSet(w)
		d.selSet = func(ctx context.Context, _ processor.Selection, owned []processor.Queue) ([]string, error) {
			w.note("%d queues", len(owned))
			return nil, nap(ctx, time.Minute)
		}
		w.start(t, d, processor.Env{}, settings(), "a", "b")
		time.Sleep(time.Second)
		w.Revoke("a", nil)
		w.expect(t, "0s 2 queues", "1s 1 queues")
	})
}

// A queue that is granted while the set executes is in the next select. A grant ends the rest of the set.
func TestSetGrant(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := slowSet(w)
		d.selSet = func(_ context.Context, _ processor.Selection, owned []processor.Queue) ([]string, error) {
			w.note("%d queues", len(owned))
			return nil, nil
		}
		w.start(t, d, processor.Env{}, settings(), "a")
		time.Sleep(300 * time.Millisecond)
		w.grant(t, "b")
		time.Sleep(time.Second)
		w.expect(t, "0s 1 queues", "300ms 2 queues", "1.3s 2 queues")
	})
}

// The items of other queues are skipped, the selects pause, and one alert and one line of the log tell it.
func TestSetReportsAnUnknownQueue(t *testing.T) {
	for name, items := range map[string][]string{
		"among others": {"a1", "x1", "a2", "y1", "b1"},
		"alone":        {"x1", "x2", "x3"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := slowSet(w)
				var executed []string
				d.selSet = func(context.Context, processor.Selection, []processor.Queue) ([]string, error) {
					return items, nil
				}
				d.exec = func(_ context.Context, items []string) error {
					executed = append(executed, items...)
					return nil
				}
				s := settings()
				s.ThreadNumber = 1
				told := &alertBook{}
				w.start(t, d, processor.Env{Alert: told.add}, s, "a", "b")
				time.Sleep(time.Minute)
				w.stop()
				if kinds := told.kinds(); !slices.Equal(kinds, []string{processor.AlertPage}) || w.logged(slog.LevelWarn) != 1 {
					t.Errorf("alerts %v and %d warnings, want one BAD_PAGE and one warning", kinds, w.logged(slog.LevelWarn))
				}
				if strings.ContainsAny(strings.Join(executed, ""), "xy") || len(executed) != int(w.Stats().SuccessCount) {
					t.Errorf("executed: %v, want no x and y, and SuccessCount %d items", executed, w.Stats().SuccessCount)
				}
				got := w.Stats()
				if got.LastError == nil || !strings.Contains(got.LastError.Error(), `queue "x"`) {
					t.Errorf("last error: %v, want one with queue \"x\"", got.LastError)
				}
				if got.FetchCount < 4 || got.FetchCount > 8 {
					t.Errorf("%d selects in a minute, want 4 to 8, with growing pauses", got.FetchCount)
				}
				if got.SkipCount+got.SuccessCount != got.FetchItemCount || got.SkipCount == 0 || got.InFlight != 0 {
					t.Errorf("stats: %+v, want SkipCount + SuccessCount %d, SkipCount not 0, InFlight 0", got, got.FetchItemCount)
				}
			})
		})
	}
}

func TestSetQueueOfPanics(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := slowSet(w, "a1", "a2")
		d.queueOf = func(string) string { panic("boom") }
		w.start(t, d, processor.Env{}, settings(), "a")
		synctest.Wait()
		if err := w.Stats().LastError; err == nil || !strings.Contains(err.Error(), "QueueOf: panic: boom") {
			t.Errorf("last error: %v, want one with \"QueueOf: panic: boom\"", err)
		}
		if s := w.Stats(); s.SkipCount != 2 || s.InFlight != 0 || w.logged(slog.LevelError) != 1 {
			t.Errorf("stats: %+v, want SkipCount 2, InFlight 0, 1 logged error", s)
		}
	})
}

// A batch of several queues that meets the loss of one stops all of them, because the error does not say which.
func TestSetLost(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := slowSet(w, "a1", "b1", "c1", "c2")
		d.exec = func(_ context.Context, items []string) error {
			if items[0] == "a1" {
				return errBroken
			}
			return nil
		}
		w.start(t, d, processor.Env{Lost: func(error) bool { return true }}, settings(), "a", "b", "c")
		synctest.Wait()
		for _, h := range w.Queues() {
			if h.Lost != (h.Queue.ID != "c") || h.Lost != h.Drained {
				t.Errorf("holding: %+v, want a and b Lost and Drained, and c neither", h)
			}
		}
	})
}

// The processor never writes to the dealer's slice, even when it drops items.
func TestSetDoesNotWriteToTheDealersSlice(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		page := []string{"a1", "x1", "b1", "a2", "b2", "b3"}
		d := slowSet(w, page...)
		d.selSet = onceSet(page...)
		s := settings()
		s.ThreadNumber, s.ExecuteNumber = 1, 1
		w.start(t, d, processor.Env{}, s, "a", "b")
		synctest.Wait()
		w.Drain("a")
		time.Sleep(10 * time.Second)
		w.expect(t, "0s [a1] []", "1s [b1] []", "2s [b2] []", "3s [b3] []")
		if strings.Join(page, "") != "a1x1b1a2b2b3" {
			t.Errorf("page: %v, want a1 x1 b1 a2 b2 b3", page)
		}
	})
}
