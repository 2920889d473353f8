package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/processor"
)

// inRuns are the usual settings of mode RUN.
func inRuns() engine.Settings {
	s := usual()
	s.Runs, s.ExecuteNumber = true, 10
	return s
}

// sortable returns n items of a queue whose order is that of their bytes.
func sortable(queue string, n int) (items []string) {
	for i := range n {
		items = append(items, fmt.Sprintf("%s%05d", queue, i))
	}
	return items
}

// again returns a run in a further attempt, after one in which some items have failed.
func again(failed int64) *processor.Run {
	r := nightly()
	r.Attempt, r.ItemsFailed = 2, failed
	return r
}

// A sweep outlasts an outage of most of a day, however large its queues are, and passes no item that waits for its end
// (X5).
func TestSweepOutlastsALongOutage(t *testing.T) {
	racetest.Skip(t)
	outage := 20 * time.Hour
	if testing.Short() {
		outage = 5 * time.Hour
	}
	for name, test := range map[string]struct {
		items  int
		dealer func(*service) processor.TaskDealer[string]
		failed int64 // at most, in the attempt in which the outage begins
	}{
		"keyed":    {2000, func(d *service) processor.TaskDealer[string] { return d }, 0},
		"few":      {4, func(d *service) processor.TaskDealer[string] { return d }, 0},
		"unkeyed":  {2000, func(d *service) processor.TaskDealer[string] { return unkeyed{d} }, 0},
		"cursored": {400, func(d *service) processor.TaskDealer[string] { return log{d} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := newService(w, sortable("a", test.items)...)
				for _, queue := range []string{"b", "c", "d"} { // they fail first, and open the breaker
					d.open = append(d.open, queue+"1")
				}
				d.down = true
				w.start(t, test.dealer(d), engine.Env{}, inRuns())
				w.grantRun(t, nightly(), "b", "c", "d")
				time.Sleep(5 * time.Second)
				w.grantRun(t, nightly(), "a")
				time.Sleep(outage)
				if s := w.holding(t, "a").Sweep; s.Ended() || s.ItemsFailed > 0 {
					t.Fatalf("after %s: %+v, want it to wait without a failed item", outage, s)
				}
				if n := d.set(false); n > 4*int(outage/(20*time.Second)) {
					t.Errorf("%d calls during the outage", n)
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if s := w.holding(t, "a").Sweep; !s.Swept || s.ItemsDone != int64(test.items) || s.ItemsFailed > 0 {
					t.Errorf("after the outage: %+v, want all %d items done", s, test.items)
				}
			})
		})
	}
}

// A queue whose items have all failed waits as long as another queue has items that may distinguish an outage from
// poison.
func TestSweepWaitsWhileAnotherQueueProbes(t *testing.T) {
	racetest.Skip(t)
	outage, others := 10*time.Hour, 5000
	if testing.Short() {
		outage, others = 2*time.Hour, 1000
	}
	bubble(t, func(t *testing.T, w *world) {
		d := newService(w, append(sortable("a", 100), sortable("b", others)...)...)
		s := inRuns()
		s.ThreadNumber, s.ExecuteNumber = 1, 1
		w.start(t, d, engine.Env{}, s)
		w.grantRun(t, nightly(), "a", "b")
		for d.leftOf("a") > 10 {
			time.Sleep(10 * time.Millisecond)
		}
		d.set(true)
		time.Sleep(outage)
		if a := w.holding(t, "a").Sweep; a.Ended() {
			t.Fatalf("after %s: %+v, want it to wait", outage, a)
		}
		d.set(false)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for _, q := range []string{"a", "b"} {
			if s := w.holding(t, q).Sweep; !s.Swept || s.ItemsFailed > 3 {
				t.Errorf("queue %s after the outage: %+v, want it swept, with the items that opened the breaker failed", q, s)
			}
		}
	})
}

// leftOf returns the number of open items of a queue.
func (d *service) leftOf(queue string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, item := range d.open {
		if strings.HasPrefix(item, queue) {
			n++
		}
	}
	return n
}

// Poison at the end of a run opens the breaker. The sweep ends all the same, after about the time that it has taken,
// and not after days.
func TestSweepOfPoisonEnds(t *testing.T) {
	for _, number := range []int{1, 10} {
		t.Run(fmt.Sprintf("execute_number %d", number), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := newService(w, sortable("a", 400)...)
				for _, item := range d.open[380:] {
					d.bad[item] = errBroken
				}
				s := inRuns()
				s.ExecuteNumber = number
				w.sweep(t, d, engine.Env{}, s, "a")
				time.Sleep(9 * time.Second)
				if state := w.holding(t, "a").Sweep; number == 1 && (w.Stats().OutageSince.IsZero() || state.Ended()) {
					t.Errorf("after nine seconds: %+v, want the breaker open, and the sweep waiting", state)
				}
				time.Sleep(10 * time.Minute) // the other items are probed first
				w.swept(t, "a", 380, 20)
			})
		})
	}
}

