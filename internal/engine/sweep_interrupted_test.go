package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// In NOTSLEEP an empty select beside a batch proves nothing. The sweep waits for the batch and selects once more (R9).
func TestSweepNotSleepWaitsForBatchesInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := 0
		d := &keyed{}
		d.sel = func(context.Context, processor.Selection) ([]string, error) {
			w.note("select")
			switch n++; n {
			case 1:
				return []string{"a1", "a2", "a3"}, nil
			case 3: // an item that appears while the last batch runs is found
				return []string{"a4"}, nil
			}
			return nil, nil
		}
		d.exec = func(ctx context.Context, items []string) error {
			w.note("%v", items)
			return nap(ctx, time.Minute)
		}
		w.sweep(t, d, engine.Env{}, notSleep(), "a")
		time.Sleep(119 * time.Second)
		if w.holding(t, "a").Sweep.Ended() || w.emptied() {
			t.Errorf("holding: %+v, want not ended, no signal", w.holding(t, "a"))
		}
		w.expect(t, "0s [a1 a2]", "0s [a3]", "0s select", "0s select", "1m0s [a4]", "1m0s select", "1m0s select")
		time.Sleep(time.Hour)
		w.expect(t, "2m0s select")
		w.swept(t, "a", 4, 0)
	})
}

// The suspects of a failed batch do not wait for other batches in flight.
func TestSweepNotSleepRetriesSuspectsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 4)...)
		r.bad["a3"] = errBroken
		d := &longFirst{r}
		w.sweep(t, d, engine.Env{}, notSleep(), "a")
		time.Sleep(time.Second)
		synctest.Wait()
		if s := w.holding(t, "a").Sweep; s.ItemsDone != 1 || s.ItemsFailed != 1 || s.Ended() {
			t.Errorf("sweep: %+v, want ItemsDone 1, ItemsFailed 1, not ended\n%s", s, w.text())
		}
		time.Sleep(time.Minute)
		w.swept(t, "a", 3, 1)
	})
}

// longFirst takes a minute for its first items, and no time for the others.
type longFirst struct{ *rows }

func (d *longFirst) Execute(ctx context.Context, items []string) error {
	if items[0] == "a0" {
		if err := nap(ctx, time.Minute); err != nil {
			return err
		}
	} else if err := nap(ctx, time.Millisecond); err != nil {
		return err
	}
	return d.rows.Execute(ctx, items)
}

// A sweep that fails during a select drops the result of the select.
func TestSweepThatFailsDuringASelect(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := 0
		d := &nameless{keyed: keyed{dealer{}}}
		d.sel = func(ctx context.Context, _ processor.Selection) ([]string, error) {
			if n++; n == 1 {
				return []string{"a1"}, nil
			}
			err := nap(ctx, 2*time.Second)
			d.silent.Store(false)
			return []string{"a2", "a3"}, err
		}
		d.exec = func(ctx context.Context, items []string) error {
			w.note("%v", items)
			err := nap(ctx, time.Second)
			d.silent.Store(true)
			return errors.Join(err, errBroken)
		}
		w.sweep(t, d, engine.Env{}, notSleep(), "a")
		time.Sleep(time.Hour)
		w.failedWith(t, "a", "broken")
		w.expect(t, "0s [a1]")
		if s := w.Stats(); s.SkipCount != 2 || s.InFlight != 0 || s.FetchCount != 2 {
			t.Errorf("stats: %+v, want SkipCount 2, InFlight 0, FetchCount 2", s)
		}
	})
}

// A sweep that fails while its lane rests in NOTSLEEP is not selected any more.
func TestSweepThatFailsDuringARest(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &nameless{keyed: keyed{dealer{sel: once(map[string][]string{"a": {"a1"}})}}}
		d.exec = func(ctx context.Context, _ []string) error {
			err := nap(ctx, time.Second)
			d.silent.Store(true)
			return errors.Join(err, errBroken)
		}
		s := notSleep()
		s.SleepTimeInterval = time.Minute
		w.sweep(t, d, engine.Env{}, s, "a")
		time.Sleep(time.Hour)
		w.failedWith(t, "a", "broken")
		if n := w.Stats().FetchCount; n != 1 {
			t.Errorf("%d selects, want 1", n)
		}
	})
}

// A sweep is not complete after a drain, a revoke or lost trust. It goes on where it was.
func TestSweepGoesOnAfterAnInterruption(t *testing.T) {
	for name, stop := range map[string]func(*world){
		"drain":  func(w *world) { w.Drain("a") },
		"revoke": func(w *world) { w.Revoke("a", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			eachForm(t, 10, func(t *testing.T, w *world, d processor.TaskDealer[string], s engine.Settings) {
				switch d := d.(type) {
				case plain:
					d.TaskDealer.(*rows).takes = time.Second
				case *rows:
					d.takes = time.Second
				case *tape:
					d.takes = time.Second
				}
				s.ThreadNumber = 2
				w.sweep(t, d, engine.Env{}, s, "a")
				time.Sleep(500 * time.Millisecond)
				stop(w)
				time.Sleep(time.Minute)
				synctest.Wait()
				if h := w.holding(t, "a"); h.Sweep.Ended() || !h.Drained || h.Sweep.Err != nil || w.emptied() {
					t.Errorf("holding: %+v, want not ended, Drained, no Err, no signal", h)
				}
				w.Resume("a")
				time.Sleep(time.Minute)
				w.swept(t, "a", 10, 0)
			})
		})
	}
}

