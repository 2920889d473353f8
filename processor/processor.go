package processor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Processor works the queues of one task type that were granted to it: it selects their items and executes them.
// All methods may be called from any goroutine, before, during and after Run. None of them waits for the dealer.
type Processor struct {
	env     Env
	source  source
	powers  powers
	changed chan struct{} // Run looks after the number of executors
	drained chan struct{}
	empties chan struct{}
	timer   *time.Timer // fires when an executor that waits may have something to do; Run receives it
	reloads atomic.Uint64

	mu        sync.Mutex
	work      *sync.Cond // signalled when an executor that waits may have something to do
	settings  *Settings  // replaced, never changed
	executors map[*call]struct{}
	waiting   int // executors that wait for work
	held      map[string]*held
	set       *lane    // the one lane of a SetSelector; nil if each queue has its own
	due       dueLanes // idle lanes, by when they are to be selected
	pending   []*lane  // lanes whose page has unstarted items that an executor may take
	turn      int      // the lane of pending whose batch is next
	selects   int      // selects that run
	stats     Stats
	wakes     uint64 // calls of Wake, Grant and Resume
	asleep    bool   // Trusted said no, and nothing woke us since
	ran       bool
	stopping  bool

	limiter    *rate.Limiter // nil before it is needed
	paced      bool          // it has the share of the present queues
	pacedUntil time.Time     // it forbids batches until then
}

// New returns a processor for the items of d, without any queue. It fails if d is nil, a setting breaks its rule, or
// the powers of d do not go with each other or the settings.
func New[T any](d TaskDealer[T], env Env, s Settings) (*Processor, error) {
	if d == nil {
		return nil, errors.New("processor: no TaskDealer")
	}
	src := newTyped(d)
	p := &Processor{
		env: env.withDefaults(), source: src, powers: src.powers(), settings: &s,
		changed: make(chan struct{}, 1), drained: make(chan struct{}, 1), empties: make(chan struct{}, 1),
		executors: map[*call]struct{}{}, held: map[string]*held{},
	}
	if err := p.validate(&s); err != nil {
		return nil, err
	}
	p.work = sync.NewCond(&p.mu)
	if p.powers.set {
		p.set = newLane()
	}
	return p, nil
}

func (p *Processor) validate(s *Settings) error {
	err := s.validate()
	if err == nil {
		err = p.powers.check(s)
	}
	if err != nil {
		return fmt.Errorf("settings of task type %s: %w", p.env.TaskType, err)
	}
	return nil
}

// Run works the granted queues until ctx is done and nothing is in hand any more. It returns nil then, and an error
// only if it was called before: a processor runs once.
//
// When ctx is done nothing starts any more, unstarted items are dropped, and the contexts of the calls that run are
// cancelled, for they are derived from ctx. Drain first what should end in peace. A dealer that ignores its context
// keeps Run from returning; a caller that cannot wait must leave it behind.
func (p *Processor) Run(ctx context.Context) error {
	if err := p.begin(); err != nil {
		return err
	}
	var executors sync.WaitGroup
	defer executors.Wait()
	defer p.stop()
	for {
		p.staff(ctx, &executors)
		select {
		case <-ctx.Done():
			return nil
		case <-p.timer.C:
			p.signal()
		case <-p.changed:
		}
	}
}

func (p *Processor) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ran {
		return errors.New("processor: Run was called before")
	}
	p.ran = true
	p.timer = time.NewTimer(time.Hour) // set anew by whoever waits
	return nil
}

// staff starts the executors that are missing; those that are too many leave by themselves.
func (p *Processor) staff(ctx context.Context, all *sync.WaitGroup) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.executors) < p.settings.ThreadNumber {
		c := &call{now: time.Now()}
		p.executors[c] = struct{}{}
		all.Go(func() { p.executor(ctx, c) })
	}
}

func (p *Processor) signal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.work.Signal()
}

// stop lets no executor start anything more.
func (p *Processor) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopping = true
	p.timer.Stop()
	p.dropPending(time.Now())
	p.work.Broadcast()
}

// Configure replaces the settings while the processor runs: the number of executors at once, the rate with the next
// batch, sizes with the next select or batch, and a queue that rests does not rest longer than the new sleeps. If a
// setting breaks its rule, or does not go with the powers of the dealer, it returns an error, and the settings stay as
// they are.
func (p *Processor) Configure(s Settings) error {
	if err := p.validate(&s); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settings = &s
	now := time.Now()
	p.due.hasten(now.Add(max(s.SleepTimeNoData, s.SleepTimeInterval)))
	for _, h := range p.held {
		if !h.lane.idle(s.NotSleep) {
			p.due.remove(h.lane) // it waits for what is in hand now
		}
		p.settle(h.lane, now)
	}
	p.repace()
	p.work.Broadcast()
	notify(p.changed)
	return nil
}

// Reload has the failed items of every queue loaded again before its next select, since somebody has changed their
// records. A queue that rests for longer is selected after sleep_time_nodata.
func (p *Processor) Reload() {
	p.reloads.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due.hasten(time.Now().Add(p.settings.SleepTimeNoData))
	p.work.Signal()
}

// notify leaves a mark on a channel of capacity 1, unless there is one.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
