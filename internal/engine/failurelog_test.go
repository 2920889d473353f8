package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// The failed items are loaded from the store under a new grant, and again after Reload.
func TestFailedItemsAreLoaded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1", "a2", "a3"), newMemory()
		for _, f := range []engine.FailedItem{
			{Key: "a1", Attempts: 3, Dead: true},
			{Key: "a2", Attempts: 2, RetryIn: 10 * time.Second},
		} {
			m.items[f.Key] = f
		}
		s := limited()
		s.SleepTimeNoData = 4 * time.Second
		w.start(t, r, engine.Env{Items: failedItems{m}}, s, "a")
		time.Sleep(11 * time.Second)
		w.expect(t, "0s [a3]", "10s [a2]")
		m.mu.Lock()
		m.items["a1"] = engine.FailedItem{Key: "a1", Attempts: 0} // rota item retry
		m.mu.Unlock()
		w.Reload()
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if text := w.text(); !strings.Contains(text, "[a1]") || strings.Contains(text, "a3") {
			t.Errorf("journal: %s, want [a1], and no a3", text)
		}
	})
}

// The next owner discards a dead item that is still selected, because the owner before it may have ended between the
// record of the death and the Discard. It does so once, even if the Discard does not take the item out of the source.
func TestNextOwnerDiscardsADeadItem(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1", "a2"), newMemory()
		b := &stubbornBin{bin{r, errors.New("no room")}}
		m.items["a1"] = engine.FailedItem{Key: "a1", Attempts: 3, LastError: "was broken", Dead: true}
		w.start(t, b, engine.Env{Items: failedItems{m}, Bind: bind}, limited(), "a")
		synctest.Wait()
		if text := w.text(); !strings.Contains(text, "discard a1: was broken a:7") {
			t.Errorf("journal: %s, want a discard of a1", text)
		}
		b.mu.Lock()
		b.err = nil
		b.mu.Unlock()
		time.Sleep(time.Hour)
		w.Reload()
		time.Sleep(time.Hour)
		if n := strings.Count(w.text(), "discard a1: was broken a:7"); n != 2 {
			t.Errorf("journal: %s, want one discard of a1 that fails and one that does not", w.text())
		}
		w.Drain("a")
		time.Sleep(time.Minute)
		w.Forget("a")
		if err := w.Grant(processor.Queue{ID: "a", Epoch: 8}, 1); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if n := strings.Count(w.text(), "discard a1: was broken a:8"); n != 1 {
			t.Errorf("journal: %s, want one discard of a1 under the next epoch", w.text())
		}
	})
}

// stubbornBin is a Discarder that leaves its items in the source.
type stubbornBin struct{ bin }

func (b *stubbornBin) Discard(ctx context.Context, item string, cause error) error {
	b.mu.Lock()
	open := slices.Clone(b.open)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.open = open
		b.mu.Unlock()
	}()
	return b.bin.Discard(ctx, item, cause)
}

// An item whose death the store does not have is not discarded before it is there.
func TestNoDiscardBeforeTheRecord(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		b, m := &bin{newRows(w, "a1"), nil}, newMemory()
		b.bad["a1"], m.saveErr = processor.Permanent(errBroken), errors.New("disk full")
		w.start(t, b, engine.Env{Items: failedItems{m}, Bind: bind}, limited(), "a")
		time.Sleep(time.Hour)
		w.expect(t, "0s [a1]")
		m.mu.Lock()
		m.saveErr = nil
		m.mu.Unlock()
		time.Sleep(time.Hour)
		if text := w.text(); strings.Count(text, "discard a1: broken") != 1 || strings.Contains(text, "[a1]") {
			t.Errorf("journal: %s, want one discard, and no [a1]", text)
		}
		if !m.records()["a1"].Dead {
			t.Errorf("the record of a1 is %+v, want Dead", m.records()["a1"])
		}
	})
}

func TestLoadErrorFailsTheSelect(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1"), newMemory()
		m.err = errBroken
		w.start(t, r, engine.Env{Items: failedItems{m}}, settings(), "a")
		time.Sleep(5 * time.Second)
		w.expect(t)
		if s := w.Stats(); !errors.Is(s.LastError, errBroken) || len(r.limits) > 0 {
			t.Errorf("stats: %+v, want LastError %v, and no select", s, errBroken)
		}
		m.mu.Lock()
		m.err = nil
		m.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(r.open) != 0 {
			t.Errorf("open: %v, want none", r.open)
		}
	})
}

