package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/processor"
)

var errDown = errors.New("the service is down")

// service is a dealer of numbered items that a service executes, which may be down. It is Keyed.
type service struct {
	begin time.Time
	takes time.Duration // of an Execute

	mu      sync.Mutex
	down    bool
	bad     map[string]error
	open    []string
	calls   int
	done    map[string]int
	selects []time.Duration
}

func newService(w *world, items ...string) *service {
	return &service{
		begin: w.begin, takes: 10 * time.Millisecond, open: items, bad: map[string]error{},
		done: map[string]int{},
	}
}

func (d *service) Key(item string) string { return item }

func (d *service) Select(_ context.Context, s processor.Selection) (page []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.selects = append(d.selects, time.Since(d.begin))
	for _, item := range d.open {
		if item[:1] == s.Queue.ID && len(page) < s.Limit {
			page = append(page, item)
		}
	}
	return page, nil
}

func (d *service) Execute(ctx context.Context, items []string) error {
	if err := nap(ctx, d.takes); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	for _, item := range items {
		if err := d.bad[item]; err != nil || d.down {
			return errors.Join(err, errDown)
		}
	}
	done := map[string]bool{}
	for _, item := range items {
		d.done[item]++
		done[item] = true
	}
	d.open = slices.DeleteFunc(d.open, func(item string) bool { return done[item] })
	return nil
}

// set changes the service and returns the number of calls since the last change.
func (d *service) set(down bool) (calls int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
	calls, d.calls = d.calls, 0
	return calls
}

func (d *service) left() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}

// densest returns the largest number of selects in any ten seconds.
func (d *service) densest() (most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, first := range d.selects {
		n := 0
		for _, other := range d.selects[i:] {
			if other >= first+10*time.Second {
				break
			}
			n++
		}
		most = max(most, n)
	}
	return most
}

// unkeyed is a service without keys.
type unkeyed struct{ d *service }

func (u unkeyed) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	return u.d.Select(ctx, s)
}

func (u unkeyed) Execute(ctx context.Context, items []string) error { return u.d.Execute(ctx, items) }

// log is a service with a cursor.
type log struct{ *service }

func (l log) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	page, err := l.service.Select(ctx, s)
	return slices.DeleteFunc(page, func(item string) bool { return item <= s.Queue.Cursor }), err
}

func (log) Cursor(item string) string { return item }

// An outage of 90 minutes kills no item, loads nothing, and is over within minutes (X5).
func TestOutageKillsNoItem(t *testing.T) {
	racetest.Skip(t)
	for name, test := range map[string]struct {
		items  int
		dealer func(*service) processor.TaskDealer[string]
	}{
		"keyed":    {8000, func(d *service) processor.TaskDealer[string] { return d }},
		"few":      {3, func(d *service) processor.TaskDealer[string] { return d }},
		"unkeyed":  {8000, func(d *service) processor.TaskDealer[string] { return unkeyed{d} }},
		"cursored": {800, func(d *service) processor.TaskDealer[string] { return log{d} }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				items := make([]string, test.items)
				for i := range items {
					items[i] = fmt.Sprintf("a%05d", i)
				}
				d := newService(w, items...)
				d.down = true
				w.start(t, test.dealer(d), engine.Env{Items: failedItems{newMemory()}}, usual(), "a")
				time.Sleep(time.Minute)
				if s := w.Stats(); s.OutageSince.IsZero() || !errors.Is(s.LastError, errDown) {
					t.Errorf("after a minute: %+v, want OutageSince and LastError", s)
				}
				time.Sleep(89 * time.Minute)
				synctest.Wait()
				if n := d.set(false); n > test.items+400 {
					t.Errorf("%d calls during the outage, want at most one for each item, and 400", n)
				}
				if n := d.densest(); n > 30 {
					t.Errorf("%d selects in ten seconds, want less than 3 a second", n)
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if s := w.Stats(); d.left() > 0 || s.DeadCount > 0 || !s.OutageSince.IsZero() {
					t.Errorf("two minutes after the outage: %d left, %+v, want none, no dead item and no outage", d.left(), s)
				}
			})
		})
	}
}

// late is a service that goes down after it has begun the item a0, which takes a second and succeeds.
type late struct{ *service }

func (l late) Execute(ctx context.Context, items []string) error {
	if items[0] != "a0" {
		return l.service.Execute(ctx, items)
	}
	err := nap(ctx, time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = slices.DeleteFunc(l.open, func(item string) bool { return item == items[0] })
	return err
}

// A call that began before an outage and succeeds in it does not end it, and proves nothing about the items that have
// failed meanwhile (X5).
func TestCallFromBeforeAnOutageEndsNoOutage(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d, items := late{newService(w, numbered("a", 200)...)}, newMemory()
		d.down = true
		s := usual()
		s.ExecuteNumber = 1
		w.start(t, d, engine.Env{Items: failedItems{items}}, s, "a")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if since := w.Stats().OutageSince; since.IsZero() || since.Sub(w.begin) > time.Second {
			t.Errorf("the outage began at %s, want the first second", since.Sub(w.begin))
		}
		for _, item := range items.items {
			if item.Attempts > 1 {
				t.Errorf("item %s has %d attempts in one outage", item.Key, item.Attempts)
			}
		}
		if d.left() != 199 {
			t.Errorf("%d items are left, want all but one", d.left())
		}
	})
}

