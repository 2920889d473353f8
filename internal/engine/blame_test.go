package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// limited returns settings under which items die after three attempts.
func limited() engine.Settings {
	s := settings()
	s.FetchNumber, s.ExecuteNumber, s.ItemMaxAttempts = 200, 100, 3
	return s
}

// One failing item costs the other items of a batch of a hundred only a repetition, at once, in smaller and smaller
// batches.
func TestPoisonItemCostsOthersNoAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 100)...)
		r.bad["a42"] = errBroken
		m := newMemory()
		w.start(t, r, engine.Env{Items: failedItems{m}}, limited(), "a")
		synctest.Wait()
		if !slices.Equal(r.open, []string{"a42"}) || r.fails["a42"] != 1 {
			t.Errorf("at once: open %v, failed alone %v, want [a42], a42 failed 1", r.open, r.fails)
		}
		if s := w.Stats(); s.FailureCount != 111 || s.SuccessCount != 99 || s.Parked != 1 {
			t.Errorf("stats: %+v, want FailureCount 111, SuccessCount 99, Parked 1", s)
		}
		time.Sleep(time.Minute)
		w.stop()
		if r.fails["a42"] != 3 || w.Stats().DeadCount != 1 {
			t.Errorf("failed alone %v, stats %+v, want a42 failed 3, DeadCount 1", r.fails, w.Stats())
		}
		m.expect(t, "save a42 1 false", "save a42 2 false", "save a42 3 true")
	})
}

// The good items of a failed batch are executed without a pause.
func TestSuspectsAreRetriedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 30)...)
		r.bad["a7"] = errBroken
		s := limited()
		s.SleepTimeInterval = time.Hour
		w.start(t, r, engine.Env{}, s, "a")
		synctest.Wait()
		if !slices.Equal(r.open, []string{"a7"}) {
			t.Errorf("open: %v, want [a7]", r.open)
		}
	})
}

// A failing item backs off alone, with growing pauses, while the other items of its queue go on.
func TestItemBacksOffAlone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1")
		r.bad["a1"] = errBroken
		s := settings()
		s.RetryMax = 20 * time.Second
		s.SleepTimeNoData = 7 * time.Second // longer than a pause
		w.start(t, r, engine.Env{}, s, "a")
		time.Sleep(200 * time.Second)
		synctest.Wait()
		var pauses []time.Duration
		last := time.Duration(-1)
		for line := range strings.Lines(w.text()) {
			d, _ := time.ParseDuration(strings.Fields(line)[0])
			if last >= 0 {
				pauses = append(pauses, d-last)
			}
			last = d
		}
		checkGrowth(t, pauses, s)
	})
}

func TestSuccessDeletesTheRecord(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1"), newMemory()
		r.bad["a1"] = errBroken
		w.start(t, r, engine.Env{Items: failedItems{m}}, settings(), "a")
		synctest.Wait()
		r.mu.Lock()
		delete(r.bad, "a1")
		r.mu.Unlock()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		m.expect(t, "save a1 1 false", "delete a1")
		if len(m.items) != 0 {
			t.Errorf("records in the store: %v, want none", m.items)
		}
		if n := w.Stats().Parked; n != 0 {
			t.Errorf("%d items are parked, want 0", n)
		}
	})
}

// partly is a dealer that names the items that failed.
type partly struct{ *rows }

func (p partly) Execute(ctx context.Context, items []string) error {
	var f processor.Failures
	for i, item := range items {
		if err := p.rows.Execute(ctx, []string{item}); err != nil {
			f.Add(i, err)
		}
	}
	if err := f.Err(); err != nil {
		return fmt.Errorf("push: %w", err)
	}
	return nil
}

func TestFailuresNameTheItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, numbered("a", 5)...), newMemory()
		r.bad["a1"], r.bad["a3"] = errBroken, processor.Permanent(errBroken)
		w.start(t, partly{r}, engine.Env{Items: failedItems{m}}, limited(), "a")
		w.expect(t, "0s [a0]", "0s [a1]", "0s [a2]", "0s [a3]", "0s [a4]") // no item twice
		m.expect(t, "save a1 1 false", "save a3 1 true")
		if s := w.Stats(); s.FailureCount != 2 || s.SuccessCount != 3 || s.DeadCount != 1 ||
			!errors.Is(s.LastError, errBroken) {
			t.Errorf("stats: %+v, want FailureCount 2, SuccessCount 3, DeadCount 1, LastError %v", s, errBroken)
		}
	})
}

func TestFailuresOutsideTheBatchFailTheWholeBatch(t *testing.T) {
	var f processor.Failures
	f.Add(0, nil)
	if f.Err() != nil {
		t.Error("a nil error counts as a failure")
	}
	for _, i := range []int{-1, 2} {
		bubble(t, func(t *testing.T, w *world) {
			d := &keyed{dealer{sel: once(map[string][]string{"a": {"a1", "a2"}})}}
			d.exec = func(context.Context, []string) error {
				var f processor.Failures
				f.Add(i, errBroken)
				f.Add(0, errBroken)
				return f.Err()
			}
			w.start(t, d, engine.Env{}, settings(), "a")
			synctest.Wait()
			if s := w.Stats(); s.FailureCount != 2 || s.Parked != 0 {
				t.Errorf("stats: %+v, want FailureCount 2, Parked 0", s)
			}
		})
	}
}

