package processor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/processor"
)

// nightly is a run.
func nightly() *processor.Run {
	return &processor.Run{ID: "r1", Key: "nightly", Params: "p", ScheduledAt: time.Unix(1, 0), StartedAt: time.Unix(2, 0), Attempt: 1}
}

// sweep starts a processor and grants the queues with a run.
func (w *world) sweep(t *testing.T, d processor.TaskDealer[string], env processor.Env, s processor.Settings, ids ...string) {
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

// swept expects that the sweep of a queue has come to its end by now, with so many items done and failed.
func (w *world) swept(t *testing.T, id string, done, failed int64) processor.SweepState {
	t.Helper()
	synctest.Wait()
	h := w.holding(t, id)
	s := h.Sweep
	if !s.Swept || s.Failed || !s.Ended() || s.ItemsDone != done || s.ItemsFailed != failed || (s.Err != nil) != (failed > 0) || h.EmptySince.IsZero() {
		t.Errorf("holding: %+v, want %d done and %d failed\n%s", h, done, failed, w.text())
	}
	return s
}

// failedWith expects that the sweep of a queue could not go on, by now.
func (w *world) failedWith(t *testing.T, id, text string) processor.SweepState {
	t.Helper()
	synctest.Wait()
	s := w.holding(t, id).Sweep
	if s.Swept || !s.Failed || !s.Ended() || s.Err == nil || !strings.Contains(s.Err.Error(), text) || !strings.Contains(s.Err.Error(), "queue "+id) {
		t.Errorf("sweep: %+v, want error %q\n%s", s, text, w.text())
	}
	if !w.emptied() {
		t.Error("no signal")
	}
	return s
}

// emptied reports whether Emptied has a signal, and takes it.
func (w *world) emptied() bool {
	select {
	case <-w.Emptied():
		return true
	default:
		return false
	}
}

// plain hides the powers of a dealer.
type plain struct{ processor.TaskDealer[string] }

// forms are dealers of n items of queue a.
func forms(w *world, n int) map[string]processor.TaskDealer[string] {
	return map[string]processor.TaskDealer[string]{
		"plain": plain{newRows(w, numbered("a", n)...)}, "keyed": newRows(w, numbered("a", n)...),
		"keyed, notsleep": newRows(w, numbered("a", n)...), "cursored": newTape(w, n),
	}
}

var allForms = []string{"plain", "keyed", "keyed, notsleep", "cursored"}

// eachForm runs f in a bubble for each form of a dealer of n items, with settings under which a pause is long.
func eachForm(t *testing.T, n int, f func(t *testing.T, w *world, d processor.TaskDealer[string], s processor.Settings)) {
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
	eachForm(t, 35, func(t *testing.T, w *world, d processor.TaskDealer[string], s processor.Settings) {
		var selects int
		env := processor.Env{Hooks: processor.Hooks{Select: func(ctx context.Context, s processor.Selection) (context.Context, func(int, error)) {
			if selects++; s.Run == nil || *s.Run != *nightly() || s.Queue.Run != s.Run {
				t.Errorf("selection: %+v", s)
			}
			return ctx, nil
		}}}
		w.sweep(t, d, env, s, "a")
		w.swept(t, "a", 35, 0)
		if selects != 5 && !s.NotSleep || time.Since(w.begin) > 0 || !w.emptied() || w.emptied() {
			t.Errorf("%d selects in %s", selects, time.Since(w.begin))
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
			t.Errorf("%d selects of a queue that is swept", selects)
		}
		w.Drain("a")
		if !w.Forget("a") {
			t.Error("not forgotten")
		}
	})
}

// The same queue may be swept again by another grant, which knows nothing of the one before.
func TestSweepAgain(t *testing.T) {
	eachForm(t, 3, func(t *testing.T, w *world, d processor.TaskDealer[string], s processor.Settings) {
		var runs []*processor.Run
		env := processor.Env{Hooks: processor.Hooks{Select: func(ctx context.Context, s processor.Selection) (context.Context, func(int, error)) {
			runs = append(runs, s.Run)
			return ctx, nil
		}}}
		w.sweep(t, d, env, s, "a")
		w.swept(t, "a", 3, 0)
		w.Drain("a")
		w.Forget("a")
		r := nightly()
		r.Attempt, r.Recovering = 2, true
		w.grantRun(t, r, "a")
		r.Attempt = 3 // what was granted is a copy
		synctest.Wait()
		if h := w.holding(t, "a"); !h.Sweep.Swept || h.Queue.Run.Attempt != 2 || runs[0] == runs[len(runs)-1] || !runs[len(runs)-1].Recovering {
			t.Errorf("holding: %+v", h)
		}
	})
}

func TestSweepRests(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		s := settings()
		s.SleepTimeInterval, s.FetchNumber, s.ExecuteNumber = time.Second, 2, 2
		w.sweep(t, newRows(w, numbered("a", 5)...), processor.Env{}, s, "a")
		time.Sleep(time.Minute)
		w.expect(t, "0s [a0 a1]", "1s [a2 a3]", "2s [a4]") // sleep_time_interval is the user's wish
		w.swept(t, "a", 5, 0)
	})
}

