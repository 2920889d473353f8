package processor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/processor"
)

// limited are settings under which items die.
func limited() processor.Settings {
	s := settings()
	s.FetchNumber, s.ExecuteNumber, s.ItemMaxAttempts = 200, 100, 3
	return s
}

// One item that fails costs a batch of a hundred nothing but a repetition, at once, in ever smaller batches.
func TestPoisonItemDoesNotSpoilItsBatch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 100)...)
		r.bad["a42"] = errBroken
		m := newMemory()
		w.start(t, r, processor.Env{Items: failedItems{m}}, limited(), "a")
		synctest.Wait()
		if !slices.Equal(r.open, []string{"a42"}) || r.fails["a42"] != 1 {
			t.Errorf("after no time: open %v, failed alone %v", r.open, r.fails)
		}
		if s := w.Stats(); s.FailureCount != 111 || s.SuccessCount != 99 || s.Parked != 1 {
			t.Errorf("stats: %+v", s)
		}
		time.Sleep(time.Minute)
		w.stop()
		if r.fails["a42"] != 3 || w.Stats().DeadCount != 1 {
			t.Errorf("failed alone %v, stats %+v", r.fails, w.Stats())
		}
		if want := []string{"load a", "save a42 1 false", "save a42 2 false", "save a42 3 true"}; !slices.Equal(m.journal(), want) {
			t.Errorf("store: %v", m.calls)
		}
	})
}

// The good ones of a failed batch wait for no sleep.
func TestSuspectsAreTriedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 30)...)
		r.bad["a7"] = errBroken
		s := limited()
		s.SleepTimeInterval = time.Hour
		w.start(t, r, processor.Env{}, s, "a")
		synctest.Wait()
		if !slices.Equal(r.open, []string{"a7"}) {
			t.Errorf("open: %v", r.open)
		}
	})
}

// An item backs off by itself, longer and longer, while the others of its queue go on.
func TestItemBacksOffByItself(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1")
		r.bad["a1"] = errBroken
		s := settings()
		s.RetryMax = 20 * time.Second
		s.SleepTimeNoData = 7 * time.Second // longer than a pause
		w.start(t, r, processor.Env{}, s, "a")
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

func TestSuccessForgetsTheFailures(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1"), newMemory()
		r.bad["a1"] = errBroken
		w.start(t, r, processor.Env{Items: failedItems{m}}, settings(), "a")
		synctest.Wait()
		r.mu.Lock()
		delete(r.bad, "a1")
		r.mu.Unlock()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if want := []string{"load a", "save a1 1 false", "delete a1"}; !slices.Equal(m.journal(), want) || len(m.items) != 0 {
			t.Errorf("store: %v", m.items)
		}
		if n := w.Stats().Parked; n != 0 {
			t.Errorf("%d parked", n)
		}
	})
}

// partly is a dealer that names which items failed.
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
		w.start(t, partly{r}, processor.Env{Items: failedItems{m}}, limited(), "a")
		w.expect(t, "0s [a0]", "0s [a1]", "0s [a2]", "0s [a3]", "0s [a4]") // none twice
		if want := []string{"load a", "save a1 1 false", "save a3 1 true"}; !slices.Equal(m.journal(), want) {
			t.Errorf("store: %v", m.calls)
		}
		if s := w.Stats(); s.FailureCount != 2 || s.SuccessCount != 3 || s.DeadCount != 1 || !errors.Is(s.LastError, errBroken) {
			t.Errorf("stats: %+v", s)
		}
	})
}

func TestFailuresOutsideOfTheBatchAreOfTheWhole(t *testing.T) {
	var f processor.Failures
	f.Add(0, nil)
	if f.Err() != nil {
		t.Error("a nil error is a failure")
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
			w.start(t, d, processor.Env{}, settings(), "a")
			synctest.Wait()
			if s := w.Stats(); s.FailureCount != 2 || s.Parked != 0 {
				t.Errorf("stats: %+v", s)
			}
		})
	}
}