// A cancelled select that returns nothing without an error does not complete the sweep (R9).
func TestSweepIgnoresTheResultOfACancelledSelect(t *testing.T) {
	for _, name := range []string{"revoke", "timeout"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := &dealer{sel: func(ctx context.Context, _ processor.Selection) ([]string, error) {
					_ = nap(ctx, time.Minute)
					return nil, nil
				}}
				s := settings()
				if name == "timeout" {
					s.BatchTimeout = time.Second
				}
				w.sweep(t, d, engine.Env{}, s, "a")
				time.Sleep(time.Second)
				if name == "revoke" {
					w.Revoke("a", nil)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				h := w.holding(t, "a")
				if h.Sweep.Swept || h.Sweep.Failed != (name == "timeout") {
					t.Errorf("holding: %+v, want not Swept, and Failed only after the time-out", h)
				}
				if name == "timeout" && !errors.Is(h.Sweep.Err, context.DeadlineExceeded) {
					t.Errorf("the error is %v, want %v", h.Sweep.Err, context.DeadlineExceeded)
				}
			})
		})
	}
}

// cutRows are rows whose second select is cancelled, and returns its first row without an error, as a loop over rows does
// that does not ask how it has ended.
type cutRows struct {
	*rows
	selects int
}

func (c *cutRows) Select(ctx context.Context, s processor.Selection) (page []string, err error) {
	page, err = c.rows.Select(ctx, s)
	if c.selects++; c.selects == 2 {
		<-ctx.Done()
		page = page[:1]
	}
	return page, err
}

// A cancelled select that returns only an item that the sweep has passed does not complete the sweep (R9).
func TestSweepIgnoresTheCutPageOfACancelledSelect(t *testing.T) {
	for _, name := range []string{"revoke", "timeout"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := &cutRows{newRows(w, numbered("a", 6)...), 0}
				d.bad["a0"] = errBroken
				s := settings()
				s.FetchNumber, s.ExecuteNumber = 2, 1
				if name == "timeout" {
					s.BatchTimeout = time.Minute
				}
				w.sweep(t, d, engine.Env{}, s, "a")
				time.Sleep(time.Second)
				if name == "revoke" {
					w.Revoke("a", nil)
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				h := w.holding(t, "a")
				if h.Sweep.Swept || h.Sweep.Failed != (name == "timeout") {
					t.Errorf("holding: %+v, want not Swept, and Failed only after the time-out", h)
				}
				if name == "timeout" && !errors.Is(h.Sweep.Err, context.DeadlineExceeded) {
					t.Errorf("the error is %v, want %v", h.Sweep.Err, context.DeadlineExceeded)
				}
			})
		})
	}
}

// The loss of a queue does not fail its sweep.
func TestSweepDoesNotFailWithALostQueue(t *testing.T) {
	for name, inSelect := range map[string]bool{"select": true, "execute": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := failing(w, inSelect, func() error { return errBroken })
				w.sweep(t, d, engine.Env{Lost: func(err error) bool { return errors.Is(err, errBroken) }}, settings(), "a")
				synctest.Wait()
				if h := w.holding(t, "a"); !h.Lost || !h.Drained || h.Sweep.Ended() || h.Sweep.ItemsFailed > 0 ||
					h.Sweep.Err != nil {
					t.Errorf("holding: %+v, want Lost, Drained, not ended, ItemsFailed 0, no Err", h)
				}
				w.Resume("a") // a wrong Resume must not cause a loop without pauses
				time.Sleep(300 * time.Millisecond)
				w.expect(t, "0s a")
			})
		})
	}
}

func TestSweepWithoutTrust(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var trusted atomic.Bool
		trusted.Store(true)
		r := newRows(w, numbered("a", 10)...)
		r.takes = time.Second
		s := settings()
		s.ThreadNumber = 1
		w.sweep(t, r, engine.Env{Trusted: trusted.Load}, s, "a")
		time.Sleep(1500 * time.Millisecond)
		trusted.Store(false)
		time.Sleep(time.Hour)
		if s := w.holding(t, "a").Sweep; s.Ended() || s.ItemsDone != 4 {
			t.Errorf("sweep: %+v, want not ended, ItemsDone 4", s)
		}
		trusted.Store(true)
		w.Wake()
		time.Sleep(time.Minute)
		w.swept(t, "a", 10, 0)
	})
}
