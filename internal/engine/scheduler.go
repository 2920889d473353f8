package engine

import (
	"sync"
	"time"

	"github.com/dutyrota/rota/processor"
)

// scheduler decides which lane is selected and which batch is executed next. One lock guards it and all lanes, pages
// and grants, because nearly every step changes several of them.
//
// Its methods in this file choose the next call, and start its executor. Its other methods carry out what its values
// decide. They are in the files of these values: isolation, limits, outage, queues, streak, sweep.
type scheduler struct {
	*setup

	mu        sync.Mutex
	settings  *Settings // replaced, never changed
	grants    grants
	executors map[*executor]struct{}
	due       dueLanes   // idle lanes
	ready     readyLanes // lanes with unstarted items
	selects   int        // selects in flight
	limiter   limiter
	inFlight  inFlight
	unhinted  unhinted
	turn      *lane // the lane of single items with a select, a page or a batch in flight; nil if there is none
	peeks     peeks
	outage    outage
	sweptRun  sweptRun
	pace      pace // of all lanes
	stats     processor.Stats
	streak    streak
	wakes     uint64 // calls of Wake, Grant and Resume
	asleep    bool   // Trusted has returned false, and there was no wake since
	stopping  bool
	starter   starter
	signals   signals
}

// starter starts executors.
type starter struct {
	start   func(*executor) // runs the executor in a goroutine of its own; nil outside of Run
	pending bool            // the last executor that was started has not claimed a call yet, nor found none
	timer   *time.Timer     // fires when the next call may be claimed; Run creates and receives it
}

// signals are the channels of Drained and Emptied.
type signals struct{ drained, emptied chan struct{} }

func newScheduler(u *setup, settings *Settings) *scheduler {
	s := &scheduler{
		setup: u, settings: settings, grants: grants{}, executors: map[*executor]struct{}{},
		inFlight: inFlight{most: unbounded},
		signals:  signals{make(chan struct{}, 1), make(chan struct{}, 1)},
	}
	s.peeks.off, s.peeks.changed = !u.capabilities.peeker, make(chan struct{}, 1)
	return s
}

// nextSelectLocked returns the lane that is selected next, or nil.
func (s *scheduler) nextSelectLocked(now time.Time) *lane {
	if s.outage.selectAt(now).After(now) {
		return nil
	}
	l := s.due.first()
	for l != nil && !l.dueAt.After(now) && l.alone && s.turn != nil && s.turn != l {
		s.due.remove(l)
		l = s.due.first()
	}
	if l == nil || l.dueAt.After(now) || !s.roomLocked() && !s.cutPageLocked(now) {
		return nil
	}
	return l
}

// nextBatchLocked returns the lane whose turn it is, with the size and the mark of its next batch. It returns nil if no
// lane is ready, or if the rate or the batches in flight forbid the batch for now.
func (s *scheduler) nextBatchLocked(now time.Time) (l *lane, size int, m mark) {
	if s.inFlight.most == 0 {
		s.dropReadyLocked(now) // pages whose select or batch was in flight when the share fell
	}
	if l = s.ready.next(); l == nil || s.inFlight.full() {
		return nil, 0, ordinary
	}
	most := 1
	if !l.alone {
		most = s.limiter.atMost(now, s.settings.ExecuteNumber, s.settings, s.grants)
	}
	size, m = l.page.handout.peek(l.page, most)
	n := size
	if m < ordinary { // Execute is not called
		n = 0
	}
	if !s.limiter.allow(now, n, s.settings, s.grants) {
		return nil, 0, ordinary
	}
	s.ready.take()
	return l, size, m
}

// startNextLocked starts an executor if there is a call to claim and thread_number leaves an executor. An executor that
// has claimed a call starts the next one. If there is a call later, the timer fires then.
func (s *scheduler) startNextLocked(now time.Time) {
	if s.starter.start == nil || s.starter.pending || s.asleep || len(s.executors) >= s.settings.ThreadNumber {
		return
	}
	switch next := s.nextCallLocked(now); {
	case next.IsZero():
	case next.After(now):
		s.starter.timer.Reset(next.Sub(now))
	default:
		e := newExecutor(s)
		s.executors[e] = struct{}{}
		s.starter.pending = true
		s.starter.start(e)
	}
}

// nextCallLocked returns when the next call may be claimed: when the first lane is due, or when the rate allows the
// next batch. It returns zero if neither will be without another call's end or another queue.
func (s *scheduler) nextCallLocked(now time.Time) (next time.Time) {
	if l := s.due.first(); l != nil && s.roomLocked() {
		next = s.outage.selectAt(l.dueAt)
	}
	if len(s.ready.lanes) > 0 && !s.inFlight.full() {
		next = earlier(next, later(s.limiter.until, now))
	}
	return next
}

// placeLocked updates the place of a lane after a change: a page without unstarted items leaves the ready lanes, and
// an idle lane rests until its next select.
func (s *scheduler) placeLocked(l *lane, now time.Time) {
	if l.page != nil && l.page.unstarted() == 0 {
		s.ready.remove(l)
		l.page = nil
	}
	if l.inDueLanes() || !l.idle(s.settings.NotSleep) {
		return
	}
	l.rest.plan(&l.times, s.settings, now, s.outage.nextProbe(l, s.settings, now, l.rest.retryAfter))
	s.afterOutageLocked(l, now)
	l.times.hold(holdRate, l.rate.readyAt(now))
	s.enqueueLocked(l)
}

// enqueueLocked adds a lane to the due lanes, if it may be selected.
func (s *scheduler) enqueueLocked(l *lane) {
	s.passTurnLocked(l)
	if !l.inDueLanes() && l.idle(s.settings.NotSleep) && l.selectable() {
		s.due.add(l)
	}
}

// relaxLocked ends the rest of every lane at the given time at the latest, also of one that drains and may be resumed.
func (s *scheduler) relaxLocked(at time.Time) {
	for _, g := range s.grants {
		if l := g.lane; l.inDueLanes() || g.draining {
			l.times.relax(at)
			s.due.update(l)
		}
	}
}

// dropReadyLocked drops all unstarted items. A cursored lane with a batch in flight is not ready: its items are dropped
// when the batch ends.
func (s *scheduler) dropReadyLocked(now time.Time) {
	for len(s.ready.lanes) > 0 {
		l := s.ready.lanes[0]
		skip(&s.stats, l.page.drop())
		s.placeLocked(l, now)
	}
}

func (s *scheduler) wakeLocked() {
	s.wakes++
	s.asleep = false
	s.startNextLocked(time.Now())
}

// configureLocked replaces the settings.
func (s *scheduler) configureLocked(settings *Settings, now time.Time) {
	before := s.settings
	s.settings = settings
	s.peeks.at = time.Time{}
	for _, g := range s.grants {
		g.lane.times.relax(settings.latestRest(now)) // also of one that drains
		if settings.rateOf(g.lane.limits) != before.rateOf(g.lane.limits) {
			g.lane.limit(g.lane.limits, settings)
		}
		s.due.update(g.lane)
		if !g.lane.idle(settings.NotSleep) {
			s.due.remove(g.lane) // it now waits for its batches in flight
		}
		s.offerLocked(g.lane)
		s.placeLocked(g.lane, now)
	}
	s.limiter.invalidate()
	s.startNextLocked(now)
}

// stopLocked keeps executors from starting anything.
func (s *scheduler) stopLocked(now time.Time) {
	s.stopping, s.starter.start = true, nil
	s.starter.timer.Stop()
	s.dropReadyLocked(now)
}
