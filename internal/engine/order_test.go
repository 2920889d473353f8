package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/processor"
)

// orderedRows are rows whose order key is the second letter: "ax2" of queue a has the key x.
type orderedRows struct {
	*rows
	atomic  bool
	held    bool          // Select leaves out Selection.Held, and what a database takes for equal: x and X
	selects time.Duration // how long a Select takes
}

func (r *orderedRows) OrderKey(item string) string { return item[1:2] }
func (r *orderedRows) Atomic() bool                { return r.atomic }

func (r *orderedRows) Select(ctx context.Context, s processor.Selection) (page []string, err error) {
	if err := nap(ctx, r.selects); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range r.open[slices.Index(r.open, s.After)+1:] { // the index is -1 at the start
		leftOut := r.held && slices.ContainsFunc(s.Held, func(key string) bool { return strings.EqualFold(key, item[1:2]) })
		if item[:1] == s.Queue.ID && !leftOut && len(page) < s.Limit {
			page = append(page, item)
		}
	}
	return page, nil
}

func (r *orderedRows) heal(item string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.bad, item)
}

// Items of one key are executed one after the other, and share no batch unless the dealer is Atomic (X10).
func TestItemsOfAKeyAreInOrder(t *testing.T) {
	for atomic, want := range map[bool][]string{
		false: {"0s [ax1 ay1]", "0s [az1]", "10s [ax2]", "20s [ax3]"},
		true:  {"0s [ax1 ax2]", "0s [ay1 az1]", "10s [ax3]"},
	} {
		t.Run(fmt.Sprintf("atomic %t", atomic), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := &orderedRows{rows: newRows(w, "ax1", "ax2", "ay1", "ax3", "az1"), atomic: atomic}
				d.takes = 10 * time.Second
				w.start(t, d, engine.Env{}, settings(), "a")
				time.Sleep(time.Minute)
				w.expect(t, want...)
			})
		})
	}
}

// A failed item holds back the items of its key, and no others, until it is done (X10). Its record has its order key.
func TestAFailedItemHoldsItsKey(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &orderedRows{rows: newRows(w, "ax1", "ax2", "ay1", "ay2", "ax3"), atomic: true}
		d.bad["ax1"] = errBroken
		store := newMemory()
		s := settings()
		s.RetryJitter, s.ExecuteNumber, s.ItemMaxAttempts = 0, 4, 10
		w.start(t, d, engine.Env{Items: failedItems{store}}, s, "a")
		synctest.Wait()
		w.expect(t, "0s [ax1 ax2 ax3 ay1]", "0s [ax1]", "0s [ay1]", "0s [ay2]")
		if got := store.records()["ax1"]; got.OrderKey != "x" {
			t.Errorf("the record is %+v, want order key x", got)
		}
		time.Sleep(2 * time.Second)
		w.expect(t, "1s [ax1]")
		if held := w.Stats().HeldKeys; held != 1 {
			t.Errorf("%d keys are held, want 1", held)
		}
		d.heal("ax1")
		time.Sleep(2 * time.Second)
		w.expect(t, "3s [ax1]", "3s [ax2]", "3s [ax3]") // suspects, in order
		time.Sleep(2 * time.Second)
		if held := w.Stats().HeldKeys; held != 0 {
			t.Errorf("%d keys are held, want 0", held)
		}
	})
}

// pagedRows are ordered rows whose selects go on behind pages of 30 items.
type pagedRows struct{ *orderedRows }

func (r pagedRows) Position(item string) string { return item }

func (r pagedRows) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	s.Limit = 30
	return r.orderedRows.Select(ctx, s)
}

