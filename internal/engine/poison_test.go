package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/processor"
)

// blocks is a Keyed dealer of queues that begin with a block of poison and go on with any number of healthy items. Keys
// are the queue and a number of seven digits. A call takes 10 ms.
type blocks struct {
	bad   int
	takes time.Duration

	mu      sync.Mutex
	down    bool
	next    map[string]int // by queue: all healthy items before it are done
	done    map[string]bool
	count   int // healthy items done
	calls   int
	selects []time.Time
	probes  []time.Time
}

func newBlocks(bad int) *blocks {
	return &blocks{bad: bad, takes: 10 * time.Millisecond, next: map[string]int{}, done: map[string]bool{}}
}

func (d *blocks) Key(item string) string { return item }

func (d *blocks) Select(_ context.Context, s processor.Selection) (page []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.selects = append(d.selects, time.Now())
	q, n := s.Queue.ID, 0
	if s.After != "" {
		n, _ = strconv.Atoi(s.After[len(q):])
		n++
	}
	for ; n < d.bad && len(page) < s.Limit; n++ {
		page = append(page, blockKey(q, n))
	}
	for n = max(n, d.bad, d.next[q]); len(page) < s.Limit; n++ {
		if key := blockKey(q, n); !d.done[key] {
			page = append(page, key)
		}
	}
	return page, nil
}

// blockKey is called for every item of every page and call, where fmt.Sprintf took a third of the time.
func blockKey(queue string, n int) string { return queue + strconv.Itoa(10_000_000 + n)[1:] }

func (d *blocks) Execute(ctx context.Context, items []string) error {
	d.mu.Lock()
	takes := d.takes
	d.mu.Unlock()
	if err := nap(ctx, takes); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if len(items) == 1 {
		d.probes = append(d.probes, time.Now())
	}
	for _, item := range items {
		if n, _ := strconv.Atoi(item[1:]); d.down || n < d.bad {
			return errBroken
		}
	}
	for _, item := range items {
		d.done[item] = true
		d.count++
		q := item[:1]
		d.next[q] = max(d.next[q], d.bad)
		for d.done[blockKey(q, d.next[q])] {
			delete(d.done, blockKey(q, d.next[q]))
			d.next[q]++
		}
	}
	return nil
}

func (d *blocks) healthy() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

// pagedBlocks go on behind a position.
type pagedBlocks struct{ *blocks }

func (pagedBlocks) Position(item string) string { return item }

// densest returns the largest number of times within a duration.
func densest(times []time.Time, within time.Duration) (most int) {
	for i, first := range times {
		n, _ := slices.BinarySearchFunc(times[i:], first.Add(within), time.Time.Compare)
		most = max(most, n)
	}
	return most
}

// blockedQueues is a source for TestPoisonHidesNoHealthyItem.
type blockedQueues struct {
	queues, number int
	takes          time.Duration
	paged          bool
	stored         bool // the process has just started, and the store has records of the poison
}

// rate returns how many healthy items are done in 20 seconds after so long, with so many bad items at the head of each
// queue.
func (c blockedQueues) rate(t *testing.T, bad int, after time.Duration) (done int) {
	bubble(t, func(t *testing.T, w *world) {
		d := newBlocks(bad)
		d.takes = c.takes
		s := usual()
		s.ExecuteNumber = c.number
		m := newMemory()
		ids := []string{"a", "b", "c", "d"}[:c.queues]
		for _, q := range ids {
			for n := range bad {
				if key := blockKey(q, n); c.stored {
					m.items[key] = engine.FailedItem{Key: key, Attempts: 1 + n%3, LastError: "was broken"}
				}
			}
		}
		var dealer processor.TaskDealer[string] = d
		if c.paged {
			dealer = pagedBlocks{d}
		}
		w.start(t, dealer, engine.Env{Items: failedItems{m}}, s, ids...)
		time.Sleep(after)
		before := d.healthy()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		done = d.healthy() - before
		if s := w.Stats(); !s.OutageSince.IsZero() || s.DeadCount > 0 {
			t.Errorf("an outage since %s, %d dead, want neither", s.OutageSince.Sub(w.begin), s.DeadCount)
		}
	})
	return done
}