// Without a Run all is as it was, in the same processor too.
func TestSweepBesideAQueueWithoutRun(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, append(numbered("a", 30), numbered("b", 30)...)...)
		r.bad["a3"], r.bad["b3"] = errBroken, errBroken
		w.start(t, r, processor.Env{}, settings(), "b")
		w.grantRun(t, nightly(), "a")
		w.swept(t, "a", 29, 1)
		time.Sleep(time.Minute)
		w.swept(t, "a", 29, 1)
		h := w.holding(t, "b")
		if h.Sweep != (processor.SweepState{}) || h.Queue.Run != nil || r.fails["a3"] != 1 || r.fails["b3"] < 4 {
			t.Errorf("holding: %+v, failed %v", h, r.fails)
		}
	})
}

// Only the queue is tried again: an item that fails alone is passed, whatever its error says, and nobody is told.
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
						s.ExecuteNumber = 20 // of which two fail
					}
					s.SleepTimeNoData = time.Hour
					w.sweep(t, b, processor.Env{Items: failedItems{m}, Cursors: cursorsOf{m}}, s, "a")
					state := w.swept(t, "a", 36, 4)
					if !slices.Equal(r.open, []string{"a7", "a17", "a27", "a37"}) || time.Since(w.begin) > 0 {
						t.Errorf("open after %s: %v", time.Since(w.begin), r.open)
					}
					if len(m.journal()) > 0 || b.discards > 0 || w.Stats().DeadCount > 0 || w.Stats().InHand != 0 || w.Stats().Parked != 4 {
						t.Errorf("store %v, %d discarded, stats %+v", m.calls, b.discards, w.Stats())
					}
					if !strings.Contains(state.Err.Error(), "execute") || state.Permanent != (name == "permanent" || name == "by name, permanent") {
						t.Errorf("permanent %t, error: %v", state.Permanent, state.Err)
					}
					for _, item := range r.open {
						if n := strings.Count(w.text(), "alone "+item); !strings.HasPrefix(name, "by name") && n != 1 {
							t.Errorf("%s failed alone %d times", item, n)
						}
					}
				})
			})
		}
	}
}

// failSevens fails the items by name that end in 7.
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

// sweptBin is a Discarder of which items that end in 7 fail.
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

// A page of failed items only is no end as long as there may be others behind them: the next select asks for more.
func TestSweepPageOfFailedItemsIsNotEmpty(t *testing.T) {
	for _, notSleep := range []bool{false, true} {
		bubble(t, func(t *testing.T, w *world) {
			r := newRows(w, numbered("a", 30)...)
			for i := range 20 {
				r.bad[fmt.Sprint("a", i)] = errBroken
			}
			s := settings()
			s.FetchNumber, s.ExecuteNumber, s.NotSleep, s.SleepTimeNoData = 3, 1, notSleep, time.Hour
			w.sweep(t, r, processor.Env{}, s, "a")
			w.swept(t, "a", 10, 20)
			if got := r.limits[:2]; !notSleep && !slices.Equal(got, []int{3, 6}) {
				t.Errorf("limits %v", r.limits)
			}
			for item, n := range r.fails {
				if n != 1 {
					t.Errorf("%s was executed %d times", item, n)
				}
			}
		})
	}
}