func TestRetryAfterIsTheItemsWish(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "a1")
		r.bad["a1"] = fmt.Errorf("busy: %w", processor.RetryAfter(42*time.Second, errBroken))
		w.start(t, r, processor.Env{}, settings(), "a")
		time.Sleep(100 * time.Second)
		w.expect(t, "0s [a1]", "42s [a1]", "1m24s [a1]")
	})
}

// Without keys it is the wish of the queue.
func TestRetryAfterIsTheQueuesWish(t *testing.T) {
	for name, inSelect := range map[string]bool{"select": true, "execute": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				bad := func() error { return processor.RetryAfter(42*time.Second, errBroken) }
				w.start(t, failing(w, inSelect, bad), processor.Env{}, settings(), "a")
				time.Sleep(100 * time.Second)
				w.expect(t, "0s a", "42s a", "1m24s a")
			})
		})
	}
}

// bin is a Discarder.
type bin struct {
	*rows
	err error
}

func (b *bin) Discard(ctx context.Context, item string, cause error) error {
	b.w.note("discard %s: %v %v", item, cause, bound(ctx))
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Discard is tried until it succeeds, and Execute is not called in between.
func TestDiscardOnceAndUntilItSucceeds(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b, m := &bin{newRows(w, "a1"), errors.New("no room")}, newMemory()
		b.bad["a1"] = processor.Permanent(errBroken)
		s := limited()
		s.RetryMax = s.Retry
		w.start(t, b, processor.Env{Items: failedItems{m}, Bind: bind}, s, "a")
		w.expect(t, "0s [a1]", "0s discard a1: broken [a:7]")
		if want := []string{"load a", "save a1 3 false"}; !slices.Equal(m.journal(), want) {
			t.Errorf("store: %v", m.calls)
		}
		b.mu.Lock()
		b.err = nil
		b.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := strings.Count(w.text(), "discard"); n != 1 || strings.Contains(w.text(), "[a1]") {
			t.Errorf("journal: %s", w.text())
		}
		if want := []string{"save a1 3 true"}; !slices.Equal(m.journal(), want) {
			t.Errorf("store: %v", m.calls)
		}
	})
}

// What is known of the items comes from the store under a new grant, and again after Reload.
func TestFailedItemsAreLoaded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b, m := &bin{newRows(w, "a1", "a2", "a3", "a4"), nil}, newMemory()
		for _, f := range []processor.FailedItem{
			{Key: "a1", Attempts: 3, Dead: true},
			{Key: "a2", Attempts: 2, RetryIn: 10 * time.Second},
			{Key: "a3", Attempts: 3, LastError: "was broken"}, // whose Discard failed elsewhere
		} {
			m.items[f.Key] = f
		}
		s := limited()
		s.SleepTimeNoData = 4 * time.Second
		w.start(t, b, processor.Env{Items: failedItems{m}, Bind: bind}, s, "a")
		time.Sleep(11 * time.Second)
		w.expect(t, "0s [a4]", "0s discard a3: was broken [a:7]", "10s [a2]")
		m.mu.Lock()
		m.items["a1"] = processor.FailedItem{Key: "a1", Attempts: 0} // rota item retry
		m.mu.Unlock()
		w.Reload()
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if text := w.text(); !strings.Contains(text, "[a1]") || strings.Contains(text, "a3") {
			t.Errorf("journal: %s", text)
		}
	})
}

func TestLoadThatFailsIsAFailedSelect(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1"), newMemory()
		m.err = errBroken
		w.start(t, r, processor.Env{Items: failedItems{m}}, settings(), "a")
		time.Sleep(5 * time.Second)
		w.expect(t)
		if s := w.Stats(); !errors.Is(s.LastError, errBroken) || len(r.limits) > 0 {
			t.Errorf("stats: %+v", s)
		}
		m.mu.Lock()
		m.err = nil
		m.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(r.open) != 0 {
			t.Errorf("open: %v", r.open)
		}
	})
}

