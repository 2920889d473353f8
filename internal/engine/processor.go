package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/processor"
)

// Processor works the queues of one task type that it was granted: it selects their items and executes them. All
// methods may be called from any goroutine, before, during and after Run. None of them waits for the dealer.
//
// It has more than 15 methods, because most of them are its interface. The work is done by its parts: the scheduler and
// the executors.
type Processor struct {
	*setup
	scheduler *scheduler
}

// setup is what a processor and its calls read without a lock.
type setup struct {
	env          Env
	source       source
	capabilities capabilities
	stages       []*stage
	reloads      atomic.Uint64 // calls of Reload
	rounds       atomic.Uint64 // rises with a success after a failure; the scheduler's lock guards its changes
	memory       memory
	lines        failureLines
	keyQueues    keyQueues
	alerted      sync.Map // when the alerts of remind were last sent, by the alerts without their texts
}

// New returns a processor for the items of d. It has no queue yet. New returns an error if d is nil or panics, if a
// setting breaks its rule, or if the capabilities of d contradict each other or the settings.
func New[T any](d processor.TaskDealer[T], env Env, s Settings) (*Processor, error) {
	if d == nil {
		return nil, errors.New("create processor: no TaskDealer")
	}
	env = env.withDefaults()
	src, err := newSource(d, env.Redact)
	if err != nil {
		return nil, fmt.Errorf("create processor: ask what the TaskDealer offers: %w", err)
	}
	u := &setup{
		env: env, source: src, capabilities: src.capabilities(), stages: src.capabilities().stages(), memory: newMemory(),
		lines: failureLines{logger: env.Logger},
	}
	u.rounds.Store(firstRound)
	if err := u.validate(&s); err != nil {
		return nil, err
	}
	return &Processor{setup: u, scheduler: newScheduler(u, &s)}, nil
}

func (u *setup) validate(s *Settings) error {
	err := s.validate()
	if err == nil {
		err = u.capabilities.Check(s.Needs(u.env.Databases))
	}
	if err != nil {
		return fmt.Errorf("settings of task type %s: %w", u.env.TaskType, err)
	}
	return nil
}

// Run works the granted queues until ctx is done and no call is in flight. It then returns nil. It returns an error
// only if it was called before: a processor runs once.
//
// When ctx is done, nothing starts any more and unstarted items are dropped. The contexts of the running calls are
// derived from ctx and are cancelled too. To let calls finish, drain the queues first. A dealer that ignores its
// context keeps Run from returning. A caller that cannot wait must abandon the goroutine of Run.
func (p *Processor) Run(ctx context.Context) error {
	var all sync.WaitGroup
	timer, err := p.begin(func(e *executor) { all.Go(func() { e.run(ctx) }) })
	if err != nil {
		return err
	}
	defer p.lines.flush() // after the executors have ended
	defer all.Wait()
	defer p.stop()
	if p.capabilities.peeker {
		all.Go(func() { p.peekIdle(ctx) })
	}
	for {
		p.startNext()
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
}

func (p *Processor) begin(start func(*executor)) (*time.Timer, error) {
	s := p.lock()
	defer s.mu.Unlock()
	if s.starter.timer != nil {
		return nil, errors.New("run processor: Run was called before")
	}
	s.starter.start, s.starter.timer = start, time.NewTimer(time.Hour)
	return s.starter.timer, nil
}

func (p *Processor) startNext() {
	s := p.lock()
	defer s.mu.Unlock()
	s.startNextLocked(time.Now())
}

func (p *Processor) stop() {
	s := p.lock()
	defer s.mu.Unlock()
	s.stopLocked(time.Now())
}

// Configure replaces the settings while the processor runs. The number of executors changes at once, the rate with the
// next batch, and sizes with the next select or batch. A queue that rests does not rest longer than the new sleeps. If
// a setting breaks its rule, or contradicts the capabilities of the dealer, Configure returns an error and changes
// nothing.
func (p *Processor) Configure(s Settings) error {
	if err := p.validate(&s); err != nil {
		return err
	}
	defer p.lock().mu.Unlock()
	p.scheduler.configureLocked(&s, time.Now())
	return nil
}

// Capabilities returns what the dealer offers.
func (p *Processor) Capabilities() processor.Capabilities { return p.capabilities.Capabilities }

// Reload makes the processor load the failed items of every queue again before its next select, after their records
// were changed from outside. A queue that rests longer than sleep_time_nodata is selected after sleep_time_nodata.
func (p *Processor) Reload() {
	p.reloads.Add(1)
	s := p.lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.relaxLocked(now.Add(s.settings.SleepTimeNoData))
	s.startNextLocked(now)
}

// Wake makes executors call Trusted again after it has returned false. The caller calls it when trust is restored.
// Grant and Resume do the same.
func (p *Processor) Wake() {
	s := p.lock()
	defer s.mu.Unlock()
	s.wakeLocked()
}

// lock locks the scheduler. The caller unlocks it.
func (p *Processor) lock() *scheduler {
	p.scheduler.mu.Lock()
	return p.scheduler
}

// notify sends to a channel of capacity 1, unless the channel is full.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