// The limit has a bound (X2). Behind so many failed items others may be hidden, so the queue does not count as swept.
func TestSweepOfTooManyFailedItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 40)...)
		for i := range 30 {
			r.bad[fmt.Sprint("a", i)] = errBroken
		}
		var alerts []processor.Alert
		s := settings()
		s.FetchNumber, s.ThreadNumber = 3, 1
		w.sweep(t, r, processor.Env{Alert: func(a processor.Alert) { alerts = append(alerts, a) }}, s, "a")
		w.failedWith(t, "a", "no progress")
		if !w.holding(t, "a").EmptySince.IsZero() {
			t.Error("it counts as empty")
		}
		if len(alerts) != 1 || alerts[0].Kind != processor.AlertParked {
			t.Errorf("alerts: %v", alerts)
		}
		if s := w.Stats(); s.InHand != 0 || s.SuccessCount != 0 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// A cursor does not pass the item that fails, which is found one by one: the sweep ends in front of it.
func TestSweepWithACursorEndsAtAFailedItem(t *testing.T) {
	for name, bad := range map[string]error{"error": errBroken, "permanent": processor.Permanent(errBroken), "retryAfter": processor.RetryAfter(time.Hour, errBroken)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d, m := newTape(w, 9), newMemory()
				m.cursors["a"] = "a00"
				d.bad["a03"] = bad
				s := settings()
				s.ExecuteNumber, s.SleepTimeNoData = 3, time.Hour
				env := processor.Env{Items: failedItems{m}, Cursors: cursorsOf{m}, Bind: bindCursor}
				w.start(t, d, env, s)
				if err := w.Grant(processor.Queue{ID: "a", Cursor: "a00", Run: nightly()}, 1); err != nil {
					t.Fatal(err)
				}
				state := w.failedWith(t, "a", errBroken.Error())
				want := []string{"load cursor a", "cursor a a01", "cursor a a02", "load cursor a"}
				if calls := m.journal(); state.Cursor != "a02" || state.ItemsDone != 2 || state.ItemsFailed != 1 || !slices.Equal(calls, want) || w.Stats().DeadCount > 0 {
					t.Errorf("sweep: %+v, store %v", state, calls)
				}
				w.expect(t, "0s a01-a01 a01", "0s a01-a03 a03", "0s a02-a02 a02", "0s a03-a03 a03")
			})
		})
	}
}

// A batch whose commit has happened is done, whatever Execute says: it is neither executed again nor passed.
func TestSweepAsksTheCursorAfterAnError(t *testing.T) {
	for _, number := range []int{1, 3} {
		t.Run(fmt.Sprintf("execute_number %d", number), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d, m := newTape(w, 9), newMemory()
				d.bad["a04"] = errBroken
				d.commit = func(cursor string) {
					m.mu.Lock()
					defer m.mu.Unlock()
					m.cursors["a"] = cursor
				}
				s := settings()
				s.ExecuteNumber = number
				w.sweep(t, d, processor.Env{Cursors: cursorsOf{m}}, s, "a")
				if state := w.swept(t, "a", 9, 0); state.Cursor != "a08" || strings.Count(w.text(), "-") != 9/number {
					t.Errorf("sweep: %+v\n%s", state, w.text())
				}
			})
		})
	}
}

// A batch that is cancelled may be done all the same: before it is selected again, the cursor is asked for.
func TestSweepAsksTheCursorAfterACancelledBatch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 6), newMemory()
		d.takes = 10 * time.Second
		w.sweep(t, d, processor.Env{Cursors: cursorsOf{m}}, settings(), "a")
		time.Sleep(time.Second)
		m.mu.Lock()
		m.cursors["a"] = "a01"
		m.mu.Unlock()
		w.Revoke("a")
		synctest.Wait()
		w.Resume("a")
		time.Sleep(time.Minute)
		w.swept(t, "a", 4, 0)
		w.expect(t, "0s a00-a01 <nil>", "1s a02-a03 <nil>", "11s a04-a05 <nil>")
	})
}

