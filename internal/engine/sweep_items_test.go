package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// An item that fails alone is passed, with any error, and neither discarded nor recorded in the store (R11).
func TestSweepPassesFailedItems(t *testing.T) {
	explode := func(context.Context, []string) error { panic("boom") }
	for name, fail := range map[string]func(context.Context, []string) error{
		"error":              func(context.Context, []string) error { return errBroken },
		"permanent":          func(context.Context, []string) error { return processor.Permanent(errBroken) },
		"retryAfter":         func(context.Context, []string) error { return processor.RetryAfter(time.Hour, errBroken) },
		"panic":              explode,
		"goexit":             func(context.Context, []string) error { runtime.Goexit(); return nil },
		"by name":            failSevens(func(string) error { return errBroken }),
		"by name, permanent": failSevens(func(string) error { return processor.Permanent(errBroken) }),
		"by name, some permanent": failSevens(func(item string) error {
			if item == "a17" {
				return errBroken
			}
			return processor.Permanent(errBroken)
		}),
	} {
		for _, notSleep := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, notsleep %t", name, notSleep), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					r, m := newRows(w, numbered("a", 40)...), newMemory()
					b := &sweptBin{rows: r, fail: fail}
					s := limited()
					s.FetchNumber, s.ExecuteNumber, s.NotSleep = 20, 10, notSleep
					if strings.HasPrefix(name, "by name") {
						s.ExecuteNumber = 20 // two of them fail
					}
					s.SleepTimeNoData = time.Hour
					w.sweep(t, b, engine.Env{Items: failedItems{m}, Cursors: cursorsOf{m}}, s, "a")
					state := w.swept(t, "a", 36, 4)
					if !slices.Equal(r.open, []string{"a7", "a17", "a27", "a37"}) || time.Since(w.begin) > 0 {
						t.Errorf("open after %s: %v, want [a7 a17 a27 a37], at once", time.Since(w.begin), r.open)
					}
					m.expect(t)
					if b.discards > 0 || w.Stats().DeadCount > 0 || w.Stats().InFlight != 0 || w.Stats().Parked != 4 {
						t.Errorf("%d discarded, stats %+v, want 0 discarded, DeadCount 0, InFlight 0, Parked 4", b.discards, w.Stats())
					}
					if !strings.Contains(state.Err.Error(), "execute") ||
						state.Permanent != (name == "permanent" || name == "by name, permanent") {
						t.Errorf("Permanent %t, error %v, want Permanent only if all failures are, and an error of execute",
							state.Permanent, state.Err)
					}
					if keys := failedKeys(state); !sameItems(keys, r.open) || !state.AllFailed {
						t.Errorf("failed items %v, all of them: %t, want the open items, and all", keys, state.AllFailed)
					}
					for _, item := range r.open {
						if n := strings.Count(w.text(), "alone "+item); !strings.HasPrefix(name, "by name") && n != 1 {
							t.Errorf("%s failed alone %d times, want 1", item, n)
						}
					}
				})
			})
		}
	}
}

// failedKeys returns the keys of the failed items of a sweep.
func failedKeys(state engine.SweepState) (keys []string) {
	for _, i := range state.FailedItems {
		keys = append(keys, i.Key)
	}
	return keys
}

func sameItems(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// A sweep keeps the first failed items with their errors, and counts the others.
func TestSweepKeepsTheFirstFailedItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 1_300)...)
		b := &sweptBin{rows: r, fail: failSevens(func(item string) error { return fmt.Errorf("%w: %s", errBroken, item) })}
		s := settings()
		s.FetchNumber = 20 // a select returns up to 180 failed items
		w.sweep(t, b, engine.Env{}, s, "a")
		state := w.swept(t, "a", 1_170, 130)
		if len(state.FailedItems) != 100 {
			t.Fatalf("%d failed items are kept, want 100", len(state.FailedItems))
		}
		for _, i := range state.FailedItems {
			if !errors.Is(i.Err, errBroken) || !strings.HasSuffix(i.Err.Error(), ": "+i.Key) || !i.At.Equal(w.begin) {
				t.Errorf("%+v, want the item's own error, at the time of its batch", i)
			}
		}
	})
}

// A sweep that ends before its last select does not know which other items fail.
func TestFailedSweepKeepsItsFailedItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 40)...)
		b := &selectsOnce{sweptBin: sweptBin{rows: r, fail: failSevens(func(string) error { return errBroken })}}
		s := settings()
		s.FetchNumber, s.ExecuteNumber = 20, 20
		w.sweep(t, b, engine.Env{}, s, "a")
		state := w.failedWith(t, "a", errBroken.Error())
		if keys := failedKeys(state); !sameItems(keys, []string{"a7", "a17"}) || state.AllFailed {
			t.Errorf("failed items %v, all of them: %t, want a7 and a17, and others may fail", keys, state.AllFailed)
		}
	})
}

// selectsOnce selects its first page only.
type selectsOnce struct {
	sweptBin
	selected bool
}

func (o *selectsOnce) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	if o.selected {
		return nil, errBroken
	}
	o.selected = true
	return o.sweptBin.Select(ctx, s)
}

