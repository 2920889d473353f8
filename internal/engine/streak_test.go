package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// failingAfter returns settings under which five failed calls in a row are a failing dealer.
func failingAfter() engine.Settings {
	s := settings()
	s.FailingAfter, s.ExecuteNumber = 5, 1
	return s
}

// wantFailing expects that the dealer is failing since a time after the start of the test, or not at all with -1.
func (w *world) wantFailing(t *testing.T, since time.Duration) processor.Stats {
	t.Helper()
	synctest.Wait()
	s := w.Stats()
	got := time.Duration(-1)
	if !s.FailingSince.IsZero() {
		got = s.FailingSince.Sub(w.begin)
	}
	if got != since {
		t.Errorf("failing since %s, want %s; failed calls %d, done %d, failed %d", got, since, s.FailedCalls, s.SuccessCount,
			s.FailureCount)
	}
	return s
}

// A dealer whose batches all fail is failing, although its selects succeed, until an item is done.
func TestDealerWhoseBatchesFailIsFailing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 6)...)
		r.takes = time.Second
		for _, item := range r.open {
			r.bad[item] = errBroken
		}
		w.start(t, r, engine.Env{}, failingAfter(), "a")
		time.Sleep(1500 * time.Millisecond)
		w.wantFailing(t, -1) // four threads, four calls
		time.Sleep(10 * time.Minute)
		if s := w.wantFailing(t, 0); s.FailedCalls < 20 || s.LastError == nil {
			t.Errorf("%d failed calls, last error %v, want at least 20 and an error", s.FailedCalls, s.LastError)
		}
		r.mu.Lock()
		delete(r.bad, "a3")
		r.mu.Unlock()
		time.Sleep(2 * time.Minute)
		if s := w.wantFailing(t, -1); s.SuccessCount != 1 {
			t.Errorf("%d items done, want 1", s.SuccessCount)
		}
		time.Sleep(40 * time.Minute)
		if s := w.wantFailing(t, -1); s.FailedCalls != 0 { // the others have failed before
			t.Errorf("%d failed calls, want 0", s.FailedCalls)
		}
		time.Sleep(time.Hour)
		if s := w.Stats(); time.Since(s.FailingSince) > 50*time.Minute {
			t.Errorf("failing since %s, want since an hour after the success", s.FailingSince.Sub(w.begin))
		}
	})
}

// A dealer counts as failing when nothing has succeeded for half a minute: a restart of what it calls is shorter. The
// time begins with the last success, although the call that fails first began before it.
func TestDealerFailsForHalfAMinute(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{
			sel: func(_ context.Context, s processor.Selection) ([]string, error) {
				if s.Queue.ID == "b" && time.Since(w.begin) >= 10*time.Second {
					return nil, nil
				}
				return []string{s.Queue.ID + "1"}, nil
			},
			exec: func(_ context.Context, items []string) error {
				switch {
				case items[0] == "a1" && time.Since(w.begin) < 20*time.Second:
					time.Sleep(20 * time.Second) // it begins before the success and fails after it
				case items[0] == "b1":
					time.Sleep(10 * time.Second)
					return nil
				}
				return errBroken
			},
		}
		w.start(t, d, engine.Env{}, failingAfter(), "a", "b")
		time.Sleep(39 * time.Second)
		// The first one took 20 s, which counts as two more: they are the five of the setting.
		if s := w.wantFailing(t, -1); s.FailedCalls < 3 || s.SuccessCount != 1 {
			t.Errorf("%d failed calls, %d items done, want at least 3 and 1", s.FailedCalls, s.SuccessCount)
		}
		time.Sleep(2 * time.Second)
		w.wantFailing(t, 10*time.Second)
	})
}

// Calls that take long and then fail count more: with two queues of calls of a minute, nothing has succeeded for a
// minute when two of them have failed. One such call is not enough.
func TestDealerWhoseSlowCallsFailIsFailing(t *testing.T) {
	for name, wants := range map[string]struct {
		takes time.Duration
		after time.Duration // the dealer is failing then, and not a second before
	}{
		"a minute":   {time.Minute, time.Minute},
		"15 seconds": {15 * time.Second, 30 * time.Second}, // two have failed after 15 s, which is not half a minute
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := &dealer{
					sel: func(_ context.Context, s processor.Selection) ([]string, error) {
						return []string{s.Queue.ID + "1"}, nil
					},
					exec: func(context.Context, []string) error {
						time.Sleep(wants.takes)
						return errBroken
					},
				}
				w.start(t, d, engine.Env{}, failingAfter(), "a", "b")
				time.Sleep(wants.after - time.Second)
				w.wantFailing(t, -1)
				time.Sleep(time.Second + time.Millisecond)
				if s := w.wantFailing(t, 0); s.FailedCalls > 4 {
					t.Errorf("%d failed calls, want few", s.FailedCalls)
				}
			})
		})
	}
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{
			sel: func(context.Context, processor.Selection) ([]string, error) { return []string{"a1"}, nil },
			exec: func(context.Context, []string) error {
				time.Sleep(10 * time.Minute)
				return errBroken
			},
		}
		w.start(t, d, engine.Env{}, failingAfter(), "a")
		time.Sleep(10*time.Minute + 500*time.Millisecond)
		if s := w.wantFailing(t, -1); s.FailedCalls != 1 {
			t.Errorf("%d failed calls, want 1", s.FailedCalls)
		}
	})
}