// An item holds its key also behind the page that it is on: if it was left there, and if it fails after the pass has
// moved on (X10).
func TestAKeyIsHeldBehindThePage(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		items := append(numbered("ax", 29), "ay0", "ay1", "ax29", "az0", "az1") // ax0 is dead
		d := pagedRows{&orderedRows{rows: newRows(w, items...)}}
		d.bad["ay0"] = errBroken
		store := newMemory()
		store.items["ax0"] = engine.FailedItem{Key: "ax0", Queue: "a", Attempts: 3, Dead: true}
		s := settings()
		s.ThreadNumber, s.FetchNumber, s.ExecuteNumber, s.ItemMaxAttempts = 1, 2, 1, 3
		s.Retry, s.RetryMax = time.Hour, time.Hour
		w.start(t, d, engine.Env{Items: failedItems{store}}, s, "a")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		want := []string{"[ay0]", "[az0]", "[az1]"}
		for line := range strings.SplitSeq(w.text(), "\n") {
			if item := strings.Fields(line)[1]; len(want) == 0 || item != want[0] {
				t.Fatalf("executed:\n%s\nwant ay0, az0 and az1", w.text())
			}
			want = want[1:]
		}
	})
}

// If more keys wait than the bound of memory, the pass stays where it is, because it could execute an item before one of
// its key behind it. It says so for as long as that lasts, and goes on as soon as an item is done.
func TestAPassStopsAtTheBoundOfItsKeys(t *testing.T) {
	for most, behind := range map[int]string{2: "", 3: "[aw0]"} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				items := slices.Concat([]string{"ay0", "az0"}, numbered("ax", 28), []string{"aw0", "ay1", "ax28"})
				d := pagedRows{&orderedRows{rows: newRows(w, items...)}}
				store, told := dead("ax0", "ay0", "az0"), &alertBook{}
				s := settings()
				s.ThreadNumber, s.FetchNumber, s.ExecuteNumber = 1, 2, 1
				s.SleepTimeNoData = time.Minute
				w.start(t, d, engine.Env{Items: store, Alert: told.add}, s)
				w.SetMaxKeysBehind(most)
				w.grant(t, "a")
				time.Sleep(2*time.Hour - time.Minute)
				synctest.Wait()
				executed := func() (list string) {
					for line := range strings.Lines(w.text()) {
						list += strings.Fields(line)[1]
					}
					return list
				}
				want := strings.Repeat("PARKED of a about order keys; ", 4*(3-most))
				if got, alerts := executed(), told.text(); got != behind || alerts != want {
					t.Errorf("executed %q, alerts %q, want %q and %q", got, alerts, behind, want)
				}
				store.mu.Lock()
				delete(store.items, "ay0")
				store.mu.Unlock()
				w.Reload()
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				if got, alerts := executed(), told.text(); len(got) != len("[ay0][aw0][ay1]") ||
					strings.Index(got, "[ay0]") > strings.Index(got, "[ay1]") || alerts != "" {
					t.Errorf("executed %q, alerts %q, want ay0, aw0 and ay1, and no alert", got, alerts)
				}
			})
		})
	}
}

// In NOTSLEEP an item waits for one of its key that is in flight, and if that fails, for its retry (X10).
func TestAnItemInFlightHoldsItsKey(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &orderedRows{rows: newRows(w, "ax1", "ax2", "ay1")}
		d.takes, d.bad["ax1"] = 10*time.Second, errBroken
		s := settings()
		s.NotSleep, s.FetchNumber, s.ExecuteNumber, s.RetryJitter = true, 1, 1, 0
		w.start(t, d, engine.Env{}, s, "a")
		time.Sleep(15 * time.Second)
		w.expect(t, "0s [ax1]", "0s [ay1]", "11s [ax1]")
		d.heal("ax1")
		time.Sleep(time.Minute)
		w.expect(t, "21s [ax2]")
	})
}

