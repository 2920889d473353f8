package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/processor"
)

// X11: whatever the settings, the limits and the weights are, and however they, the queues and the trust have changed
// before, each queue is worked within minutes, and so is its first item. A scheduler can be fair on average and leave
// one queue alone for good.
func TestEveryQueueIsWorked(t *testing.T) {
	racetest.Defer(t)
	from, to := 0, 20
	if testing.Short() {
		from, to = 10, 14
	}
	for seed := from; seed < to; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, w *world) {
				p := &livenessPlay{T: t, w: w, rnd: rand.New(rand.NewPCG(uint64(seed), 7))}
				p.trusted.Store(true)
				p.begin()
				for range 4 {
					p.disturb()
					p.expectWork()
				}
			})
		})
	}
}

// livenessPlay is a processor of several queues that always have items.
type livenessPlay struct {
	*testing.T
	w       *world
	rnd     *rand.Rand
	source  *inflow
	dealer  string
	queues  []string
	trusted atomic.Bool
}

func (p *livenessPlay) pick(list ...int) int { return list[p.rnd.IntN(len(list))] }

func (p *livenessPlay) millis(list ...int) time.Duration {
	return time.Duration(p.pick(list...)) * time.Millisecond
}

// begin grants some queues to a processor of some kind of dealer. An Ordered dealer that is Paged, too, is left out:
// the pass over keys that all wait may take longer (X2).
func (p *livenessPlay) begin() {
	p.source = &inflow{
		rnd: rand.New(rand.NewPCG(p.rnd.Uint64(), 8)), waiting: p.pick(1, 2, 5, 30, 200), selecting: p.millis(0, 1, 20, 200),
		queues: map[string]*inflowQueue{},
	}
	dealers := map[string]processor.TaskDealer[string]{
		"plain": p.source, "keyed": inflowKeyed{p.source}, "paged": inflowPaged{inflowKeyed{p.source}},
		"ordered": inflowOrdered{inflowKeyed{p.source}}, "cursored": inflowCursored{p.source},
	}
	p.dealer = []string{"plain", "keyed", "paged", "ordered", "cursored"}[p.rnd.IntN(len(dealers))]
	p.source.plain = p.dealer == "plain"
	p.w.start(p.T, dealers[p.dealer], engine.Env{Trusted: p.trusted.Load}, p.settings())
	for i := range 1 + p.rnd.IntN(10) {
		id := string(rune('a' + i))
		p.queues = append(p.queues, id)
		p.source.mu.Lock() // queues that were granted before are selected already
		p.source.queues[id] = &inflowQueue{few: p.rnd.IntN(2) == 0, takes: p.millis(0, 1, 10, 100, 500), fails: map[string]int{}}
		p.source.mu.Unlock()
		crashes := 0
		if p.dealer != "plain" {
			crashes = p.pick(0, 0, 0, 3)
		}
		if err := p.w.Grant(processor.Queue{ID: id, Index: i, Epoch: 7, Crashes: crashes}, 10); err != nil {
			p.Fatal(err)
		}
	}
}

func (p *livenessPlay) settings() engine.Settings {
	s := settings()
	s.ThreadNumber, s.FetchNumber, s.ExecuteNumber = p.pick(1, 1, 2, 3, 5, 8), p.pick(1, 2, 10, 100), p.pick(1, 2, 5, 20)
	s.SleepTimeInterval = p.millis(0, 0, 100, 1000)
	s.RatePerSecond, s.QueueRatePerSecond = float64(p.pick(0, 0, 5, 20, 100)), float64(p.pick(0, 0, 1, 5, 50))
	s.QueueMaxInFlight = p.pick(0, 0, 1, 2)
	s.RetryMax, s.ProbeMax = 10*time.Second, p.millis(0, 5000)
	s.NotSleep = p.dealer != "" && p.dealer != "plain" && p.dealer != "cursored" && p.rnd.IntN(2) == 0
	s.MaxCrashes, s.FailingAfter, s.Hinted = 2, 20, p.rnd.IntN(2) == 0
	return s
}