func TestRetryAfterOfAnItem(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1")
		r.bad["a1"] = fmt.Errorf("busy: %w", processor.RetryAfter(42*time.Second, errBroken))
		w.start(t, r, engine.Env{}, settings(), "a")
		time.Sleep(100 * time.Second)
		w.expect(t, "0s [a1]", "42s [a1]", "1m24s [a1]")
	})
}

// Without keys RetryAfter sets the pause of the queue.
func TestRetryAfterOfAQueue(t *testing.T) {
	for name, inSelect := range map[string]bool{"select": true, "execute": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				bad := func() error { return processor.RetryAfter(42*time.Second, errBroken) }
				w.start(t, failing(w, inSelect, bad), engine.Env{}, settings(), "a")
				time.Sleep(100 * time.Second)
				w.expect(t, "0s a", "42s a", "1m24s a")
			})
		})
	}
}

// bin is a Discarder. Unless it fails, Discard takes the item out of the source.
type bin struct {
	*rows
	err error
}

func (b *bin) Discard(ctx context.Context, item string, cause error) error {
	b.w.note("discard %s: %v %v", item, cause, bound(ctx))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.open = slices.DeleteFunc(b.open, func(open string) bool { return open == item })
	}
	return b.err
}

// Discard is retried until it succeeds, and Execute is not called in between. The store has the death before, and an alert
// says that Discard fails (X2).
func TestDiscardIsRetriedUntilItSucceeds(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b, m := &bin{newRows(w, "a1"), errors.New("no room")}, newMemory()
		b.bad["a1"] = processor.Permanent(errBroken)
		s := limited()
		s.RetryMax = s.Retry
		told := &alertBook{}
		w.start(t, b, engine.Env{Items: failedItems{m}, Bind: bind, Alert: told.add}, s, "a")
		w.expect(t, "0s [a1]", "0s discard a1: broken a:7")
		m.expect(t, "save a1 1 true")
		if text := told.text(); text != "UNDISCARDED of a; " {
			t.Errorf("alerts: %s, want one", text)
		}
		b.mu.Lock()
		b.err = nil
		b.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := strings.Count(w.text(), "discard"); n != 1 || strings.Contains(w.text(), "[a1]") {
			t.Errorf("journal: %s, want one discard, and no [a1]", w.text())
		}
		m.expect(t)
	})
}

// F5: a transaction that got no reply may still commit, and then the item is done. It is not discarded before the
// transaction has ended and Select has returned the item again.
func TestNoDiscardWhileACommitIsUnderWay(t *testing.T) {
	for _, committed := range []bool{false, true} {
		bubble(t, func(t *testing.T, w *world) {
			b := &bin{newRows(w, "a1"), nil}
			b.bad["a1"] = processor.Permanent(errBroken)
			ended := false
			enter := func(context.Context, processor.Queue, bool) (bool, error) {
				b.mu.Lock()
				defer b.mu.Unlock()
				switch {
				case b.fails["a1"] == 0 || ended:
					return false, nil
				case time.Since(w.begin) < 3*time.Second:
					return false, errors.New("the transaction is open")
				}
				if ended = true; committed {
					b.open = nil
				}
				return true, nil
			}
			w.start(t, b, engine.Env{Enter: enter, Items: failedItems{newMemory()}, Bind: bind}, limited(), "a")
			w.expect(t, "0s [a1]")
			time.Sleep(2 * time.Second)
			w.expect(t)
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := strings.Count(w.text(), "discard a1"); n == 1 == committed || len(b.open) > 0 {
				t.Errorf("committed %t: journal: %s, and open: %v", committed, w.text(), b.open)
			}
		})
	}
}

// A Discard that fails is called again after the pauses of the retry policy, also if there is no room to note it.
func TestPausesOfDiscard(t *testing.T) {
	for _, room := range []int{100, 5, 0} {
		bubble(t, func(t *testing.T, w *world) {
			w.before = func() { w.SetMaxNotes(room) }
			b, m := &bin{newRows(w, numbered("a", 20)...), errors.New("no room")}, newMemory()
			for _, key := range b.open {
				m.items[key] = engine.FailedItem{Key: key, Attempts: 3, LastError: "was broken", Dead: true}
			}
			s := limited()
			s.RetryJitter = 0
			w.start(t, b, engine.Env{Items: failedItems{m}, Bind: bind}, s, "a")
			time.Sleep(10 * time.Minute)
			if n := strings.Count(w.text(), "discard a7:"); n < 10 || n > 20 {
				t.Errorf("room for %d: %d calls of Discard of an item in ten minutes, want 10 to 20", room, n)
			}
			if w.Notes() > room+s.ThreadNumber {
				t.Errorf("room for %d: %d notes", room, w.Notes())
			}
			b.mu.Lock()
			b.err = nil
			b.mu.Unlock()
			time.Sleep(2 * time.Minute)
			b.mu.Lock()
			defer b.mu.Unlock()
			if len(b.open) > 0 {
				t.Errorf("room for %d: %d items are not discarded", room, len(b.open))
			}
		})
	}
}

