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

func TestEverySweepEnds(t *testing.T) {
	racetest.Defer(t)
	for _, k := range []kind{
		{},
		{keyed: true},
		{keyed: true, paged: true},
		{keyed: true, ordered: true, leavesOut: true},
		{keyed: true, ordered: true, paged: true, atomic: true},
		{cursored: true},
		{cursored: true, keyed: true},
	} {
		for _, disturbed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%+v, disturbed %t", k, disturbed), func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) {
					rapid.SyncTest(rt, func(rt *rapid.T) { sweeps(rt, k, disturbed) })
				})
			})
		}
	}
}

// sweeps grants queues with runs, disturbs them or not, and expects that every sweep ends with all items accounted for.
func sweeps(rt *rapid.T, k kind, disturbed bool) {
	f := newSweptSource(rt, k)
	f.breaker = rapid.Bool().Draw(rt, "breaker")
	items := map[string][]string{}
	for q, list := range f.open {
		items[q] = slices.Clone(list)
	}
	g := &sweepOperator{sweptSource: f, rt: rt, all: items, cursors: map[string]string{}}
	var err error
	if g.p, err = engine.New(f.dealer(), engine.Env{Trusted: g.trusted}, g.settings()); err != nil {
		rt.Fatal(err)
	}
	ctx, cancel := context.WithCancel(rt.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.p.Run(ctx) }()
	for _, q := range []string{"a", "b", "c", "d"} {
		g.grant(q)
	}
	if disturbed {
		g.disturb()
	}
	for _, q := range []string{"a", "b", "c", "d"} {
		g.p.Resume(q)
		g.grant(q)
	}
	time.Sleep(30 * time.Minute)
	if g.breaker {
		time.Sleep(3 * time.Hour) // sweeps wait for an hour if nothing succeeds
	}
	g.checkEnd()
	cancel()
	if err := <-ended; err != nil {
		rt.Fatal(err)
	}
}

// sweepOperator grants the queues of a sweptSource, disturbs their sweeps, and checks them.
type sweepOperator struct {
	*sweptSource
	rt      *rapid.T
	p       *engine.Processor
	all     map[string][]string
	cursors map[string]string // as the manager saves them
	began   map[string]string // the cursors at the start of the grants

	distrust bool
}

func (g *sweepOperator) trusted() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.distrust
}

// trust sets what Trusted returns.
func (g *sweepOperator) trust(yes bool) {
	g.mu.Lock()
	g.distrust = !yes
	g.mu.Unlock()
	g.p.Wake()
}

// disturb performs random operations on the processor. At the end the processor is trusted again.
func (g *sweepOperator) disturb() {
	g.rt.Repeat(map[string]func(*rapid.T){
		"drain":  func(rt *rapid.T) { g.p.Drain(queue(rt)) },
		"revoke": func(rt *rapid.T) { g.revoke(queue(rt)) },
		"resume": func(rt *rapid.T) { g.p.Resume(queue(rt)) },
		"wait": func(rt *rapid.T) {
			time.Sleep(time.Duration(rapid.IntRange(0, 5000).Draw(rt, "wait")) * time.Millisecond)
		},
		"configure": func(*rapid.T) { _ = g.p.Configure(g.settings()) },
		"trust":     func(rt *rapid.T) { g.trust(rapid.Bool().Draw(rt, "trust")) },
		"grant":     func(rt *rapid.T) { g.again(queue(rt)) },
		"":          g.check,
	})
	g.trust(true)
}

// checkEnd expects that all sweeps have ended, with all items accounted for.
func (g *sweepOperator) checkEnd() {
	g.check(g.rt)
	for _, h := range g.p.Queues() {
		if !h.Sweep.Ended() || h.InFlight > 0 {
			g.rt.Errorf("the sweep has not ended: %+v, want ended, InFlight 0", h)
		}
		g.checkResult(h)
	}
	if s := g.p.Stats(); s.InFlight != 0 || s.DeadCount != 0 {
		g.rt.Errorf("stats: %+v, want InFlight 0, DeadCount 0", s)
	}
}