// disturb changes what a session and an operator may change, and then takes back what keeps queues from being worked.
func (p *livenessPlay) disturb() {
	for range p.rnd.IntN(12) {
		id := p.queues[p.rnd.IntN(len(p.queues))]
		switch p.rnd.IntN(9) {
		case 0:
			p.w.Drain(id)
		case 1:
			p.w.Revoke(id, nil)
		case 2:
			p.w.Resume(id)
		case 3:
			p.w.SetLimits(id, processor.QueueLimits{
				Weight: p.pick(0, 1, 2, 5), MaxInFlight: p.pick(0, -1, 1, 2), RatePerSecond: float64(p.pick(0, 0, -1, 3)),
			})
		case 4:
			if err := p.w.Configure(p.settings()); err != nil {
				p.Fatal(err)
			}
		case 5:
			p.w.SetMaxInFlight(p.pick(0, 1, 2, 100))
		case 6:
			p.w.SetRateShare(float64(p.pick(0, 1)))
		case 7:
			p.w.Hint()
		case 8:
			p.trust(p.rnd.IntN(2) == 0)
		}
		time.Sleep(p.millis(0, 1, 50, 1000, 5000))
	}
	p.w.SetMaxInFlight(p.pick(1, 2, 100))
	p.w.SetRateShare(1)
	p.trust(true)
	for _, id := range p.queues {
		p.w.Resume(id)
	}
}

func (p *livenessPlay) trust(trusted bool) {
	p.trusted.Store(trusted)
	p.w.Wake()
}

// expectWork gives the queues twelve minutes.
func (p *livenessPlay) expectWork() {
	synctest.Wait()
	first := map[string]string{}
	p.source.mu.Lock()
	for id, q := range p.source.queues {
		if len(q.items) > 0 {
			first[id] = q.items[0]
		}
	}
	p.source.mu.Unlock()
	time.Sleep(12 * time.Minute)
	synctest.Wait()
	p.source.mu.Lock()
	defer p.source.mu.Unlock()
	for id, q := range p.source.queues {
		if idle := time.Since(q.worked); idle > time.Minute {
			p.Errorf("%s: queue %s was not worked for %s, %d of its items are done", p.dealer, id, idle, q.done)
		}
		if item := first[id]; item != "" && slices.Contains(q.items, item) {
			p.Errorf("%s: item %s is not done, and has failed %d times too few", p.dealer, item, q.fails[item])
		}
	}
}

// inflow is a dealer of queues in which new items wait whenever others are done. Some of them fail once or twice.
type inflow struct {
	plain     bool // whole batches fail
	waiting   int  // items per queue, or 3 in a queue that has few
	selecting time.Duration

	mu     sync.Mutex
	rnd    *rand.Rand
	queues map[string]*inflowQueue
}

type inflowQueue struct {
	few    bool
	takes  time.Duration
	items  []string
	made   int
	fails  map[string]int // how often an item is still to fail
	done   int
	worked time.Time
}

func (e *inflow) Select(ctx context.Context, s processor.Selection) (page []string, _ error) {
	e.mu.Lock()
	q, waiting := e.queues[s.Queue.ID], e.waiting
	if q.few {
		waiting = 3
	}
	for ; len(q.items) < waiting; q.made++ {
		item := fmt.Sprintf("%s%06d", s.Queue.ID, q.made)
		if q.items = append(q.items, item); e.rnd.IntN(40) == 0 {
			q.fails[item] = 1 + e.rnd.IntN(2)
		}
	}
	for _, i := range q.items {
		if len(page) < s.Limit && i > s.After && i > s.Queue.Cursor && !slices.Contains(s.Held, (inflowOrdered{}).OrderKey(i)) {
			page = append(page, i)
		}
	}
	e.mu.Unlock()
	return page, nap(ctx, e.selecting)
}

func (e *inflow) Execute(ctx context.Context, items []string) error {
	e.mu.Lock()
	q := e.queues[items[0][:1]]
	e.mu.Unlock()
	if err := nap(ctx, q.takes); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, i := range items {
		if q.fails[i] > 0 {
			if len(items) == 1 || e.plain {
				q.fails[i]--
			}
			return errBroken
		}
	}
	q.worked, q.done = time.Now(), q.done+len(items)
	q.items = slices.DeleteFunc(q.items, func(i string) bool { return slices.Contains(items, i) })
	return nil
}

type inflowKeyed struct{ *inflow }

func (inflowKeyed) Key(i string) string { return i }

type inflowPaged struct{ inflowKeyed }

func (inflowPaged) Position(i string) string { return i }

type inflowOrdered struct{ inflowKeyed }

func (inflowOrdered) OrderKey(i string) string {
	n, _ := strconv.Atoi(i[1:])
	return i[:1] + strconv.Itoa(n%5)
}

type inflowCursored struct{ *inflow }

func (inflowCursored) Cursor(i string) string { return i }