// failSevens returns an Execute that fails the items that end in 7, by name.
func failSevens(why func(item string) error) func(context.Context, []string) error {
	return func(_ context.Context, items []string) error {
		var f processor.Failures
		for i, item := range items {
			if strings.HasSuffix(item, "7") {
				f.Add(i, why(item))
			}
		}
		return f.Err()
	}
}

// sweptBin is a Discarder. Its items that end in 7 fail.
type sweptBin struct {
	*rows
	fail     func(context.Context, []string) error
	discards int
}

func (b *sweptBin) Discard(context.Context, string, error) error { b.discards++; return nil }

func (b *sweptBin) Execute(ctx context.Context, items []string) error {
	bad := func(item string) bool { return strings.HasSuffix(item, "7") }
	if !slices.ContainsFunc(items, bad) {
		return b.rows.Execute(ctx, items)
	}
	if len(items) == 1 {
		b.w.note("alone %s", items[0])
	}
	err := b.fail(ctx, items)
	if strings.Contains(fmt.Sprint(err), "items failed") {
		return errors.Join(err, b.rows.Execute(ctx, slices.DeleteFunc(slices.Clone(items), bad)))
	}
	return err
}

// A page of only failed items does not complete a sweep while other items may follow: the next select asks for more
// (R9).
func TestSweepPageOfFailedItemsIsNotEmpty(t *testing.T) {
	for _, notSleep := range []bool{false, true} {
		bubble(t, func(t *testing.T, w *world) {
			r := newRows(w, numbered("a", 30)...)
			for i := range 20 {
				r.bad[fmt.Sprint("a", i)] = errBroken
			}
			s := settings()
			s.FetchNumber, s.ExecuteNumber, s.NotSleep, s.SleepTimeNoData = 3, 1, notSleep, time.Hour
			w.sweep(t, r, engine.Env{}, s, "a")
			w.swept(t, "a", 10, 20)
			if got := r.limits[:2]; !notSleep && !slices.Equal(got, []int{3, 6}) {
				t.Errorf("limits %v, want 3 and 6 first", r.limits)
			}
			for item, n := range r.fails {
				if n != 1 {
					t.Errorf("%s was executed %d times, want 1", item, n)
				}
			}
		})
	}
}

// The limit is bounded (X2). With too many failed items, a select may miss other items, so the sweep is not complete.
func TestSweepWithTooManyFailedItemsIsNotComplete(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 40)...)
		for i := range 30 {
			r.bad[fmt.Sprint("a", i)] = errBroken
		}
		var alerts []engine.Alert
		s := settings()
		s.FetchNumber, s.ThreadNumber = 3, 1
		w.sweep(t, r, engine.Env{Alert: func(a engine.Alert) { alerts = append(alerts, a) }}, s, "a")
		w.failedWith(t, "a", "no progress")
		if !w.holding(t, "a").EmptySince.IsZero() {
			t.Error("the queue counts as empty")
		}
		if len(alerts) != 1 || alerts[0].Kind != engine.AlertParked {
			t.Errorf("alerts: %v, want one %s", alerts, engine.AlertParked)
		}
		if s := w.Stats(); s.InFlight != 0 || s.SuccessCount != 0 {
			t.Errorf("stats: %+v, want InFlight 0, SuccessCount 0", s)
		}
	})
}

// cursored is a dealer whose items are their own cursors.
type cursored struct{ dealer }

func (*cursored) Cursor(item string) string { return item }

// An error of Key is a failure that no item can be blamed for.
func TestSweepFailsIfKeyPanics(t *testing.T) {
	for name, silent := range map[string]bool{"in the select": true, "after a failure": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := &nameless{keyed: keyed{dealer{sel: once(map[string][]string{"a": {"a1", "a2", "a3"}})}}}
				d.silent.Store(silent)
				d.exec = func(context.Context, []string) error { d.silent.Store(true); return errBroken }
				s := settings()
				s.ThreadNumber = 1
				w.sweep(t, d, engine.Env{}, s, "a")
				w.failedWith(t, "a", map[bool]string{true: "panic: no key", false: "broken"}[silent])
				if s := w.Stats(); s.InFlight != 0 || s.FetchCount != 1 {
					t.Errorf("stats: %+v, want InFlight 0, FetchCount 1", s)
				}
			})
		})
	}
}

type nameless struct {
	keyed
	silent atomic.Bool
}

func (n *nameless) Key(item string) string {
	if n.silent.Load() {
		panic("no key")
	}
	return item
}

// A sweep whose selects leave keys out for a turn, and then have too little room for the items that it has passed, goes
// on: these selects say nothing about progress (R9, X10).
func TestASweepThatLeavesKeysOutMakesProgress(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &orderedRows{rows: newRows(w, "ap1", "aq1", "ax1", "ax2", "ax3"), held: true}
		d.bad["ap1"], d.bad["ax1"] = errBroken, errBroken
		s := settings()
		s.Runs, s.ThreadNumber, s.FetchNumber, s.ExecuteNumber, s.SweepMaxRepeats = true, 2, 2, 1, 2
		w.sweep(t, d, engine.Env{}, s, "a")
		time.Sleep(time.Minute)
		w.swept(t, "a", 1, 2)
	})
}