// A select that has left out a held key has not seen its items. They hold those behind the page too, whenever the key
// comes to be held no more (X10).
func TestAKeyThatWasLeftOutIsHeldBehindThePage(t *testing.T) {
	for retry := time.Minute; retry < 2*time.Minute; retry += time.Second {
		bubble(t, func(t *testing.T, w *world) {
			items := slices.Concat([]string{"ax1", "ax2"}, numbered("az", 40), []string{"ax3", "ay1"})
			d := pagedRows{&orderedRows{rows: newRows(w, items...), held: true, selects: 2 * time.Second}}
			d.bad["ax1"] = errBroken
			store := newMemory()
			for _, item := range numbered("az", 40) {
				store.items[item] = engine.FailedItem{Key: item, Queue: "a", Attempts: 3, Dead: true}
			}
			s := settings()
			s.ThreadNumber, s.FetchNumber, s.ExecuteNumber, s.ItemMaxAttempts = 1, 2, 1, 9
			s.Retry, s.RetryMax, s.RetryFactor, s.RetryJitter, s.DeadPasses = retry, retry, 1, 0, true
			w.start(t, d, engine.Env{Items: failedItems{store}}, s, "a")
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			if text := w.text(); strings.Contains(text, "ax2") || strings.Contains(text, "ax3") || !strings.Contains(text, "ay1") {
				t.Errorf("retry after %s: executed:\n%s\nwant only ax1 and ay1", retry, text)
			}
		})
	}
}

// To the database x and X are equal. A select that has left out x has not seen items of X either, which nobody knows to
// be held. They are not passed by (X10).
func TestKeysThatTheDatabaseTakesForEqual(t *testing.T) {
	racetest.Defer(t)
	for after := time.Second; after < 3*time.Minute; after += time.Second {
		bubble(t, func(t *testing.T, w *world) {
			items := slices.Concat([]string{"ax1", "ax2", "aX1"}, numbered("az", 40), []string{"aX2", "aX3", "ay1"})
			d := pagedRows{&orderedRows{rows: newRows(w, items...), held: true, selects: 2 * time.Second}}
			d.bad["ax1"] = processor.RetryAfter(time.Minute+after, errBroken)
			d.bad["aX1"] = processor.RetryAfter(time.Minute, errBroken)
			store := newMemory()
			for _, item := range numbered("az", 40) {
				store.items[item] = engine.FailedItem{Key: item, Queue: "a", Attempts: 3, Dead: true}
			}
			s := settings()
			s.ThreadNumber, s.FetchNumber, s.ExecuteNumber, s.ItemMaxAttempts, s.DeadPasses = 1, 2, 1, 9, true
			w.start(t, d, engine.Env{Items: failedItems{store}}, s, "a")
			time.Sleep(40 * time.Second)
			d.heal("aX1")
			d.heal("ax1")
			time.Sleep(10 * time.Minute)
			text := w.text()
			done, next := strings.LastIndex(text, "aX1"), strings.Index(text, "aX2")
			if next < done || !strings.Contains(text, "aX3") {
				t.Errorf("x held for %s longer than X: executed:\n%s\nwant aX2 behind aX1, and aX3", after, text)
			}
		})
	}
}

// A new owner finds the same order: the source has it, and the store has the failed items.
func TestTheNextOwnerHoldsTheSameKeys(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := &orderedRows{rows: newRows(w, "ax1", "ax2", "ay1"), atomic: true}
		d.bad["ax1"] = errBroken
		store := newMemory()
		s := settings()
		s.RetryJitter, s.Retry = 0, time.Hour
		s.RetryMax = time.Hour
		w.start(t, d, engine.Env{Items: failedItems{store}}, s, "a")
		synctest.Wait()
		w.stop()
		w.expect(t, "0s [ax1 ax2]", "0s [ax1]", "0s [ay1]")
		w.start(t, d, engine.Env{Items: failedItems{store}}, s, "a")
		time.Sleep(10 * time.Minute)
		w.expect(t)
		d.heal("ax1")
		time.Sleep(time.Hour)
		w.expect(t, "1h0m0s [ax1]", "1h0m0s [ax2]")
	})
}

// A dead item holds its key, unless DeadPasses says that the others go on (X10). If it is retried, they wait for it.
func TestADeadItemAndItsKey(t *testing.T) {
	for passes, want := range map[bool][]string{
		false: {"0s [ax1]", "0s [ay1]"},
		true:  {"0s [ax1]", "0s [ax2]", "0s [ay1]"},
	} {
		t.Run(fmt.Sprintf("passes %t", passes), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := &orderedRows{rows: newRows(w, "ax1", "ax2", "ay1")}
				d.bad["ax1"] = processor.Permanent(errBroken)
				store := newMemory()
				s := settings()
				s.ExecuteNumber, s.ItemMaxAttempts, s.DeadPasses = 1, 3, passes
				w.start(t, d, engine.Env{Items: failedItems{store}}, s, "a")
				time.Sleep(10 * time.Second)
				w.expect(t, want...)
			})
		})
	}
}

