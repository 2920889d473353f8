package processor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A queue is idle if its last select has returned nothing at all. Idle queues are peeked together once in
// sleep_time_nodata (X8).
const (
	// peekMost is how long after its last select an idle queue is selected again, whatever the peeks say. So a Peek that
	// is wrong delays work, and does not lose it.
	peekMost = time.Minute

	// peekLeast is how many queues must be idle: for one alone, a select says more than a peek.
	peekLeast = 2

	// peekTimeout ends the context of a Peek that takes longer. Its queues are selected meanwhile.
	peekTimeout = 10 * time.Second
)

// peeks decides when the idle lanes are peeked. The scheduler's lock guards it.
type peeks struct {
	off    bool      // the dealer is no Peeker, or has returned ErrNoPeek
	asking bool      // a peek is in flight
	hinted bool      // a hint for all queues came meanwhile
	at     time.Time // of the next peek; zero while no lane is idle
	began  time.Time // of the last peek
}

// due reports whether the next peek may begin.
func (p *peeks) due(now time.Time) bool { return !p.asking && !p.at.IsZero() && !p.at.After(now) }

// join plans the next peek after a lane has become idle.
func (p *peeks) join(now time.Time, interval time.Duration) {
	if p.at.IsZero() {
		p.at = now.Add(interval)
	}
}

// next plans the peek after one that has ended.
func (p *peeks) next(now time.Time, interval time.Duration) {
	p.at = now.Add(interval)
	if p.hinted {
		p.at, p.hinted = now.Add(hintPause), false
	}
}

// rests reports whether a lane is idle, so that it may be peeked instead of selected.
func (l *lane) rests(now time.Time) bool { return l.idleUntil.After(now) }

// restAfter lets an idle lane rest after a select or a peek that has found nothing. The next peek begins before the
// rest ends. If that fails, or cannot begin, what has come since the look began waits for twice the interval.
func (l *lane) restAfter(look time.Time, interval time.Duration) {
	l.dueAt = earlier(l.idleUntil, look.Add(2*interval))
}

// wakeAt makes a lane due at the given time at the latest. No peek delays that.
func (l *lane) wakeAt(at time.Time) {
	l.idleUntil, l.dueAt = time.Time{}, earlier(l.dueAt, at)
}

// leavesIdle reports whether the select shows that its lane is idle: it began at the start of the source, and returned
// nothing at all. Items that back off or are dead still match the user's condition, so a peek would find them, and
// those of the order keys that the select has left out too.
func (c *selectCall) leavesIdle() bool {
	return c.found == nil && c.selection.After == "" && len(c.selection.Held) == 0 && len(c.inFlight) == 0 &&
		c.lane.sweep == nil && !c.lane.isolated
}

// noteIdleLocked lets the peeks ask for a lane whose select has left it idle.
func (s *scheduler) noteIdleLocked(c *selectCall) {
	if s.peeks.off || s.outage.open() || !c.leavesIdle() {
		return
	}
	l, interval := c.lane, s.settings.SleepTimeNoData
	l.idleUntil = c.began.Add(max(peekMost, interval))
	s.peeks.join(c.now, interval)
	if l.inDueLanes() {
		l.restAfter(c.began, interval)
		s.due.move(l)
	}
}

// nextPeekLocked returns the idle lanes, if their peek is due. One alone is selected instead. While the breaker is open
// there is no peek, nor if there is no room for the selects that may follow.
func (s *scheduler) nextPeekLocked(now time.Time) []*lane {
	if !s.peeks.due(now) || s.outage.open() || !s.roomLocked() {
		return nil
	}
	s.peeks.at = time.Time{}
	var idle []*lane
	for _, l := range s.due.lanes {
		if l.rests(now) {
			idle = append(idle, l)
		}
	}
	if len(idle) >= peekLeast {
		return idle
	}
	for _, l := range idle {
		l.wakeAt(now)
	}
	s.due.order()
	return nil
}

