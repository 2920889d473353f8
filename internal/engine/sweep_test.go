package engine_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// nightly returns a run.
func nightly() *processor.Run {
	return &processor.Run{
		ID: "r1", Key: "nightly", Params: "p", ScheduledAt: time.Unix(1, 0), StartedAt: time.Unix(2, 0),
		Attempt: 1,
	}
}

// sweep starts a processor and grants the queues with a run.
func (w *world) sweep(t *testing.T, d processor.TaskDealer[string], env engine.Env, s engine.Settings,
	ids ...string,
) {
	t.Helper()
	w.start(t, d, env, s)
	w.grantRun(t, nightly(), ids...)
}

func (w *world) grantRun(t *testing.T, r *processor.Run, ids ...string) {
	t.Helper()
	for i, id := range ids {
		if err := w.Grant(processor.Queue{ID: id, Index: i, Epoch: 7, Run: r}, len(ids)); err != nil {
			t.Fatal(err)
		}
	}
}

// swept expects that the sweep of a queue is complete, with the given numbers of items.
func (w *world) swept(t *testing.T, id string, done, failed int64) engine.SweepState {
	t.Helper()
	synctest.Wait()
	h := w.holding(t, id)
	s := h.Sweep
	if !s.Swept || s.Failed || !s.Ended() || s.ItemsDone != done || s.ItemsFailed != failed ||
		(s.Err != nil) != (failed > 0) || h.EmptySince.IsZero() {
		t.Errorf("holding: %+v, want %d done and %d failed\n%s", h, done, failed, w.text())
	}
	return s
}

// failedWith expects that the sweep of a queue has failed.
func (w *world) failedWith(t *testing.T, id, text string) engine.SweepState {
	t.Helper()
	synctest.Wait()
	s := w.holding(t, id).Sweep
	if s.Swept || !s.Failed || !s.Ended() || s.Err == nil || !strings.Contains(s.Err.Error(), text) ||
		!strings.Contains(s.Err.Error(), "queue "+id) {
		t.Errorf("sweep: %+v, want error %q\n%s", s, text, w.text())
	}
	if !w.emptied() {
		t.Error("Emptied has no value")
	}
	return s
}

// emptied reports whether Emptied has a value, and receives it.
func (w *world) emptied() bool {
	select {
	case <-w.Emptied():
		return true
	default:
		return false
	}
}

// plain hides the capabilities of a dealer.
type plain struct{ processor.TaskDealer[string] }

// forms returns dealers of n items of queue a, by capability.
func forms(w *world, n int) map[string]processor.TaskDealer[string] {
	return map[string]processor.TaskDealer[string]{
		"plain": plain{newRows(w, numbered("a", n)...)}, "keyed": newRows(w, numbered("a", n)...),
		"keyed, notsleep": newRows(w, numbered("a", n)...), "cursored": newTape(w, n),
	}
}

var allForms = []string{"plain", "keyed", "keyed, notsleep", "cursored"}

// eachForm runs f in a bubble for each form of a dealer of n items, with settings that make each pause long.
func eachForm(t *testing.T, n int, f func(t *testing.T, w *world, d processor.TaskDealer[string],
	s engine.Settings),
) {
	for _, form := range allForms {
		t.Run(form, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				s := settings()
				s.NotSleep = strings.Contains(form, "notsleep")
				s.SleepTimeNoData, s.Retry, s.RetryMax = time.Hour, time.Hour, time.Hour
				f(t, w, forms(w, n)[form], s)
			})
		})
	}
}

func TestSweepGoesOnWithoutPauseUntilDrained(t *testing.T) {
	eachForm(t, 35, func(t *testing.T, w *world, d processor.TaskDealer[string], s engine.Settings) {
		var selects int
		env := engine.Env{Hooks: []processor.Hooks{{Select: func(ctx context.Context,
			s processor.Selection,
		) (context.Context, func(int, error)) {
			if selects++; s.Run == nil || !reflect.DeepEqual(s.Run, nightly()) || s.Queue.Run != s.Run {
				t.Errorf("selection: %+v, want the run %+v in Run and in Queue", s, *nightly())
			}
			return ctx, nil
		}}}}
		w.sweep(t, d, env, s, "a")
		w.swept(t, "a", 35, 0)
		if selects != 5 && !s.NotSleep || time.Since(w.begin) > 0 || !w.emptied() || w.emptied() {
			t.Errorf("%d selects in %s, want 5 (in SLEEP) at once, and one signal", selects, time.Since(w.begin))
		}
		selects = 0
		if err := w.Configure(s); err != nil {
			t.Fatal(err)
		}
		w.Reload()
		w.Wake()
		w.Drain("a")
		w.Resume("a")
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if selects != 0 {
			t.Errorf("%d selects of a queue that is swept, want 0", selects)
		}
		w.Drain("a")
		if !w.Forget("a") {
			t.Error("Forget returned false")
		}
	})
}