// coarse tells only the first letter of where an item is.
type coarse struct{ *tape }

func (coarse) Cursor(item string) string { return item[:1] }

func (c coarse) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	if s.Queue.Cursor != "" {
		return nil, nil
	}
	return c.tape.Select(ctx, s)
}

// A cursor that does not tell an item from the one before it says nothing of its commit.
func TestSweepWithACoarseCursorCountsFailedItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := newTape(w, 2), newMemory()
		d.bad["a01"] = errBroken
		s := settings()
		s.ExecuteNumber, s.FetchNumber = 1, 2
		w.sweep(t, coarse{d}, processor.Env{Cursors: cursorsOf{m}}, s, "a")
		if state := w.failedWith(t, "a", errBroken.Error()); state.ItemsDone != 1 || state.ItemsFailed != 1 {
			t.Errorf("sweep: %+v", state)
		}
	})
}

// Nobody knows what a batch has done, or its cursor cannot be saved: the sweep ends where the cursor was.
func TestSweepWithoutAnAnswerAboutItsCursorFails(t *testing.T) {
	for name, trouble := range map[string]func(*memory){
		"load": func(m *memory) { m.err = errors.New("gone") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d, m := newTape(w, 9), newMemory()
				d.bad["a03"] = errBroken
				d.commit = func(string) { // does not happen
					m.mu.Lock()
					defer m.mu.Unlock()
					trouble(m)
				}
				s := settings()
				s.ExecuteNumber = 1
				w.sweep(t, d, processor.Env{Cursors: cursorsOf{m}, Bind: bindCursor}, s, "a")
				state := w.failedWith(t, "a", errBroken.Error())
				if state.ItemsDone != 3 || state.ItemsFailed != 0 || state.Cursor != "a02" || strings.Contains(w.text(), "a04") {
					t.Errorf("sweep: %+v\n%s", state, w.text())
				}
			})
		})
	}
}

// While the sweep goes on, Holding says how far it is.
func TestSweepTellsItsProgress(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newTape(w, 8)
		d.takes = time.Second
		s := settings()
		s.ExecuteNumber = 1
		w.sweep(t, d, processor.Env{}, s, "a")
		time.Sleep(4500 * time.Millisecond)
		h := w.holding(t, "a")
		if h.Sweep.Ended() || h.Sweep.Cursor != "a03" || h.Sweep.ItemsDone != 4 || h.Sweep.ItemsFailed != 0 {
			t.Errorf("sweep: %+v", h.Sweep)
		}
		if w.emptied() {
			t.Error("signalled before the end")
		}
		time.Sleep(10 * time.Second)
		w.swept(t, "a", 8, 0)
	})
}

// lostTape cannot say where an item is.
type lostTape struct {
	*tape
	at string
}

// keyedTape has keys, which do not help.
type keyedTape struct{ *lostTape }

func (keyedTape) Key(item string) string { return item }

func (l *lostTape) Cursor(item string) string {
	if item == l.at && len(l.w.text()) > 0 { // not in the first select
		panic("boom")
	}
	return item
}

func TestSweepThatLosesItsCursorFails(t *testing.T) {
	for name, with := range map[string]func(*lostTape) processor.TaskDealer[string]{
		"without keys": func(d *lostTape) processor.TaskDealer[string] { return d },
		"with keys":    func(d *lostTape) processor.TaskDealer[string] { return keyedTape{d} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				s := settings()
				s.ExecuteNumber = 1
				w.sweep(t, with(&lostTape{newTape(w, 9), "a03"}), processor.Env{}, s, "a")
				state := w.failedWith(t, "a", "panic: boom")
				if state.ItemsDone != 3 || state.Cursor != "a02" || strings.Contains(w.text(), "a04") {
					t.Errorf("sweep: %+v\n%s", state, w.text())
				}
			})
		})
	}
}