// peekCall is one peek of idle lanes. The methods in this file are its steps, in order. Its queues do not wait for it:
// it only reads, and their drain and their next select go on.
type peekCall struct {
	call
	asked []idleLane // by data database
}

// idleLane is a lane that is peeked.
type idleLane struct {
	*lane
	selection Selection
	empty     bool // the peek has not named it
}

// claimLocked takes the peek.
func (p *peekCall) claimLocked(ctx context.Context, s *scheduler, idle []*lane, now time.Time) {
	s.selects++
	s.peeks.asking, s.peeks.began = true, now
	p.ctx = ctx
	for _, l := range idle {
		selection := s.selectionLocked(l.grant)
		selection.Limit = 1
		p.asked = append(p.asked, idleLane{lane: l, selection: selection})
	}
	slices.SortFunc(p.asked, func(a, b idleLane) int {
		x, y := a.selection.Queue, b.selection.Queue
		return cmp.Or(cmp.Compare(x.Database, y.Database), compareQueues(x, y))
	})
	for _, l := range p.asked {
		p.peeked = append(p.peeked, l.grant)
	}
}

// perform calls Peek for the lanes of each data database. One that is away keeps none of the others busy.
func (p *peekCall) perform() error {
	var errs []error
	for rest := p.asked; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].selection.Queue.Database == rest[0].selection.Queue.Database {
			n++
		}
		if err := p.ask(rest[:n]); err != nil {
			errs = append(errs, err)
		}
		rest = rest[n:]
	}
	return errors.Join(errs...)
}

// ask notes which of the lanes Peek has not named. It waits for its turn among the peeks of the process. Its lanes are
// selected meanwhile, if it takes too long.
func (p *peekCall) ask(idle []idleLane) error {
	if p.env.Peeking != nil {
		select {
		case p.env.Peeking <- struct{}{}:
			defer func() { <-p.env.Peeking }()
		case <-p.ctx.Done():
			return p.ctx.Err()
		}
	}
	selections := make([]Selection, len(idle))
	for i, l := range idle {
		selections[i] = l.selection
	}
	ctx, cancel := context.WithTimeout(p.ctx, peekTimeout)
	defer cancel()
	var named []string
	err := p.inTime(ctx, func(ctx context.Context) (err error) {
		named, err = p.source.peek(ctx, selections)
		return err
	})
	if err != nil {
		return err
	}
	busy := make(map[string]bool, len(named))
	for _, id := range named {
		busy[id] = true
	}
	for i := range idle {
		idle[i].empty = !busy[selections[i].Queue.ID]
	}
	return nil
}

func (p *peekCall) conclude() {
	p.now = time.Now()
	p.took = p.now.Sub(p.began)
	if p.err == nil || errors.Is(p.err, ErrNoPeek) {
		return
	}
	p.outcome = p.classify(p.err)
	p.logFailure("peek", p.outcome, p.err)
	p.err = fmt.Errorf("peek at queue %s: %w", p.queueIDs(), p.err)
}

// finishLocked lets the lanes that were not named rest on. All others are due.
func (p *peekCall) finishLocked(s *scheduler) {
	interval := s.settings.SleepTimeNoData
	s.selects--
	s.peeks.asking = false
	if errors.Is(p.err, ErrNoPeek) {
		s.peeks.off = true
	}
	s.stats.countPeek(p)
	for _, l := range p.asked {
		switch {
		case !l.inDueLanes() || l.idleUntil.IsZero(): // it was drained, or a select of it has found something
		case l.empty:
			l.restAfter(p.began, interval)
		default:
			l.wakeAt(p.now)
		}
	}
	s.due.order()
	s.peeks.next(p.now, interval)
}

func (p *peekCall) reset() {
	clear(p.asked)
	clear(p.peeked)
	*p = peekCall{call: p.call, asked: p.asked[:0]}
	p.peeked = p.peeked[:0]
}