// The same queue may be swept again under another grant, which does not depend on the one before.
func TestSweepAgain(t *testing.T) {
	eachForm(t, 3, func(t *testing.T, w *world, d processor.TaskDealer[string], s engine.Settings) {
		var runs []*processor.Run
		env := engine.Env{Hooks: []processor.Hooks{{Select: func(ctx context.Context,
			s processor.Selection,
		) (context.Context, func(int, error)) {
			runs = append(runs, s.Run)
			return ctx, nil
		}}}}
		w.sweep(t, d, env, s, "a")
		w.swept(t, "a", 3, 0)
		w.Drain("a")
		w.Forget("a")
		r := nightly()
		r.Attempt, r.Recovering = 2, true
		w.grantRun(t, r, "a")
		r.Attempt = 3 // Grant has copied the run
		synctest.Wait()
		if h := w.holding(t, "a"); !h.Sweep.Swept || h.Queue.Run.Attempt != 2 || runs[0] == runs[len(runs)-1] ||
			!runs[len(runs)-1].Recovering {
			t.Errorf("holding: %+v, want Swept, and a Run of its own with Attempt 2 and Recovering", h)
		}
	})
}

func TestSweepRests(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := settings()
		s.SleepTimeInterval, s.FetchNumber, s.ExecuteNumber = time.Second, 2, 2
		w.sweep(t, newRows(w, numbered("a", 5)...), engine.Env{}, s, "a")
		time.Sleep(time.Minute)
		w.expect(t, "0s [a0 a1]", "1s [a2 a3]", "2s [a4]") // sleep_time_interval applies to sweeps too
		w.swept(t, "a", 5, 0)
	})
}

// A queue without a Run is not swept, even beside a queue with a Run.
func TestSweepBesideAQueueWithoutRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, append(numbered("a", 30), numbered("b", 30)...)...)
		r.bad["a3"], r.bad["b3"] = errBroken, errBroken
		w.start(t, r, engine.Env{}, settings(), "b")
		w.grantRun(t, nightly(), "a")
		w.swept(t, "a", 29, 1)
		time.Sleep(time.Minute)
		w.swept(t, "a", 29, 1)
		h := w.holding(t, "b")
		if !reflect.DeepEqual(h.Sweep, engine.SweepState{}) || h.Queue.Run != nil || r.fails["a3"] != 1 ||
			r.fails["b3"] < 4 {
			t.Errorf("holding: %+v, failed %v, want no Sweep and no Run, a3 failed once, b3 at least 4 times", h, r.fails)
		}
	})
}

// Without keys no item can be blamed: the sweep fails, and unstarted items are dropped.
func TestSweepEndsWithAFailedBatch(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return processor.RetryAfter(time.Second, errBroken) }, "panic": explode,
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := slow(w, "a")
				d.exec = func(ctx context.Context, items []string) error {
					w.note("%v", items)
					if items[0] == "a1" {
						return errors.Join(nap(ctx, time.Second), fail())
					}
					return nap(ctx, 2*time.Second)
				}
				s := settings()
				s.ThreadNumber = 2
				w.sweep(t, d, engine.Env{}, s, "a", "b")
				time.Sleep(time.Second)
				state := w.failedWith(t, "a", "execute 2 items")
				if state.ItemsDone != 0 || state.ItemsFailed != 2 || w.holding(t, "a").InFlight != 1 {
					t.Errorf("sweep: %+v, want ItemsDone 0, ItemsFailed 2, InFlight 1", state)
				}
				w.Drain("a")
				time.Sleep(time.Hour)
				w.expect(t, "0s [a1 a2]", "0s [a3 a4]")
				h := w.holding(t, "a")
				if h.Sweep.ItemsDone != 2 || h.Sweep.Swept || !h.Drained { // the batch in flight counts
					t.Errorf("holding: %+v, want ItemsDone 2, no Swept, Drained", h)
				}
				if s := w.Stats(); s.SkipCount != 1 || s.InFlight != 0 || s.FetchCount != 2 {
					t.Errorf("stats: %+v, want SkipCount 1, InFlight 0, FetchCount 2", s)
				}
				w.swept(t, "b", 0, 0)
			})
		})
	}
}

func TestSweepEndsWithAFailedSelect(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return processor.RetryAfter(time.Second, errBroken) }, "panic": explode,
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			for _, form := range allForms {
				bubble(t, func(t *testing.T, w *world) {
					d := failing(w, true, fail)
					all := map[string]processor.TaskDealer[string]{
						"plain": d, "keyed": &keyed{*d}, "keyed, notsleep": &keyed{*d}, "cursored": &cursored{*d},
					}
					s := settings()
					s.NotSleep = strings.Contains(form, "notsleep")
					w.sweep(t, all[form], engine.Env{}, s, "a", "b")
					w.failedWith(t, "a", "select queue a")
					time.Sleep(time.Hour)
					w.expect(t, "0s a", "0s b")
				})
			}
		})
	}
}