// One poison item says nothing about the dealer, however often it fails and however little else there is to do.
func TestPoisonIsNoFailingDealer(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1")
		r.bad["a1"] = errBroken
		w.start(t, r, engine.Env{}, failingAfter(), "a", "b")
		time.Sleep(time.Hour)
		if s := w.wantFailing(t, -1); s.FailedCalls < 20 {
			t.Errorf("%d failed calls, want at least 20", s.FailedCalls)
		}
	})
}

// Items that fail in several queues are not one poison item.
func TestDealerThatFailsInSeveralQueuesIsFailing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1", "b1")
		r.bad["a1"], r.bad["b1"] = errBroken, errBroken
		w.start(t, r, engine.Env{}, failingAfter(), "a", "b")
		time.Sleep(time.Minute)
		w.wantFailing(t, 0)
	})
}

// Without keys, the processor knows no items, and each failed batch counts.
func TestDealerWithoutKeysIsFailing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &dealer{
			sel:  func(context.Context, processor.Selection) ([]string, error) { return []string{"a1"}, nil },
			exec: func(context.Context, []string) error { return errBroken },
		}
		w.start(t, d, engine.Env{}, failingAfter(), "a")
		time.Sleep(time.Minute)
		w.wantFailing(t, 0)
	})
}

// A dealer whose selects all fail is failing until a select of the failing queue succeeds, even if it finds nothing.
func TestDealerWhoseSelectsFailIsFailing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var broken atomic.Bool
		broken.Store(true)
		d := &dealer{sel: func(_ context.Context, s processor.Selection) ([]string, error) {
			if broken.Load() && s.Queue.ID == "a" {
				return nil, errBroken
			}
			return nil, nil
		}}
		w.start(t, d, engine.Env{}, failingAfter(), "a", "b")
		time.Sleep(time.Minute)
		w.wantFailing(t, 0) // the selects of b succeed, and nothing is done
		broken.Store(false)
		time.Sleep(2 * time.Minute)
		if s := w.wantFailing(t, -1); s.FailedCalls != 0 {
			t.Errorf("%d failed calls, want 0", s.FailedCalls)
		}
	})
}

// A dealer is no longer failing when nothing is left that can fail: its items are gone or dead, or its queues are gone.
func TestDealerWithNothingLeftIsNotFailing(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, w *world, r *rows){
		"items are gone": func(_ *testing.T, _ *world, r *rows) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.open = nil
		},
		"items die": func(t *testing.T, w *world, _ *rows) {
			s := failingAfter()
			s.ItemMaxAttempts = 2
			if err := w.Configure(s); err != nil {
				t.Fatal(err)
			}
		},
		"queues are gone": func(t *testing.T, w *world, _ *rows) {
			for _, id := range []string{"a", "b"} {
				w.wantFailing(t, 0)
				w.Drain(id)
				synctest.Wait()
				if !w.Forget(id) {
					t.Errorf("queue %s is still held", id)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				r := newRows(w, "a1", "b1")
				r.bad["a1"], r.bad["b1"] = errBroken, errBroken
				w.start(t, r, engine.Env{}, failingAfter(), "a", "b")
				time.Sleep(time.Minute)
				w.wantFailing(t, 0)
				end(t, w, r)
				time.Sleep(10 * time.Minute)
				w.wantFailing(t, -1)
			})
		})
	}
}

// Failed sweeps of a queue are one streak, although each sweep has its own grant and passes its items. It ends with a
// sweep that is complete without a failure.
func TestFailedSweepsAreOneStreak(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 3)...)
		for _, item := range r.open {
			r.bad[item] = errBroken
		}
		w.sweep(t, r, engine.Env{}, failingAfter(), "a")
		again := func(done, failed int64) {
			t.Helper()
			w.swept(t, "a", done, failed)
			w.Drain("a")
			if !w.Forget("a") {
				t.Fatal("queue a is still held")
			}
			time.Sleep(time.Minute)
			w.grantRun(t, nightly(), "a")
		}
		again(0, 3)
		w.wantFailing(t, 0)
		r.mu.Lock()
		r.open = nil
		r.mu.Unlock()
		again(0, 3)
		w.swept(t, "a", 0, 0)
		w.wantFailing(t, -1)
	})
}
