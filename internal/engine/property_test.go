package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/processor"
)

// Each stage alone, each pair of them and all together obey one law: every item of a live queue is executed, until it is
// done or dead. A short test draws the kinds.
func TestEveryItemOfALiveQueueIsExecuted(t *testing.T) {
	racetest.Skip(t)
	all := kinds()
	if testing.Short() {
		rapid.Check(t, func(rt *rapid.T) {
			k := rapid.SampledFrom(all).Draw(rt, "kind")
			rapid.SyncTest(rt, func(rt *rapid.T) { history(rt, k) })
		})
		return
	}
	for _, k := range all {
		t.Run(fmt.Sprintf("%+v", k), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				rapid.SyncTest(rt, func(rt *rapid.T) { history(rt, k) })
			})
		})
	}
}

// kinds returns the kinds of dealers with each stage alone, each pair of stages, and all of them.
func kinds() []kind {
	stages := []func(*kind){
		func(k *kind) { k.paged = true },
		func(k *kind) { k.ordered = true },
		func(k *kind) { k.discards = true },
		func(k *kind) { k.crashed = true },
		func(k *kind) { k.samples = true },
	}
	list := []kind{
		{},
		{crashed: true},
		{samples: true},
		{cursored: true},
		{cursored: true, crashed: true},
		{cursored: true, samples: true},
		{cursored: true, keyed: true, discards: true},
		{cursored: true, keyed: true, discards: true, crashed: true, samples: true},
	}
	everything := kind{keyed: true}
	for i, one := range stages {
		alone := kind{keyed: true}
		one(&alone)
		one(&everything)
		list = append(list, alone)
		for _, other := range stages[:i] {
			pair := alone
			other(&pair)
			list = append(list, pair)
		}
	}
	return append(list, kind{keyed: true}, everything)
}

// history performs random operations on a processor, then ends all failures, and expects that every item is done or
// dead.
func history(rt *rapid.T, k kind) {
	k.drawOrder(rt)
	f := newRandomSource(rt, k)
	d := f.dealer()
	env := engine.Env{Bind: bindBoth, Items: randomItems{f}, Cursors: randomCursors{f}, Trusted: func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !f.distrust
	}}
	h := &operator{randomSource: f, rt: rt}
	var err error
	if h.p, err = engine.New(d, env, h.settings()); err != nil {
		rt.Fatal(err)
	}
	h.p.SetMaxNotes(rapid.SampledFrom([]int{0, 1, 3, 10_000}).Draw(rt, "notes"))
	ctx, cancel := context.WithCancel(rt.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.p.Run(ctx) }()
	rt.Repeat(map[string]func(*rapid.T){
		"grant": h.grant, "drain": h.drain, "resume": h.resume, "revoke": h.revoke, "forget": h.forget,
		"configure": h.configure, "trust": h.trust, "wait": h.wait, "": h.check,
	})
	h.heal()
	time.Sleep(30 * time.Minute)
	if k.paged && h.poisonLeft() != "" {
		// An item gets one attempt a pass. A pass of 40 selects of a second each keeps the next one away for 20 times its
		// duration, which is 13 minutes, and it takes three.
		time.Sleep(2 * time.Hour)
	}
	for range 40 { // the items of a key die one after the other, and what nothing proves to be poison waits for an hour
		if (k.ordered || k.samples) && h.poisonLeft() != "" {
			time.Sleep(time.Hour)
		}
	}
	if k.ordered {
		time.Sleep(20 * time.Minute) // for the items behind the last that has died
	}
	synctest.Wait()
	h.checkEnd()
	cancel()
	if err := <-ended; err != nil {
		rt.Fatal(err)
	}
	h.check(rt)
}

// operator performs the operations. It does so when all goroutines are blocked, so that every claimed call has begun,
// and every call that begins later must be allowed.
type operator struct {
	*randomSource
	rt *rapid.T
	p  *engine.Processor
}

func (h *operator) settings() engine.Settings {
	return engine.Settings{
		CountInOutage:     !h.kind.samples, // else poison that nothing proves waits for an hour
		MaxCrashes:        2,
		ThreadNumber:      rapid.IntRange(1, 6).Draw(h.rt, "thread_number"),
		FetchNumber:       rapid.IntRange(1, h.kind.mostFetched()).Draw(h.rt, "fetch_number"),
		ExecuteNumber:     rapid.IntRange(1, 5).Draw(h.rt, "execute_number"),
		SleepTimeNoData:   time.Second,
		SleepTimeInterval: time.Duration(rapid.IntRange(0, 1000).Draw(h.rt, "interval")) * time.Millisecond,
		Retry:             time.Second, RetryFactor: 2, RetryJitter: 0.5, RetryMax: 10 * time.Second,
		ProbeMax:        5 * time.Second,
		NotSleep:        h.kind.keyed && !h.kind.cursored && rapid.Bool().Draw(h.rt, "notsleep"),
		ItemMaxAttempts: randomMaxAttempts, DeadPasses: h.kind.passes,
		RatePerSecond: float64(rapid.SampledFrom([]int{0, 0, 5, 50}).Draw(h.rt, "rate")),

		QueueRatePerSecond: float64(rapid.SampledFrom([]int{0, 0, 2, 20}).Draw(h.rt, "queue rate")),
		QueueMaxInFlight:   rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(h.rt, "queue in flight"),
	}
}

func queue(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "queue")
}