func TestSaveThatFailsIsLoggedAndMemoryHolds(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1"), newMemory()
		r.bad["a1"], m.saveErr = errBroken, errors.New("disk full")
		s := limited()
		s.ItemMaxAttempts = 1
		w.start(t, r, processor.Env{Items: failedItems{m}}, s, "a")
		time.Sleep(time.Hour)
		w.expect(t, "0s [a1]")
		logged := false
		for _, e := range w.logs.AllEntries() {
			err, _ := e.Data["err"].(error)
			logged = logged || e.Level == logrus.ErrorLevel && errors.Is(err, m.saveErr)
		}
		if !logged {
			t.Error("not logged")
		}
	})
}

func TestStoreThatKnowsTheQueueIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		gone := errors.New("gone")
		r, m := newRows(w, "a1", "a2"), newMemory()
		r.bad["a1"], m.saveErr = errBroken, gone
		s := settings()
		s.ExecuteNumber, s.ThreadNumber = 1, 1
		env := processor.Env{Items: failedItems{m}, Lost: func(err error) bool { return errors.Is(err, gone) }}
		w.start(t, r, env, s, "a")
		time.Sleep(time.Hour)
		w.expect(t, "0s [a1]")
		if h := w.holding(t, "a"); !h.Lost || !h.Drained {
			t.Errorf("holding: %+v", h)
		}
	})
}

// X2: what backs off or is dead does not starve the others; the limit has a bound, which alerts once.
func TestParkedItemsRaiseTheLimit(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 60)...)
		for _, item := range r.open[:30] {
			r.bad[item] = processor.Permanent(errBroken)
		}
		s := settings()
		s.FetchNumber, s.ExecuteNumber = 5, 1
		var alerts []processor.Alert
		env := processor.Env{Alert: func(a processor.Alert) { alerts = append(alerts, a) }}
		w.start(t, r, env, s, "a")
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(r.open) != 30 || len(alerts) != 0 || slices.Max(r.limits) != 35 {
			t.Errorf("%d are left, alerts %v, limits %v", len(r.open), alerts, r.limits)
		}
		r.mu.Lock()
		more := numbered("a", 200)[100:]
		r.open = append(r.open, more...)
		for _, item := range more {
			r.bad[item] = processor.Permanent(errBroken)
		}
		r.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(alerts) != 1 || alerts[0].Kind != processor.AlertParked || alerts[0].Queue != "a" || slices.Max(r.limits) != 50 {
			t.Errorf("alerts %v, limit up to %d", alerts, slices.Max(r.limits))
		}
	})
}

// In a set, items of several queues share a batch and a failure, but each has its own record.
func TestSetFailedItems(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1", "b1", "a2", "b2"), newMemory()
		r.bad["b1"] = errBroken
		d := &keyedSet{rows: r}
		w.start(t, d, processor.Env{Items: failedItems{m}}, limited(), "a", "b")
		time.Sleep(time.Minute)
		w.stop()
		if !slices.Equal(r.open, []string{"b1"}) || r.fails["b1"] != 3 {
			t.Errorf("open %v, failed alone %v", r.open, r.fails)
		}
		if want := []string{"load a", "load b", "save b1 1 false", "save b1 2 false", "save b1 3 true"}; !slices.Equal(m.journal(), want) {
			t.Errorf("store: %v", m.calls)
		}
	})
}

// keyedSet is rows as a SetSelector.
type keyedSet struct{ *rows }

func (k *keyedSet) QueueOf(item string) string { return item[:1] }

func (k *keyedSet) SelectSet(_ context.Context, s processor.Selection, owned []processor.Queue) (page []string, _ error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, item := range k.open {
		if slices.ContainsFunc(owned, func(q processor.Queue) bool { return q.ID == item[:1] }) && len(page) < s.Limit {
			page = append(page, item)
		}
	}
	return page, nil
}

func TestPanicOfAPowerIsAFailure(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &badKey{newRows(w, "a1", "a2", "a3")}
		d.bad["a2"] = errBroken
		w.start(t, d, processor.Env{}, settings(), "a")
		time.Sleep(time.Minute)
		w.stop()
		if s := w.Stats(); s.InHand != 0 || s.FetchCount > 12 || s.FetchCount < 3 {
			t.Errorf("stats: %+v", s)
		}
	})
}

type badKey struct{ *rows }

func (*badKey) Key(string) string { panic("no key") }