// One key with many items leaves executors and pages to the others, whether or not Select leaves out Selection.Held.
func TestAHotKeyDoesNotSlowTheOthers(t *testing.T) {
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprintf("leaves out %t", held), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var items []string
				for i := range 300 {
					items = append(items, fmt.Sprintf("ax%d", i))
				}
				for i := range 40 {
					items = append(items, fmt.Sprintf("a%c%d", 'A'+i%20, i))
				}
				d := &orderedRows{rows: newRows(w, items...), held: held}
				d.takes = time.Second
				s := settings()
				s.FetchNumber = 40
				w.start(t, d, engine.Env{}, s, "a")
				time.Sleep(2 * time.Minute) // the hot key alone needs five
				d.mu.Lock()
				defer d.mu.Unlock()
				hot := 0
				for _, item := range d.open {
					if item[1] != 'x' {
						t.Errorf("item %s is not done", item)
					} else {
						hot++
					}
				}
				if hot > 300-60 {
					t.Errorf("%d items of the hot key are left, want at most 240", hot)
				}
			})
		})
	}
}

// An alert says that items of one order key are in two queues, where they have no order. Another number of queues may
// move a key, and a run that has begun before goes on with the number before.
func TestAnOrderKeyInTwoQueues(t *testing.T) {
	for _, c := range []struct {
		partition int64
		total     int
		alerts    int
	}{{0, 1, 1}, {1, 1, 0}, {0, 3, 0}} {
		bubble(t, func(t *testing.T, w *world) {
			var alerts []engine.Alert
			d := &orderedRows{rows: newRows(w, "ax1", "ay1", "bx2", "bz1")}
			env := engine.Env{Alert: func(a engine.Alert) { alerts = append(alerts, a) }}
			s := settings()
			s.ThreadNumber = 1
			w.start(t, d, env, s, "a")
			synctest.Wait()
			if err := w.Grant(processor.Queue{ID: "b", Index: 1, Partition: c.partition}, c.total); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if len(alerts) != c.alerts || c.alerts > 0 && (alerts[0].Kind != engine.AlertKey || alerts[0].Queue != "b") {
				t.Errorf("%+v: alerts %+v", c, alerts)
			}
		})
	}
}

func TestOrderedNeedsKeys(t *testing.T) {
	t.Parallel()
	want := "settings of task type : a dealer that is Ordered must be Keyed and not Cursored"
	_, err := engine.New[string](struct {
		*dealer
		orderedOnly
	}{}, engine.Env{}, settings())
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

type orderedOnly struct{}

func (orderedOnly) OrderKey(string) string { return "" }

// orderedBin is an Ordered dealer that is a Discarder.
type orderedBin struct {
	*orderedRows
	bin *bin
}

func (b orderedBin) Discard(ctx context.Context, item string, cause error) error {
	return b.bin.Discard(ctx, item, cause)
}

// With DeadPasses an item that is dead holds no other, also while its Discard fails (X10).
func TestADeadItemPassesWhileItsDiscardFails(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		r := newRows(w, "ax1", "ax2", "ay1")
		d := orderedBin{&orderedRows{rows: r}, &bin{r, errBroken}}
		d.bad["ax1"] = processor.Permanent(errBroken)
		s := settings()
		s.ExecuteNumber, s.ItemMaxAttempts, s.DeadPasses = 1, 3, true
		w.start(t, d, engine.Env{Items: failedItems{newMemory()}}, s, "a")
		time.Sleep(10 * time.Minute)
		if text := w.text(); !strings.Contains(text, "[ax2]") || strings.Count(text, "discard ax1") < 2 {
			t.Errorf("executed:\n%s\nwant ax2, and the Discard of ax1 more than once", text)
		}
	})
}