// Without keys nobody knows which item failed: the sweep is at its end, and what is not started is dropped.
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
				w.sweep(t, d, processor.Env{}, s, "a", "b")
				time.Sleep(time.Second)
				state := w.failedWith(t, "a", "execute 2 items")
				if state.ItemsDone != 0 || state.ItemsFailed != 2 || w.holding(t, "a").InHand != 1 {
					t.Errorf("sweep: %+v", state)
				}
				w.Drain("a")
				time.Sleep(time.Hour)
				w.expect(t, "0s [a1 a2]", "0s [a3 a4]")
				h := w.holding(t, "a")
				if h.Sweep.ItemsDone != 2 || h.Sweep.Swept || !h.Drained { // what was in hand counts
					t.Errorf("holding: %+v", h)
				}
				if s := w.Stats(); s.SkipCount != 1 || s.InHand != 0 || s.FetchCount != 2 {
					t.Errorf("stats: %+v", s)
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
					w.sweep(t, all[form], processor.Env{}, s, "a", "b")
					w.failedWith(t, "a", "select queue a")
					time.Sleep(time.Hour)
					w.expect(t, "0s a", "0s b")
				})
			}
		})
	}
}

// cursored is a dealer of functions whose items are their own cursors.
type cursored struct{ dealer }

func (*cursored) Cursor(item string) string { return item }

// A key that cannot be told is a failure that no item can be blamed for.
func TestSweepWithoutItsKeysFails(t *testing.T) {
	for name, silent := range map[string]bool{"in the select": true, "after a failure": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := &nameless{keyed: keyed{dealer{sel: once(map[string][]string{"a": {"a1", "a2", "a3"}})}}}
				d.silent.Store(silent)
				d.exec = func(context.Context, []string) error { d.silent.Store(true); return errBroken }
				s := settings()
				s.ThreadNumber = 1
				w.sweep(t, d, processor.Env{}, s, "a")
				w.failedWith(t, "a", map[bool]string{true: "panic: no key", false: "broken"}[silent])
				if s := w.Stats(); s.InHand != 0 || s.FetchCount != 1 {
					t.Errorf("stats: %+v", s)
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

// A select that returns what is done for ever is noticed, if its items can be told apart.
func TestSweepWithoutProgressFails(t *testing.T) {
	for form, lasts := range map[string]int{"plain": 4, "keyed": 4, "cursored": 4, "keyed, notsleep": 12} {
		t.Run(form, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				n := 0
				page := numbered("a", 15)
				d := &dealer{sel: func(_ context.Context, s processor.Selection) ([]string, error) {
					n++
					at := n * 4 % 15 // the order does not matter
					return append(slices.Clone(page[at:]), page[:at]...)[:min(15, s.Limit)], nil
				}}
				d.exec = func(ctx context.Context, _ []string) error { return nap(ctx, time.Millisecond) }
				all := map[string]processor.TaskDealer[string]{
					"plain": d, "keyed": &keyed{*d}, "keyed, notsleep": &keyed{*d}, "cursored": &cursored{*d},
				}
				s := settings()
				s.NotSleep = strings.Contains(form, "notsleep")
				if s.FetchNumber = 15; s.NotSleep {
					s.FetchNumber = 10
				}
				w.sweep(t, all[form], processor.Env{}, s, "a")
				time.Sleep(time.Minute)
				w.failedWith(t, "a", "no progress: 3 selects")
				if n < 4 || n > lasts || w.Stats().InHand != 0 {
					t.Errorf("%d selects, stats %+v", n, w.Stats())
				}
			})
		})
	}
}

// Now and then a page of what is done is no reason, nor is one with something new on it.
func TestSweepWithSomeProgressGoesOn(t *testing.T) {
	eachForm(t, 0, func(t *testing.T, w *world, form processor.TaskDealer[string], s processor.Settings) {
		pages := [][]string{
			{"a1", "a2"},
			{"a1", "a2"},
			{"a1", "a2"},
			{"a2", "a3"},
			{"a3"},
			{"a3", "a2"},
			{"a4"},
			{"a4"},
			{"a4"},
			{"a5", "a6"},
			{"a7", "a8"},
			{"a1", "a2"},
			{"a4", "a3"},
			{"a5", "a6"}, // long forgotten
		}
		items := int64(24)
		d := dealer{sel: func(context.Context, processor.Selection) (page []string, _ error) {
			if len(pages) > 0 {
				page, pages = pages[0], pages[1:]
			}
			return page, nil
		}, exec: func(context.Context, []string) error { return nil }}
		s.ThreadNumber = 1
		switch form.(type) {
		case plain:
			form = &d
		case *rows:
			form = &keyed{d}
		default: // nothing behind the cursor was done before
			pages = [][]string{{"a1", "a2"}, {"a1", "a2"}, {"a2", "a3"}, {"a4", "a1"}, {"a4", "a5"}, {"a5"}, {"a6", "a7", "a8"}}
			items = 14
			form = &cursored{d}
		}
		w.sweep(t, form, processor.Env{}, s, "a")
		w.swept(t, "a", items, 0)
	})
}

