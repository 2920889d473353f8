package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/processor"
)

// A queue is idle if its last select has returned nothing at all. Idle queues are peeked together once in
// sleep_time_nodata (X8). Peeks have a goroutine of their own and touch the lanes in two ways only: a peek that does
// not name a lane delays its poll (timetable.looked), and one that names it makes it due.
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
	off     bool          // the dealer is no Peeker, or has returned ErrNoPeek
	hinted  bool          // a hint for all queues has come since the last peek began
	at      time.Time     // of the next peek; zero while no lane is idle
	began   time.Time     // when the last peek began
	running *peek         // nil if none is in flight
	changed chan struct{} // receives a value when at becomes earlier
}

// plan makes the next peek begin at the given time at the latest.
func (k *peeks) plan(at time.Time) {
	k.at = earlier(k.at, at)
	notify(k.changed)
}

// hint plans a peek at once. If one is in flight, that may have read too early, so another one follows.
func (k *peeks) hint(now time.Time) {
	k.hinted = true
	k.plan(later(k.began.Add(hintPause), now))
}

// answersHint reports whether a peek is to answer a hint, or is about to.
func (k *peeks) answersHint() bool { return k.hinted || k.running != nil && k.running.hinted }

// leavesIdle reports whether the select shows that its lane is idle: it began at the start of the source, and returned
// nothing at all. Items that back off or are dead still match the user's condition, so a peek would find them, and
// those of the order keys that the select has left out too.
func (c *selectCall) leavesIdle() bool {
	return c.found == nil && c.selection.After == "" && len(c.selection.Held) == 0 && len(c.inFlight) == 0 &&
		c.lane.sweep == nil && !c.lane.alone
}

// noteIdleLocked lets the peeks ask for a lane whose select has left it idle.
func (s *scheduler) noteIdleLocked(c *selectCall) {
	if s.peeks.off || !c.leavesIdle() {
		return
	}
	t, interval := &c.lane.times, s.pollPause()
	t.idleUntil = c.began.Add(max(peekMost, interval))
	t.looked(c.began, interval)
	if s.peeks.at.IsZero() {
		s.peeks.plan(c.now.Add(interval))
	}
}

// peekIdle peeks the idle lanes until ctx is done.
func (p *Processor) peekIdle(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		next, wait := p.nextPeek()
		if next != nil {
			next.run(ctx)
			p.endPeek(ctx, next)
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-p.scheduler.peeks.changed:
		}
	}
}

// nextPeek begins the peek that is due. If none is, it returns how long the next one is away at most.
func (p *Processor) nextPeek() (next *peek, wait time.Duration) {
	trusted := p.env.Trusted()
	s := p.lock()
	defer s.mu.Unlock()
	now, k := time.Now(), &s.peeks
	switch {
	case k.off || k.at.IsZero():
		return nil, time.Hour
	case k.at.After(now):
		return nil, k.at.Sub(now)
	case !trusted || s.outage.open() || s.inFlight.most == 0: // nothing may be selected, or only samples
		s.dropHintLocked(now)
		k.at = now.Add(s.pollPause())
		return nil, s.pollPause()
	}
	next = s.newPeekLocked(now)
	k.at, k.hinted = time.Time{}, false
	if next == nil {
		return nil, time.Hour
	}
	k.running, k.began = next, now
	return next, 0
}

// dropHintLocked makes the idle lanes due if a peek was to answer a hint and cannot begin: they are selected as soon as
// anything may be. The end of an outage makes all lanes due anyway.
func (s *scheduler) dropHintLocked(now time.Time) {
	if !s.peeks.hinted {
		return
	}
	s.peeks.hinted = false
	for _, g := range s.grants {
		if g.lane.times.idle(now) {
			s.hintLocked(g.lane, now)
		}
	}
}

// peek is one peek of idle lanes. Their queues do not wait for it: it only reads, and their drain and their next select
// go on.
type peek struct {
	*setup
	timeout time.Duration
	began   time.Time
	hinted  bool       // a hint has asked for it
	asked   []idleLane // by data database
	err     error
}

// idleLane is a lane that is peeked.
type idleLane struct {
	*lane
	selection processor.Selection
	empty     bool // the peek has not named it
}