// held returns the state of q.
func (h *operator) held(q string) (engine.QueueState, bool) {
	all := h.p.Queues()
	i := slices.IndexFunc(all, func(o engine.QueueState) bool { return o.Queue.ID == q })
	if i < 0 {
		return engine.QueueState{}, false
	}
	return all[i], true
}

func (h *operator) grant(rt *rapid.T) { h.grantOne(queue(rt)) }

func (h *operator) grantOne(q string) {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	_, held := h.held(q)
	if !held {
		if h.running[q] > 0 {
			h.fault("queue %s was forgotten with calls running", q)
		}
		h.epochs[q]++
		h.closed[q] = false
	}
	index, crashes := int(q[0]-'a'), 0
	if h.kind.crashed {
		crashes = 3
	}
	if err := h.p.Grant(processor.Queue{
		ID: q, Index: index, Epoch: h.epochs[q], Cursor: h.store.cursors[q], Crashes: crashes,
	}, 4); (err != nil) != held {
		h.fault("grant of %s, held %t: %v", q, held, err)
	}
}

func (h *operator) drain(rt *rapid.T) {
	q := queue(rt)
	synctest.Wait()
	h.p.Drain(q)
	h.close(q)
}

func (h *operator) revoke(rt *rapid.T) {
	q := queue(rt)
	synctest.Wait()
	h.p.Revoke(q, nil)
	h.close(q)
}

// close forbids new calls for q.
func (h *operator) close(q string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed[q] = true
}

func (h *operator) resume(rt *rapid.T) { h.resumeOne(queue(rt)) }

func (h *operator) resumeOne(q string) {
	h.mu.Lock()
	_, held := h.held(q)
	h.closed[q] = !held
	h.mu.Unlock()
	h.p.Resume(q)
}

func (h *operator) forget(rt *rapid.T) {
	q := queue(rt)
	synctest.Wait()
	before, held := h.held(q)
	if got := h.p.Forget(q); got != (!held || before.Drained) {
		rt.Fatalf("Forget of %+v (held %t) returned %t", before, held, got)
	}
}

func (h *operator) configure(rt *rapid.T) {
	if err := h.p.Configure(h.settings()); err != nil {
		rt.Fatal(err)
	}
}

func (h *operator) trust(rt *rapid.T) {
	synctest.Wait()
	h.mu.Lock()
	h.distrust = rapid.Bool().Draw(rt, "distrust")
	h.mu.Unlock()
	h.p.Wake()
}

func (h *operator) wait(rt *rapid.T) {
	time.Sleep(time.Duration(rapid.IntRange(0, 5000).Draw(rt, "wait")) * time.Millisecond)
}

// check compares the calls that the processor reports as in flight with the running calls, when all goroutines are
// blocked.
func (h *operator) check(rt *rapid.T) {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.p.Queues() {
		if q := o.Queue.ID; o.InFlight != h.running[q] && h.storing == 0 || o.InFlight < h.running[q] ||
			o.Drained != (o.Draining && o.InFlight == 0) {
			h.fault("%+v, but %d calls run", o, h.running[q])
		}
	}
	if s := h.p.Stats(); s.FetchItemCount < s.SuccessCount+s.FailureCount+s.SkipCount || s.InFlight < 0 {
		h.fault("stats: %+v", s)
	}
	if len(h.faults) > 0 {
		rt.Fatal(strings.Join(h.faults, "\n"))
	}
}

// heal ends all failures.
func (h *operator) heal() {
	h.mu.Lock()
	h.failureRate, h.distrust = 0, false
	h.mu.Unlock()
	for _, q := range []string{"a", "b", "c", "d"} {
		if _, held := h.held(q); held {
			h.resumeOne(q)
		} else {
			h.grantOne(q)
		}
	}
	h.p.Wake()
}

// poisonLeft returns an item that always fails and is not dead; empty if there is none.
func (h *operator) poisonLeft() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for item, bad := range h.poison {
		if bad && !h.store.items[item].Dead && !h.waits(item) {
			return item
		}
	}
	return ""
}

// waits reports whether an item waits behind a dead one of its order key, or may wait behind a page of items that wait.
func (h *operator) waits(item string) bool {
	if h.kind.ordered && !h.kind.paged && !h.kind.leavesOut {
		return true
	}
	return h.kind.ordered && !h.kind.passes && orderOf(item) != "" &&
		slices.ContainsFunc(h.open[item[:1]], func(other string) bool {
			return h.kind.waitsFor(item, other) && h.store.items[other].Dead
		})
}

func (h *operator) checkEnd() {
	h.check(h.rt)
	h.mu.Lock()
	defer h.mu.Unlock()
	for q, items := range h.open {
		for _, item := range items {
			if (!h.kind.tracks() || !h.isGivenUp(item)) && !h.waits(item) {
				h.rt.Errorf("queue %s: item %s is neither done nor dead", q, item)
			}
		}
	}
	h.mu.Unlock()
	if item := h.poisonLeft(); item != "" {
		h.rt.Errorf("item %s always fails and is not dead", item)
	}
	h.mu.Lock()
	unstarted := h.kind.discards || h.kind.crashed // batches that do not call Execute
	if s := h.p.Stats(); s.InFlight != 0 || !unstarted && s.FetchItemCount != s.SkipCount+h.handed {
		h.rt.Errorf("stats: %+v, want InFlight 0, and FetchItemCount SkipCount + %d executed items", s, h.handed)
	}
}