// A cursored select that does not heed the cursor ends, too.
func TestSweepThatIgnoresItsCursorFails(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &cursored{dealer{sel: func(context.Context, processor.Selection) ([]string, error) { return numbered("a", 5), nil }}}
		d.exec = func(context.Context, []string) error { return nil }
		w.sweep(t, d, processor.Env{}, settings(), "a")
		w.failedWith(t, "a", "no progress")
	})
}

// Items that cannot be told apart are not taken for each other.
func TestSweepOfPointersGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &pointers{item: new(int)}
		p, err := processor.New(d, processor.Env{}, settings())
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Grant(processor.Queue{ID: "a", Run: nightly()}, 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-p.Emptied(); cancel() }()
		if err := p.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if s := p.Held()[0].Sweep; !s.Swept || s.ItemsDone != 20 {
			t.Errorf("sweep: %+v", s)
		}
	})
}

type pointers struct {
	item *int
	n    int
}

func (p *pointers) Select(context.Context, processor.Selection) ([]*int, error) {
	if p.n++; p.n > 20 {
		return nil, nil
	}
	return []*int{p.item}, nil
}

func (p *pointers) Execute(_ context.Context, items []*int) error { *items[0]++; return nil }

// In NOTSLEEP an empty select beside a batch says nothing; the sweep waits for the batch, and asks once more.
func TestSweepNotSleepWaitsForWhatIsInHand(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		n := 0
		d := &keyed{}
		d.sel = func(context.Context, processor.Selection) ([]string, error) {
			w.note("select")
			switch n++; n {
			case 1:
				return []string{"a1", "a2", "a3"}, nil
			case 3: // what appears while the last batch runs is found all the same
				return []string{"a4"}, nil
			}
			return nil, nil
		}
		d.exec = func(ctx context.Context, items []string) error {
			w.note("%v", items)
			return nap(ctx, time.Minute)
		}
		w.sweep(t, d, processor.Env{}, notSleep(), "a")
		time.Sleep(119 * time.Second)
		if w.holding(t, "a").Sweep.Ended() || w.emptied() {
			t.Errorf("holding: %+v", w.holding(t, "a"))
		}
		w.expect(t, "0s [a1 a2]", "0s [a3]", "0s select", "0s select", "1m0s [a4]", "1m0s select", "1m0s select")
		time.Sleep(time.Hour)
		w.expect(t, "2m0s select")
		w.swept(t, "a", 4, 0)
	})
}

// The suspects of a failed batch do not wait for what else is in hand.
func TestSweepNotSleepTriesSuspectsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 4)...)
		r.bad["a3"] = errBroken
		d := &longFirst{r}
		w.sweep(t, d, processor.Env{}, notSleep(), "a")
		time.Sleep(time.Second)
		synctest.Wait()
		if s := w.holding(t, "a").Sweep; s.ItemsDone != 1 || s.ItemsFailed != 1 || s.Ended() {
			t.Errorf("sweep: %+v\n%s", s, w.text())
		}
		time.Sleep(time.Minute)
		w.swept(t, "a", 3, 1)
	})
}

// longFirst takes a minute for its first items, and a moment for the others.
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