// Thousands of bad items at the heads of the queues look like an outage. Two minutes later the healthy items behind
// them are worked at 80 % of the rate without poison, also by a process that has just started (X2, X5).
func TestPoisonHidesNoHealthyItem(t *testing.T) {
	racetest.Skip(t)
	const ms = time.Millisecond
	without := map[blockedQueues]int{} // poison
	for _, c := range []struct {
		blockedQueues
		bad int // at the head of each queue
	}{
		{blockedQueues{queues: 4, number: 1, takes: 10 * ms}, 750},
		{blockedQueues{queues: 4, number: 1, takes: 10 * ms, paged: true}, 750},
		{blockedQueues{queues: 4, number: 1, takes: 10 * ms, stored: true}, 750},
		{blockedQueues{queues: 4, number: 1, takes: 10 * ms, paged: true, stored: true}, 3000},
		{blockedQueues{queues: 4, number: 100, takes: 100 * ms}, 150},
		{blockedQueues{queues: 1, number: 1, takes: 10 * ms}, 3000},
		{blockedQueues{queues: 1, number: 1, takes: 10 * ms, paged: true}, 3000},
		// further than a select without {{after}} reaches
		{blockedQueues{queues: 1, number: 1, takes: 10 * ms, paged: true}, 6000},
		{blockedQueues{queues: 4, number: 1, takes: 100 * ms}, 750},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			if testing.Short() && c.bad > 750 && (!c.paged || !c.stored) {
				t.Skip("as the others, with more poison")
			}
			same := blockedQueues{queues: c.queues, number: c.number, takes: c.takes}
			if without[same] == 0 {
				without[same] = same.rate(t, 0, 10*time.Second)
			}
			after := 2 * time.Minute
			if testing.Short() && c.takes == 10*ms {
				after /= 2 // it costs as much as the number of items, and slower ones need the time
			}
			clean, got := without[same], c.rate(t, c.bad, after)
			t.Logf("%d healthy items in 20 seconds, %d without poison: %.2f", got, clean, float64(got)/float64(clean))
			if got*10 < clean*8 {
				t.Errorf("%d healthy items in 20 seconds, want at least 80 %% of %d", got, clean)
			}
		})
	}
}

// While nothing succeeds, a large source gets at most 3 selects and 100 single items a second, and no item loses an
// attempt beside those that were in flight before the breaker opened. When the service is back, so is the rate (X5).
func TestOutageOfALargeSourceIsGentle(t *testing.T) {
	racetest.Skip(t)
	bubble(t, func(t *testing.T, w *world) {
		d, m := newBlocks(0), newMemory()
		d.down = true
		s := usual()
		d.takes, s.ExecuteNumber, s.FetchNumber = 50*time.Millisecond, 5, 250
		outage := 90 * time.Minute
		if testing.Short() {
			outage = 20 * time.Minute
		}
		w.start(t, d, engine.Env{Items: failedItems{m}}, s, "a", "b", "c", "d")
		time.Sleep(outage)
		synctest.Wait()
		d.mu.Lock()
		if n := densest(d.selects[10:], time.Second); n > 3 {
			t.Errorf("%d selects in a second, want at most 3", n)
		}
		if n := densest(d.probes, time.Second); n > 2*100 || len(d.probes) > 20*int(outage/time.Second) {
			t.Errorf("%d single items in a second, %d in all, want about 100 a second for a while", n, len(d.probes))
		}
		for key, i := range m.records() {
			if i.Attempts > 1 || i.Dead {
				t.Errorf("the record of %s is %+v, want one attempt at most", key, i)
			}
		}
		if n := len(m.records()); n > 20 {
			t.Errorf("%d items have an attempt, want those that were in flight before the breaker opened", n)
		}
		d.down = false
		d.mu.Unlock()
		time.Sleep(2 * time.Minute)
		before := d.healthy()
		time.Sleep(10 * time.Second)
		if n := d.healthy() - before; n < 10*500*8/10 || !w.Stats().OutageSince.IsZero() {
			t.Errorf("%d items in ten seconds, after the outage; want about 500 a second", n)
		}
	})
}

// A service that is away again a minute later gets as few calls as the first time: what failed and succeeded then was
// no block of poison (X5).
func TestSecondOutageIsGentleAtOnce(t *testing.T) {
	racetest.Defer(t)
	bubble(t, func(t *testing.T, w *world) {
		d, s := newBlocks(0), usual()
		s.ExecuteNumber, s.Retry, s.RetryMax = 1, 50*time.Millisecond, 400*time.Millisecond
		w.start(t, d, engine.Env{Items: failedItems{newMemory()}}, s, "a", "b", "c", "d")
		set := func(down bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.down, d.calls = down, 0
		}
		for n := 1; n <= 2; n++ {
			set(true)
			time.Sleep(5 * time.Second)
			if got := w.Stats(); got.OutageSince.IsZero() {
				t.Errorf("outage %d: the breaker is closed after 5 s", n)
			}
			d.mu.Lock()
			if d.calls > 6*100 {
				t.Errorf("outage %d: %d calls in 5 s, want about 100 a second", n, d.calls)
			}
			d.mu.Unlock()
			time.Sleep(30 * time.Second)
			set(false)
			time.Sleep(time.Minute)
		}
	})
}