// The death of an item that could not be recorded is recorded later, and an alert says so until then.
func TestDeathIsRecordedLater(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, m := newRows(w, "a1"), newMemory()
		r.bad["a1"], m.saveErr = errBroken, errors.New("disk full")
		s := limited()
		s.ItemMaxAttempts = 1
		told := &alertBook{}
		w.start(t, r, engine.Env{Items: failedItems{m}, Alert: told.add}, s, "a")
		time.Sleep(29 * time.Second)
		if text := told.text(); text != "" {
			t.Errorf("alerts of a store that has failed for 29 s: %s", text)
		}
		time.Sleep(time.Hour)
		w.expect(t, "0s [a1]")
		if text := told.text(); text != "UNRECORDED of a; UNRECORDED of a; " {
			t.Errorf("alerts: %s, want one every half an hour", text)
		}
		logged := false
		for _, e := range w.log.Lines() {
			err, _ := e.Fields["error"].(error)
			logged = logged || e.Level == slog.LevelWarn && errors.Is(err, m.saveErr)
		}
		if !logged {
			t.Error("the error is not logged")
		}
		m.mu.Lock()
		m.saveErr = nil
		m.mu.Unlock()
		time.Sleep(time.Hour)
		if w.expect(t); !m.records()["a1"].Dead {
			t.Errorf("the record of a1 is %+v, want Dead", m.records()["a1"])
		}
	})
}

func TestStoreErrorThatMeansLostQueue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		gone := errors.New("gone")
		r, m := newRows(w, "a1", "a2"), newMemory()
		r.bad["a1"], m.saveErr = errBroken, gone
		s := settings()
		s.ExecuteNumber, s.ThreadNumber = 1, 1
		env := engine.Env{Items: failedItems{m}, Lost: func(err error) bool { return errors.Is(err, gone) }}
		w.start(t, r, env, s, "a")
		time.Sleep(time.Hour)
		w.expect(t, "0s [a1]")
		if h := w.holding(t, "a"); !h.Lost || !h.Drained {
			t.Errorf("holding: %+v, want Lost, Drained", h)
		}
	})
}

// Items that back off or are dead do not starve the others. The limit is bounded, and the bound alerts for as long as
// it lasts (X2).
func TestParkedItemsRaiseTheLimit(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, numbered("a", 60)...)
		for _, item := range r.open[:30] {
			r.bad[item] = processor.Permanent(errBroken)
		}
		s := settings()
		s.FetchNumber, s.ExecuteNumber = 5, 1
		told := &alertBook{}
		w.start(t, r, engine.Env{Alert: told.add}, s, "a")
		time.Sleep(time.Minute)
		synctest.Wait()
		r.mu.Lock()
		last := r.limits[len(r.limits)-1]
		if alerts := told.take(); len(r.open) != 30 || len(alerts) != 0 || last != 35 || slices.Max(r.limits) > 50 {
			t.Errorf("%d are left, alerts %v, limits %v, want 30, none, 35 in the end", len(r.open), alerts, r.limits)
		}
		more := numbered("a", 200)[100:]
		r.open = append(r.open, more...)
		for _, item := range more {
			r.bad[item] = processor.Permanent(errBroken)
		}
		r.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		r.mu.Lock()
		most := slices.Max(r.limits)
		r.mu.Unlock()
		if alerts := told.take(); len(alerts) != 1 || alerts[0].Kind != engine.AlertParked || alerts[0].Queue != "a" ||
			most != 50 {
			t.Errorf("alerts %v, limit up to %d, want one %s of queue a, limit up to 50", alerts, most, engine.AlertParked)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(told.take()); n < 50 || n > 61 {
			t.Errorf("%d alerts in an hour, want about one a minute", n)
		}
	})
}

// Failed items that have left the source, because they were deleted by hand or Select leaves out dead items, raise no
// limit, and no alert says that they may hide others (X2).
func TestParkedItemsLeaveTheSource(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r, told := newRows(w, numbered("a", 200)...), &alertBook{}
		for _, item := range r.open {
			r.bad[item] = processor.Permanent(errBroken)
		}
		s := settings()
		w.start(t, r, engine.Env{Alert: told.add}, s, "a")
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(told.take()) == 0 {
			t.Error("no alert about parked items, want one")
		}
		r.mu.Lock()
		r.open = nil
		r.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		told.take()
		r.mu.Lock()
		r.open, r.limits = []string{"a_new"}, nil
		r.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		if alerts := told.take(); len(alerts) > 0 || len(r.open) > 0 || slices.Max(r.limits) > s.FetchNumber+1 {
			t.Errorf("alerts %v, %d open, limits %v, want neither, and at most %d", alerts, len(r.open), r.limits,
				s.FetchNumber+1)
		}
	})
}