// A sweep that fails while it is selected drops what that brings.
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
		w.sweep(t, d, processor.Env{}, notSleep(), "a")
		time.Sleep(time.Hour)
		w.failedWith(t, "a", "broken")
		w.expect(t, "0s [a1]")
		if s := w.Stats(); s.SkipCount != 2 || s.InHand != 0 || s.FetchCount != 2 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// One that fails while it rests in NOTSLEEP is not selected any more.
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
		w.sweep(t, d, processor.Env{}, s, "a")
		time.Sleep(time.Hour)
		w.failedWith(t, "a", "broken")
		if n := w.Stats().FetchCount; n != 1 {
			t.Errorf("%d selects", n)
		}
	})
}

// What drain, revoke or lost trust drops leaves the sweep unfinished; it goes on where it was.
func TestSweepThatIsInterrupted(t *testing.T) {
	for name, stop := range map[string]func(*world){
		"drain":  func(w *world) { w.Drain("a") },
		"revoke": func(w *world) { w.Revoke("a") },
	} {
		t.Run(name, func(t *testing.T) {
			eachForm(t, 10, func(t *testing.T, w *world, d processor.TaskDealer[string], s processor.Settings) {
				switch d := d.(type) {
				case plain:
					d.TaskDealer.(*rows).takes = time.Second
				case *rows:
					d.takes = time.Second
				case *tape:
					d.takes = time.Second
				}
				s.ThreadNumber = 2
				w.sweep(t, d, processor.Env{}, s, "a")
				time.Sleep(500 * time.Millisecond)
				stop(w)
				time.Sleep(time.Minute)
				synctest.Wait()
				if h := w.holding(t, "a"); h.Sweep.Ended() || !h.Drained || h.Sweep.Err != nil || w.emptied() {
					t.Errorf("holding: %+v", h)
				}
				w.Resume("a")
				time.Sleep(time.Minute)
				w.swept(t, "a", 10, 0)
			})
		})
	}
}

// A select that was cut short and returns nothing, without an error, does not say that there is nothing.
func TestSweepSelectThatIsCutShort(t *testing.T) {
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
				w.sweep(t, d, processor.Env{}, s, "a")
				time.Sleep(time.Second)
				if name == "revoke" {
					w.Revoke("a")
				}
				time.Sleep(time.Second)
				synctest.Wait()
				h := w.holding(t, "a")
				if h.Sweep.Swept || h.Sweep.Failed != (name == "timeout") {
					t.Errorf("holding: %+v", h)
				}
				if name == "timeout" && !errors.Is(h.Sweep.Err, context.DeadlineExceeded) {
					t.Errorf("error: %v", h.Sweep.Err)
				}
			})
		})
	}
}

// The loss of a queue is no failure of its sweep.
func TestSweepOfALostQueue(t *testing.T) {
	for name, inSelect := range map[string]bool{"select": true, "execute": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := failing(w, inSelect, func() error { return errBroken })
				w.sweep(t, d, processor.Env{Lost: func(err error) bool { return errors.Is(err, errBroken) }}, settings(), "a")
				synctest.Wait()
				if h := w.holding(t, "a"); !h.Lost || !h.Drained || h.Sweep.Ended() || h.Sweep.ItemsFailed > 0 || h.Sweep.Err != nil {
					t.Errorf("holding: %+v", h)
				}
				w.Resume("a") // a wrong Resume must not make a loop without pause
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
		w.sweep(t, r, processor.Env{Trusted: trusted.Load}, s, "a")
		time.Sleep(1500 * time.Millisecond)
		trusted.Store(false)
		time.Sleep(time.Hour)
		if s := w.holding(t, "a").Sweep; s.Ended() || s.ItemsDone != 4 {
			t.Errorf("sweep: %+v", s)
		}
		trusted.Store(true)
		w.Wake()
		time.Sleep(time.Minute)
		w.swept(t, "a", 10, 0)
	})
}

func TestSweepNeedsASelectPerQueue(t *testing.T) {
	p, err := processor.New(&setDealer{}, processor.Env{}, settings())
	if err != nil {
		t.Fatal(err)
	}
	err = p.Grant(processor.Queue{ID: "a", Run: nightly()}, 1)
	if err == nil || !strings.Contains(err.Error(), "mode RUN needs a select per queue") || len(p.Held()) > 0 {
		t.Errorf("error %v, held %v", err, p.Held())
	}
}