// newPeekLocked returns a peek of the idle lanes. It returns nil if there are too few of them, and lets them be
// selected as without peeks.
func (s *scheduler) newPeekLocked(now time.Time) *peek {
	p := &peek{setup: s.setup, began: now, timeout: peekTimeout, hinted: s.peeks.hinted}
	if limit := s.settings.BatchTimeout; limit > 0 {
		p.timeout = min(p.timeout, limit)
	}
	for _, l := range s.due.lanes {
		if l.times.idle(now) {
			selection := s.selectionLocked(l.grant)
			selection.Limit = 1
			p.asked = append(p.asked, idleLane{lane: l, selection: selection})
		}
	}
	if len(p.asked) < peekLeast {
		s.finishPeekLocked(p, now)
		return nil
	}
	if p.hinted {
		for _, l := range p.asked {
			s.pollSoonLocked(l.lane, now)
		}
		s.startNextLocked(now)
	}
	slices.SortFunc(p.asked, func(a, b idleLane) int {
		x, y := a.selection.Queue, b.selection.Queue
		return cmp.Or(cmp.Compare(x.Database, y.Database), compareQueues(x, y))
	})
	return p
}

// run calls Peek in a goroutine of its own, which the dealer may end by runtime.Goexit.
func (p *peek) run(ctx context.Context) {
	ended := make(chan struct{})
	p.err = errExited
	go func() {
		defer close(ended)
		p.err = p.perform(ctx)
	}()
	<-ended
}

// perform calls Peek for the lanes of each data database. One that is away keeps none of the others busy.
func (p *peek) perform(ctx context.Context) error {
	var errs []error
	for rest := p.asked; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].selection.Queue.Database == rest[0].selection.Queue.Database {
			n++
		}
		if err := p.ask(ctx, rest[:n]); err != nil {
			errs = append(errs, err)
		}
		rest = rest[n:]
	}
	return errors.Join(errs...)
}

// ask notes which of the lanes Peek has not named. It waits for its turn among the peeks of the process. Its lanes are
// selected meanwhile, if it takes too long.
func (p *peek) ask(ctx context.Context, idle []idleLane) error {
	if p.env.Peeking != nil {
		select {
		case p.env.Peeking <- struct{}{}:
			defer func() { <-p.env.Peeking }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	selections := make([]processor.Selection, len(idle))
	for i, l := range idle {
		selections[i] = l.selection
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	named, err := p.source.peek(ctx, selections)
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

// endPeek reports a failure, unless the process stops, and tells the lanes what the peek has found.
func (p *Processor) endPeek(ctx context.Context, k *peek) {
	now := time.Now()
	off := errors.Is(k.err, processor.ErrNoPeek)
	failed := k.err != nil && !off && ctx.Err() == nil
	if failed {
		k.log(ctx)
	}
	s := p.lock()
	defer s.mu.Unlock()
	s.stats.PeekCount++
	if failed {
		s.stats.LastError, s.stats.LastErrorTime = fmt.Errorf("peek at queue %s: %w", k.queueIDs(), k.err), now
	}
	s.finishPeekLocked(k, now)
	s.peeks.off, s.peeks.hinted = off, s.peeks.hinted && !off
	pause := s.pollPause()
	if s.peeks.hinted {
		pause = hintPause
	}
	s.peeks.at, s.peeks.running = now.Add(pause), nil
}

// finishPeekLocked lets the lanes rest on that the peek has not named. All others are selected.
func (s *scheduler) finishPeekLocked(k *peek, now time.Time) {
	for _, l := range k.asked {
		switch {
		case !l.times.idle(now): // a select of it has found something, or something else asks for one
		case l.empty:
			l.times.looked(k.began, s.pollPause())
		case k.hinted:
			l.times.hint(now)
		case len(k.asked) < peekLeast: // nothing was asked, and its last select may have ended just now
			l.times.ask(askPoll, later(l.times.began.Add(s.pollPause()), now))
		default:
			l.times.ask(askPoll, now)
		}
		s.due.update(l.lane)
	}
	s.startNextLocked(now)
}

// log logs a failure like that of a select.
func (p *peek) log(ctx context.Context) {
	level, attrs := slog.LevelWarn, []slog.Attr{slog.String("queue", p.queueIDs()), slog.Any("error", p.err)}
	if panicked, ok := errors.AsType[*panicError](p.err); ok {
		level, attrs = slog.LevelError, append(attrs, slog.String("stack", string(panicked.stack)))
	}
	p.lines.log(ctx, level, "peek: "+failed.String(), attrs)
}

// queueIDs lists the queues of the peek, at most eight of them.
func (p *peek) queueIDs() string {
	const most = 8
	text := strings.Join(p.ids()[:min(len(p.asked), most)], ", ")
	if more := len(p.asked) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", text, more)
	}
	return text
}

// ids may be called during the peek, which writes no selection.
func (p *peek) ids() []string {
	ids := make([]string, len(p.asked))
	for i := range p.asked {
		ids[i] = p.asked[i].selection.Queue.ID
	}
	return ids
}