// What fails again in another attempt is no outage: the attempt ends at once.
func TestAttemptOfPoisonEndsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newService(w, sortable("a", 50)...)
		for _, item := range d.open {
			d.bad[item] = errBroken
		}
		w.start(t, d, engine.Env{}, inRuns())
		w.grantRun(t, again(50), "a")
		time.Sleep(10 * time.Second)
		w.swept(t, "a", 0, 50)
		if since := w.Stats().OutageSince; !since.IsZero() {
			t.Errorf("an outage since %s, want none", since.Sub(w.begin))
		}
	})
}

// A sweep knows which items have failed in earlier ones. They are passed at once, also beside an outage, while the
// other items wait for its end.
func TestItemsThatFailedBeforeArePoison(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newService(w, sortable("a", 70)...)
		for _, item := range d.open[:30] {
			d.bad[item] = errBroken
		}
		d.down = true
		run := nightly()
		run.ItemsFailed, run.FailedBefore = 30, slices.Clone(d.open[:30])
		s := inRuns()
		s.ThreadNumber = 1
		w.start(t, d, engine.Env{}, s)
		w.grantRun(t, run, "a")
		time.Sleep(10 * time.Minute)
		if s := w.holding(t, "a").Sweep; s.Ended() {
			t.Fatalf("after ten minutes: %+v, want it to wait for the items that have not failed before", s)
		}
		d.set(false)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		failed := failedKeys(w.holding(t, "a").Sweep)
		if d.left() != len(failed) || len(failed) > 33 || !sameItems(failed[:30], run.FailedBefore) {
			t.Errorf("%v have failed, want those that failed before, and the three that opened the breaker", failed)
		}
	})
	bubble(t, func(t *testing.T, w *world) {
		d := newService(w, sortable("a", 30)...)
		for _, item := range d.open {
			d.bad[item] = errBroken
		}
		run := nightly()
		run.FailedBefore = d.open // a takeover has saved no number
		w.start(t, d, engine.Env{}, inRuns())
		w.grantRun(t, run, "a")
		time.Sleep(10 * time.Second)
		w.swept(t, "a", 0, 30)
		if since := w.Stats().OutageSince; !since.IsZero() {
			t.Errorf("an outage since %s, want none", since.Sub(w.begin))
		}
	})
}

// An item that fails before and after a success of another one is poison. It is passed, and keeps no breaker open.
func TestPoisonIsProvenByASuccess(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newService(w, sortable("a", 9)...)
		for _, item := range d.open {
			d.bad[item] = errBroken
		}
		s := inRuns()
		s.ThreadNumber = 1
		w.sweep(t, d, engine.Env{}, s, "a")
		time.Sleep(10 * time.Minute)
		if s := w.holding(t, "a").Sweep; s.Ended() {
			t.Fatalf("after ten minutes: %+v, want it to wait, because nothing was done", s)
		}
		d.mu.Lock()
		d.open = append(d.open, "b1")
		d.mu.Unlock()
		w.grantRun(t, nightly(), "b")
		time.Sleep(2 * time.Minute)
		w.swept(t, "b", 1, 0)
		w.swept(t, "a", 0, 9)
	})
}

// If nothing ever succeeds, sweeps end after the horizon of the retry policy, and report the failed items.
func TestSweepGivesUpAfterTheHorizon(t *testing.T) {
	for name, dealer := range map[string]func(*service) processor.TaskDealer[string]{
		"keyed":   func(d *service) processor.TaskDealer[string] { return d },
		"unkeyed": func(d *service) processor.TaskDealer[string] { return unkeyed{d} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := newService(w, append(sortable("a", 20), "b1", "c1", "d1", "e1")...)
				d.down = true
				s := inRuns()
				s.RetryFactor, s.ItemMaxAttempts, s.RetryMax = 2, 14, time.Hour // 1 s to 2048 s and an hour: 2 h 8 min
				w.start(t, dealer(d), engine.Env{}, s)
				w.grantRun(t, nightly(), "b", "c", "d", "e")
				time.Sleep(5 * time.Second)
				w.grantRun(t, nightly(), "a")
				time.Sleep(2 * time.Hour)
				if sweep := w.holding(t, "a").Sweep; sweep.Ended() {
					t.Fatalf("after two hours: %+v, want it to wait", sweep)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if sweep := w.holding(t, "a").Sweep; !sweep.Ended() || sweep.ItemsDone > 0 || name == "keyed" &&
					sweep.ItemsFailed != 20 {
					t.Errorf("after three hours: %+v, want it ended", sweep)
				}
			})
		})
	}
}

// pagedService is a service whose selects go on behind a position.
type pagedService struct{ *service }

func (pagedService) Position(item string) string { return item }

func (p pagedService) Select(_ context.Context, s processor.Selection) (page []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, item := range p.open {
		if item > s.After && len(page) < s.Limit {
			page = append(page, item)
		}
	}
	return page, nil
}