// A service that answers one call in twenty for 90 minutes kills no item.
func TestBrownoutKillsNoItem(t *testing.T) {
	racetest.Skip(t)
	bubble(t, func(t *testing.T, w *world) {
		items := 1000
		if testing.Short() {
			items = 150
		}
		d := newService(w, sortable("a", items)...)
		m, n := newMemory(), 0
		brown := &dealer{sel: d.Select, exec: func(ctx context.Context, items []string) error {
			d.mu.Lock()
			n++
			d.down = n%20 != 0 && time.Since(w.begin) < 90*time.Minute
			d.mu.Unlock()
			return d.Execute(ctx, items)
		}}
		s := usual()
		s.ExecuteNumber = 1
		w.start(t, keyedDealer{brown}, engine.Env{Items: failedItems{m}}, s, "a")
		time.Sleep(91 * time.Minute)
		if s := w.Stats(); s.DeadCount > 0 {
			t.Errorf("%d dead items, want none", s.DeadCount)
		}
		time.Sleep(7 * time.Hour)
		if d.left() > 0 {
			t.Errorf("%d items are left, want none", d.left())
		}
	})
}

// keyedDealer is a dealer whose items are their keys.
type keyedDealer struct{ *dealer }

func (keyedDealer) Key(item string) string { return item }

// A service that hangs gets one call at a time, and not more of them because nothing succeeds.
func TestSlowProbesDoNotWidenTheSample(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newBlocks(0)
		s := usual()
		s.ExecuteNumber = 1
		w.start(t, d, engine.Env{}, s, "a", "b")
		time.Sleep(10 * time.Second)
		d.mu.Lock()
		d.down, d.takes, d.probes = true, 2*time.Second, nil
		d.mu.Unlock()
		time.Sleep(10 * time.Minute)
		d.mu.Lock()
		defer d.mu.Unlock()
		if n := len(d.probes); n > 5+10*60*5/2 || n < 60 {
			t.Errorf("%d calls in ten minutes, want one for each select", n)
		}
	})
}

// The failures of data are no outage: they count as attempts, and are never final at once.
func TestErrorsOfDataAreNoOutage(t *testing.T) {
	racetest.Defer(t)
	bubble(t, func(t *testing.T, w *world) {
		d, m := newService(w, sortable("a", 50)...), newMemory()
		for _, item := range d.open {
			d.bad[item] = errBroken
		}
		env := engine.Env{Items: failedItems{m}, DataError: func(err error) bool { return errors.Is(err, errBroken) }}
		w.start(t, d, env, usual(), "a")
		time.Sleep(90 * time.Minute)
		synctest.Wait()
		if s := w.Stats(); !s.OutageSince.IsZero() || s.DeadCount > 0 {
			t.Errorf("%+v, want no outage and no dead item", s)
		}
		for key, i := range m.records() {
			if i.Attempts < 8 || i.Attempts > 14 {
				t.Errorf("the record of %s is %+v, want about 12 attempts", key, i)
			}
		}
	})
}

// Poison that has failed before a success opens no breaker when it fails again, however long nothing else is to do.
func TestKnownPoisonOpensNoBreaker(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newService(w, sortable("a", 20)...)
		for _, item := range d.open[:10] {
			d.bad[item] = errBroken
		}
		s := usual()
		s.ExecuteNumber = 1
		w.start(t, d, engine.Env{}, s, "a")
		time.Sleep(time.Minute)
		for range 60 {
			time.Sleep(time.Minute)
			if since := w.Stats().OutageSince; !since.IsZero() {
				t.Fatalf("an outage since %s", since.Sub(w.begin))
			}
		}
		if n := d.left(); n != 10 {
			t.Errorf("%d items are left, want the 10 bad ones", n)
		}
	})
}

// A cursor passes poison when something else succeeds between its failures, or if failures count in an outage. Without
// either, the queue waits (X5).
func TestCursorPassesPoisonOnProof(t *testing.T) {
	for name, test := range map[string]struct {
		other, counts, passes bool
	}{
		"alone":                    {},
		"beside another queue":     {other: true, passes: true},
		"alone, with each failure": {counts: true, passes: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := newService(w, sortable("a", 5)...)
				d.bad["a00001"] = errBroken
				s := usual()
				s.ItemMaxAttempts, s.RetryMax, s.CountInOutage = 8, time.Minute, test.counts
				w.start(t, log{d}, engine.Env{Items: failedItems{newMemory()}}, s, "a", "b")
				for i := range 300 {
					time.Sleep(time.Second)
					if test.other {
						d.mu.Lock()
						d.open = append(d.open, fmt.Sprintf("b%05d", i))
						d.mu.Unlock()
					}
				}
				synctest.Wait()
				if got := d.leftOf("a") == 1; got != test.passes {
					t.Errorf("%d items of queue a are left after five minutes, passed: %t, want %t", d.leftOf("a"), got, test.passes)
				}
			})
		})
	}
}
