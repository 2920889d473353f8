package engine

import (
	"context"
	"time"
)

// executor runs one call after another: selects and batches. It reuses its values for them, so that a batch allocates
// nothing.
type executor struct {
	scheduler *scheduler
	now       time.Time // when the executor last read the clock
	call      *call     // the call in flight; nil before the first one. The scheduler's lock guards it.
	work      work      // the select or the batch that call is part of
	selection selectCall
	batch     batch
}

// work is a select or a batch.
type work interface {
	perform() error            // calls the dealer
	conclude()                 // finds the outcome and records failures, without the lock
	finishLocked(s *scheduler) // updates the lanes
	reset()                    // prepares the value for its next use
}

func newExecutor(s *scheduler) *executor {
	return &executor{
		scheduler: s, now: time.Now(),
		selection: selectCall{call: call{setup: s.setup}}, batch: batch{call: call{setup: s.setup}},
	}
}

// run runs calls until there is none to claim, ctx is done or there are too many executors.
func (e *executor) run(ctx context.Context) {
	defer e.exit()
	for e.next(ctx) {
		e.perform() // without ctx: each call has its own context, which Revoke cancels
	}
}

// next finishes the last call and claims the next one under a single hold of the lock. It returns false if the executor
// should end.
func (e *executor) next(ctx context.Context) (claimed bool) {
	s := e.scheduler
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.call != nil {
		e.finishLocked()
	} else {
		s.starter.pending = false
	}
	if ctx.Err() != nil {
		delete(s.executors, e)
		return false
	}
	if claimed = len(s.executors) <= s.settings.ThreadNumber && e.claimLocked(ctx); !claimed {
		delete(s.executors, e)
	}
	s.startNextLocked(e.now)
	return claimed
}

// claimLocked takes the select of the first due lane, or else the next batch. So a large or slow page does not keep
// other lanes from being selected.
func (e *executor) claimLocked(ctx context.Context) bool {
	s := e.scheduler
	if s.asleep {
		return false
	}
	s.expireOutageLocked(e.now)
	if l := s.nextSelectLocked(e.now); l != nil {
		e.selection.claimLocked(ctx, s, l, e.now)
		e.beginLocked(&e.selection.call, &e.selection)
		return true
	}
	if l, size, m := s.nextBatchLocked(e.now); l != nil {
		e.batch.claimLocked(s, l, size, m, e.now)
		e.beginLocked(&e.batch.call, &e.batch)
		return true
	}
	return false
}

// beginLocked puts a claimed call in flight.
func (e *executor) beginLocked(c *call, w work) {
	s := e.scheduler
	e.call, e.work = c, w
	c.logCtx = c.ctx
	c.settings, c.began, c.now, c.wakes = s.settings, e.now, e.now, s.wakes
	c.round, c.reloaded = s.rounds.Load(), s.reloads.Load()
	s.outage.rest(e.now, s.settings)
	c.doubted = s.outage.doubts(e.now, s.settings, s.capabilities.Cursored)
	c.grant.inFlight++
}

// perform runs the call, unless it must not start. A runtime.Goexit in the dealer ends the goroutine, and conclude
// still runs.
func (e *executor) perform() {
	c := e.call
	switch {
	case !c.env.Trusted():
		c.outcome = untrusted
	case c.ctx.Err() != nil: // checked last: the call may have been revoked since it was claimed
		c.outcome = dropped
	default:
		defer e.work.conclude()
		c.err = errExited
		c.err = e.work.perform()
	}
}

// finishLocked takes the call out of flight and updates everything that depends on its outcome.
func (e *executor) finishLocked() {
	s, c := e.scheduler, e.call
	g := c.grant
	g.inFlight--
	switch {
	case c.outcome == failed:
		s.stats.LastError, s.stats.LastErrorTime = c.err, c.now
	case c.outcome == lost && !g.draining:
		s.drainLocked(g, c.now)
		g.lost = true
	}
	e.work.finishLocked(s)
	if c.outcome == untrusted && c.wakes == s.wakes {
		s.asleep = true
		s.dropReadyLocked(c.now)
	}
	if g.draining && g.inFlight == 0 {
		notify(s.signals.drained)
	}
	e.now = c.now
	e.work.reset()
	c.lane, c.grant, c.outcome, c.err, c.took, c.quota = nil, nil, done, nil, 0, 0 // the rest stays until the next call
	e.call, e.work = nil, nil
}

// exit finishes the call in which the dealer ended the goroutine, and lets another executor start.
func (e *executor) exit() {
	s := e.scheduler
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.call == nil {
		return
	}
	e.finishLocked()
	delete(s.executors, e)
	s.startNextLocked(e.now)
}