// A sweep ends with a few poison items also if its last page is full of them, so that the select behind it finds
// nothing.
func TestSweepOfFullPagesOfPoisonEnds(t *testing.T) {
	for _, n := range []int{19, 20, 21} { // a page has 20
		bubble(t, func(t *testing.T, w *world) {
			d := newService(w, sortable("a", 1000)...)
			for _, item := range d.open[1000-n:] {
				d.bad[item] = errBroken
			}
			s := inRuns()
			s.FetchNumber, s.ExecuteNumber = 2, 1
			w.sweep(t, pagedService{d}, engine.Env{}, s, "a")
			time.Sleep(time.Minute)
			w.swept(t, "a", int64(1000-n), int64(n))
		})
	}
}

// Poison fills the first pages and opens the breaker. The probes reach the healthy items behind it.
func TestOutageIsOverBehindAPage(t *testing.T) {
	for _, run := range []*processor.Run{nil, nightly()} {
		t.Run(fmt.Sprintf("in a run: %t", run != nil), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				d := newService(w, sortable("a", 60)...)
				for _, item := range d.open[:50] {
					d.bad[item] = errBroken
				}
				s := usual()
				s.FetchNumber, s.ExecuteNumber, s.ThreadNumber, s.Runs = 2, 1, 1, run != nil
				w.start(t, pagedService{d}, engine.Env{}, s)
				if err := w.Grant(processor.Queue{ID: "a", Run: run}, 1); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if d.left() != 50 {
					t.Errorf("%d items are left after an hour, want the poison", d.left())
				}
			})
		})
	}
}

// Jobs wait for the end of an outage and use up no attempt. A job that fails alone, or for good, ends its sweep at
// once.
func TestJobsWaitForTheEndOfAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, _ *world) {
		var down atomic.Bool
		var calls atomic.Int64
		down.Store(true)
		job := processor.Each(func(_ context.Context, s processor.Selection) error {
			calls.Add(1)
			switch {
			case s.Queue.ID == "g":
				return processor.Permanent(errBroken)
			case s.Queue.ID == "a" && s.Run.Attempt == 2, down.Load():
				return errDown
			}
			return nil
		})
		env, s := engine.Env{}, inRuns()
		var err error
		p, err := engine.New(job, env, s)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		grant := func(run *processor.Run, ids ...string) {
			for _, id := range ids {
				if err := p.Grant(processor.Queue{ID: id, Index: int(id[0] - 'a'), Run: run}, 8); err != nil {
					t.Fatal(err)
				}
			}
		}
		sweep := func(id string) engine.SweepState {
			synctest.Wait()
			for _, q := range p.Queues() {
				if q.Queue.ID == id {
					return q.Sweep
				}
			}
			return engine.SweepState{}
		}
		for range 4 { // a job that fails in a further attempt is no outage
			grant(again(1), "a")
			time.Sleep(time.Second)
			if state := sweep("a"); !state.Failed || !p.Stats().OutageSince.IsZero() {
				t.Fatalf("a job that fails alone: %+v, want it failed at once, and no outage", state)
			}
			p.Drain("a")
			p.Forget("a")
		}
		grant(nightly(), "b", "c", "d", "e", "f")
		time.Sleep(20 * time.Hour)
		grant(nightly(), "g")
		time.Sleep(time.Minute)
		if g := sweep("g"); !g.Failed || !g.Permanent {
			t.Errorf("a job that fails for good in an outage: %+v, want it failed", g)
		}
		if n := calls.Load(); n > 5*20*3600/20 {
			t.Errorf("%d calls in 20 hours", n)
		}
		failed := 0
		for _, id := range []string{"b", "c", "d", "e", "f"} {
			if sweep(id).Failed {
				failed++
			}
		}
		if failed > 2 { // the third failure opens the breaker
			t.Errorf("%d of 5 jobs have failed, want those before the breaker opened", failed)
		}
		down.Store(false)
		time.Sleep(2 * time.Minute)
		for _, id := range []string{"b", "c", "d", "e", "f"} {
			if state := sweep(id); !state.Ended() {
				t.Errorf("job %s after the outage: %+v, want it ended", id, state)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
}

// A dealer that ignores its cursor returns a dead item again and again. It makes no busy loop, and an alert says so.
func TestIgnoredCursorBehindADeadItemPauses(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		d := newService(w, sortable("a", 5)...)
		d.bad["a00000"] = processor.Permanent(errBroken)
		told := &alertBook{}
		w.start(t, deaf{d}, engine.Env{Alert: told.add, Items: failedItems{newMemory()}}, usual(), "a")
		time.Sleep(time.Hour)
		d.mu.Lock()
		defer d.mu.Unlock()
		if n := len(d.selects); n > 400 {
			t.Errorf("%d selects in an hour, want at most 100 at once and one a minute then", n)
		}
		if alerts := told.take(); len(alerts) != 1 || alerts[0].Kind != engine.AlertNoEffect ||
			!strings.Contains(alerts[0].Text, "go on behind Queue.Cursor") {
			t.Errorf("alerts %+v, want one NO_EFFECT that names the cursor", alerts)
		}
	})
}

// deaf ignores its cursor.
type deaf struct{ *service }

func (deaf) Cursor(item string) string { return item }

func (d deaf) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	d.mu.Lock()
	busy := len(d.selects) > 10_000
	d.mu.Unlock()
	if busy { // the test has failed: end the loop
		<-ctx.Done()
	}
	return d.service.Select(ctx, s)
}