// An item whose Discard fails is not executed as the probe of an outage (X5).
func TestDeadItemIsNoProbe(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b := &bin{newRows(w, "a1"), errors.New("no room")}
		b.bad["a1"] = processor.Permanent(errBroken)
		w.start(t, b, engine.Env{Bind: bind}, usual(), "a")
		time.Sleep(time.Minute)
		b.mu.Lock()
		for _, item := range []string{"a2", "a3", "a4"} {
			b.open, b.bad[item] = append(b.open, item), errDown
		}
		b.mu.Unlock()
		time.Sleep(time.Hour)
		if text := w.text(); strings.Count(text, "[a1]") != 1 || strings.Count(text, "[a2]") < 2 {
			t.Errorf("journal: %s, want [a1] once, and [a2] again and again", text)
		}
	})
}

// The failure of Discard is in the last error, beside the failure of the item.
func TestLastErrorContainsTheFailureOfDiscard(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b := &bin{newRows(w, "a1"), errors.New("no room")}
		b.bad["a1"] = processor.Permanent(errBroken)
		w.start(t, b, engine.Env{Bind: bind}, limited(), "a")
		synctest.Wait()
		want := "execute 1 item of queue a: broken; discard item a1: no room"
		if err := w.Stats().LastError; err == nil || err.Error() != want || !errors.Is(err, errBroken) {
			t.Errorf("last error %v, want %s", err, want)
		}
	})
}

// panicking is a Discarder that panics.
type panicking struct{ *rows }

func (panicking) Discard(context.Context, string, error) error { return explode() }

// A panic of Discard is an error with its stack, like one of Execute.
func TestPanicOfDiscardIsLoggedWithItsStack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := panicking{newRows(w, "a1")}
		d.bad["a1"] = processor.Permanent(errBroken)
		w.start(t, d, engine.Env{}, limited(), "a")
		synctest.Wait()
		for _, line := range w.log.Lines() {
			if line.Level == slog.LevelError && strings.Contains(fmt.Sprint(line.Fields["stack"]), "explode") {
				return
			}
		}
		t.Errorf("lines: %+v, want an error with explode in its stack", w.log.Lines())
	})
}

// tapeBin is a Cursored dealer that is a Discarder.
type tapeBin struct{ *tape }

func (tapeBin) Key(item string) string { return item }

func (b tapeBin) Discard(ctx context.Context, item string, _ error) error {
	b.w.note("discard %s %v", item, ctx.Value(cursorKey{}))
	return nil
}

// A fenced transaction of Discard does not save the cursor: the cursor passes the item when its death is recorded (X3).
func TestDiscardMovesNoCursor(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, m := tapeBin{newTape(w, 2)}, newMemory()
		d.bad["a00"] = processor.Permanent(errBroken)
		s := settings()
		s.ExecuteNumber, s.ItemMaxAttempts = 1, 2
		w.start(t, d, engine.Env{Cursors: cursorsOf{m}, Items: failedItems{m}, Bind: bindCursor}, s, "a")
		synctest.Wait()
		w.expect(t, "0s a00-a00 a00", "0s a01-a01 a01", "0s discard a00 none")
		m.expect(t, "save a00 1 true", "load cursor a", "cursor a a00", "cursor a a01")
	})
}

func TestPanicOfACapabilityIsAFailure(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &badKey{newRows(w, "a1", "a2", "a3")}
		d.bad["a2"] = errBroken
		w.start(t, d, engine.Env{}, settings(), "a")
		time.Sleep(time.Minute)
		w.stop()
		if s := w.Stats(); s.InFlight != 0 || s.FetchCount > 12 || s.FetchCount < 3 {
			t.Errorf("stats: %+v, want InFlight 0, FetchCount 3 to 12", s)
		}
	})
}

type badKey struct{ *rows }

func (*badKey) Key(string) string { panic("no key") }

// Discarded items are not in the source any more: they raise no limit of a select, and no alert (X2).
func TestDiscardedItemsAreNotParked(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b, m, told := &bin{rows: newRows(w, numbered("a", 400)...)}, newMemory(), &alertBook{}
		for _, item := range b.open {
			b.bad[item] = processor.Permanent(errBroken)
		}
		s := settings()
		w.start(t, b, engine.Env{Items: failedItems{m}, Alert: told.add}, s, "a")
		time.Sleep(time.Hour)
		b.mu.Lock()
		b.limits = nil
		b.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.Stats().DeadCount; n != 400 || len(b.open) > 0 || slices.Max(b.limits) != s.FetchNumber {
			t.Errorf("%d dead, %d open, limits %v, want 400, 0 and %d", n, len(b.open), b.limits, s.FetchNumber)
		}
		if text := told.text(); text != "" {
			t.Errorf("alerts: %s, want none", text)
		}
	})
}