func (g *sweepOperator) settings() engine.Settings {
	fetchNumber := rapid.IntRange(5, 12).Draw(g.rt, "fetch_number") // ten times this number is more than all items
	if g.kind.paged {
		fetchNumber = 1
	}
	retry, probeMax := 24*time.Hour, time.Duration(0)
	if g.breaker {
		retry, probeMax = time.Second, 5*time.Second
	}
	return engine.Settings{
		ThreadNumber:      rapid.IntRange(1, 6).Draw(g.rt, "thread_number"),
		FetchNumber:       fetchNumber,
		ExecuteNumber:     rapid.IntRange(1, 5).Draw(g.rt, "execute_number"),
		SleepTimeNoData:   24 * time.Hour, // the test would exceed its time
		SleepTimeInterval: time.Duration(rapid.IntRange(0, 1).Draw(g.rt, "interval")) * time.Second,
		Retry:             retry, RetryMax: 24 * time.Hour, ProbeMax: probeMax, ItemMaxAttempts: 3,
		NotSleep: g.kind.keyed && !g.kind.cursored && rapid.Bool().Draw(g.rt, "notsleep"),
	}
}

// grant grants a queue that is not held.
func (g *sweepOperator) grant(q string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.ContainsFunc(g.p.Queues(), func(h engine.QueueState) bool { return h.Queue.ID == q }) {
		return
	}
	if g.began == nil {
		g.began = map[string]string{}
	}
	g.grants[q] = &grantResult{done: map[string]int{}, blamed: map[string]bool{}}
	g.began[q] = g.cursors[q]
	if err := g.p.Grant(processor.Queue{ID: q, Index: int(q[0] - 'a'), Cursor: g.cursors[q], Run: nightly()},
		4); err != nil {
		g.fault("%v", err)
	}
}

// revoke revokes a queue when all goroutines are blocked, so that the source and the processor agree on the cancelled
// calls.
func (g *sweepOperator) revoke(q string) {
	synctest.Wait()
	g.p.Revoke(q, nil)
}

// again takes a queue away, at any state of its sweep, and grants it again from the cursor that it had.
func (g *sweepOperator) again(q string) {
	g.revoke(q)
	time.Sleep(3 * time.Second)
	synctest.Wait()
	for _, h := range g.p.Queues() {
		if h.Queue.ID == q && h.Drained {
			g.cursors[q] = h.Sweep.Cursor
			g.checkResult(h)
		}
	}
	if !g.p.Forget(q) {
		g.rt.Errorf("queue %s is not drained at the end", q)
	}
	g.grant(q)
}

func (g *sweepOperator) check(rt *rapid.T) {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.p.Queues() {
		if h.InFlight != g.running[h.Queue.ID] || h.Sweep.Ended() && h.Sweep.Swept == h.Sweep.Failed || h.Sweep.Swept &&
			h.InFlight > 0 {
			g.fault("%+v, but %d calls run", h, g.running[h.Queue.ID])
		}
	}
	if len(g.faults) > 0 {
		rt.Fatal(strings.Join(g.faults, "\n"))
	}
}

// checkResult compares the state of a sweep with nothing in flight with what the source has counted.
func (g *sweepOperator) checkResult(h engine.QueueState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q, s := h.Queue.ID, h.Sweep
	got := g.grants[q]
	failed := int(s.ItemsFailed)
	if g.breaker && !s.Swept { // the others wait for the end of an outage
		failed = max(failed, len(got.blamed))
	}
	if len(got.done) != int(s.ItemsDone) || g.kind.tracks() && len(got.blamed) != failed {
		g.rt.Errorf("queue %s: %d done and %d failed, but the sweep says %+v", q, len(got.done), len(got.blamed), s)
	}
	if s.Failed && !got.failure {
		g.rt.Errorf("queue %s: the sweep has failed without a reason: %v", q, s.Err)
	}
	if !s.Swept {
		return
	}
	for _, item := range g.all[q] {
		behind := g.kind.cursored && item <= g.began[q] || !g.kind.cursored && !slices.Contains(g.open[q], item)
		waits := g.kind.ordered && slices.ContainsFunc(g.all[q], func(other string) bool {
			return other < item && orderOf(item) != "" && orderOf(other) == orderOf(item) && got.blamed[other]
		})
		if !behind && !waits && got.done[item] != 1 && !got.blamed[item] {
			g.rt.Errorf("queue %s is swept, but item %s is neither done nor failed", q, item)
		}
		if g.poison[item] && got.done[item] > 0 {
			g.rt.Errorf("item %s always fails and is done", item)
		}
	}
}