// In a run, the sweep passes only the items that failed before an outage was likely.
func TestCallFromBeforeAnOutagePassesNoItem(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := late{newService(w, numbered("a", 200)...)}
		d.down = true
		s := usual()
		s.ExecuteNumber, s.Runs = 1, true
		w.start(t, d, engine.Env{}, s)
		w.grantRun(t, nightly(), "a")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if sweep := w.holding(t, "a").Sweep; sweep.ItemsDone != 1 || sweep.ItemsFailed > 3+int64(s.ThreadNumber) {
			t.Errorf("done %d, failed %d items, want 1 and at most 3 and those in flight", sweep.ItemsDone, sweep.ItemsFailed)
		}
	})
}

// X5: failing items of several queues open the breaker, and a success closes it for all queues.
func TestItemsOfSeveralQueuesOpenTheBreaker(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newService(w, "a1", "b1", "c1", "d1")
		d.down = true
		w.start(t, d, engine.Env{}, usual(), "a", "b", "c", "d")
		time.Sleep(90 * time.Minute)
		if w.Stats().OutageSince.IsZero() {
			t.Error("the breaker is closed, want an outage")
		}
		d.set(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if d.left() > 0 || !w.Stats().OutageSince.IsZero() {
			t.Errorf("a minute after the outage: %v left, %+v", d.open, w.Stats())
		}
	})
}

// A queue in which only poison remains still ends, and a new item is executed within a minute.
func TestQueueOfPoisonStillEnds(t *testing.T) {
	racetest.Skip(t)
	bubble(t, func(t *testing.T, w *world) {
		d := newService(w, numbered("a", 5)...)
		for _, item := range d.open {
			d.bad[item] = errBroken
		}
		s := usual()
		s.SleepTimeNoData = 5 * time.Second
		w.start(t, d, engine.Env{Items: failedItems{newMemory()}}, s, "a")
		time.Sleep(3 * time.Hour)
		for _, item := range []string{"anew", "another"} { // the first closes the breaker, and the poison is tried once more
			d.mu.Lock()
			d.open = append(d.open, item)
			d.mu.Unlock()
			time.Sleep(time.Minute)
			d.mu.Lock()
			if d.done[item] != 1 {
				t.Errorf("new item %s beside poison was executed %d times within a minute, want once", item, d.done[item])
			}
			d.mu.Unlock()
		}
		time.Sleep(4 * 24 * time.Hour)
		synctest.Wait()
		if s := w.Stats(); s.DeadCount != 5 || !s.OutageSince.IsZero() {
			t.Errorf("after four days: %d dead, outage since %v, want 5 and none", s.DeadCount, s.OutageSince)
		}
	})
}

// Failures that are Permanent, and failures beside successes, are no outage.
func TestPoisonBesideSuccessesIsNoOutage(t *testing.T) {
	for name, bad := range map[string]error{"permanent": processor.Permanent(errBroken), "beside successes": errBroken} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := newService(w, numbered("a", 400)...)
				for i, item := range d.open {
					if name == "permanent" || i%2 == 0 {
						d.bad[item] = bad
					}
				}
				s := usual()
				s.ExecuteNumber, s.ThreadNumber = 1, 1
				w.start(t, d, engine.Env{}, s, "a")
				for range 70 { // healthy items are left for four seconds
					time.Sleep(50 * time.Millisecond)
					if since := w.Stats().OutageSince; !since.IsZero() {
						t.Fatalf("an outage since %s", since.Sub(w.begin))
					}
				}
			})
		})
	}
}

// In a run, an outage does not fail the sweep: it waits. The probes are passed, and the next attempt executes them.
func TestSweepWaitsForTheEndOfAnOutage(t *testing.T) {
	for name, test := range map[string]struct {
		dealer func(*service) processor.TaskDealer[string]
		failed int64
	}{
		"keyed":   {func(d *service) processor.TaskDealer[string] { return d }, 300},
		"unkeyed": {func(d *service) processor.TaskDealer[string] { return unkeyed{d} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := newService(w, numbered("a", 2000)...)
				for _, queue := range []string{"b", "c", "d"} { // they fail first, and open the breaker
					d.open = append(d.open, queue+"1")
				}
				d.down = true
				s := usual()
				s.Runs = true
				w.start(t, test.dealer(d), engine.Env{}, s)
				w.grantRun(t, nightly(), "b", "c", "d")
				time.Sleep(time.Minute)
				w.grantRun(t, nightly(), "a")
				time.Sleep(50 * time.Minute)
				if w.holding(t, "a").Sweep.Ended() {
					t.Fatalf("the sweep has ended: %+v", w.holding(t, "a").Sweep)
				}
				d.set(false)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if sweep := w.holding(t, "a").Sweep; !sweep.Swept || sweep.ItemsFailed > test.failed ||
					sweep.ItemsDone+sweep.ItemsFailed != 2000 {
					t.Errorf("after the outage: %+v, want it swept, at most %d of 2000 items failed", sweep, test.failed)
				}
			})
		})
	}
}

// naming is a service that executes each item by itself, and reports each failure under the index of its item.
type naming struct{ *service }

func (d naming) Execute(ctx context.Context, items []string) error {
	var failed processor.Failures
	for i := range items {
		failed.Add(i, d.service.Execute(ctx, items[i:i+1]))
	}
	return failed.Err()
}

// After an outage an item that is done beside one that fails counts as failed no more (X2).
func TestItemsDoneBesideAFailureAreForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newService(w, numbered("a", 40)...)
		d.down = true
		s := usual()
		s.ExecuteNumber = 5
		w.start(t, naming{d}, engine.Env{}, s, "a")
		time.Sleep(20 * time.Second)
		d.mu.Lock()
		d.down = false
		d.bad["a32"] = errBroken
		d.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if open, parked, notes := d.left(), w.Stats().Parked, w.Notes(); open != 1 || parked != 1 || notes != 1 {
			t.Errorf("%d items are left, %d are parked, and there are notes about %d, want the one that fails", open, parked, notes)
		}
	})
}
