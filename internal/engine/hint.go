package engine

import "time"

// hintPause is the least time between the starts of two selects of a lane that hints have made due. So a burst of hints
// costs a lane a hundred selects a second, however large it is.
const hintPause = 10 * time.Millisecond

// netPause is the pause between the polls of a queue whose writers send hints: a net for hints that are lost.
const netPause = 30 * time.Second

// Hinted returns Settings.Hinted.
func (p *Processor) Hinted() bool {
	s := p.lock()
	defer s.mu.Unlock()
	return s.settings.Hinted
}

// PollPause returns the pause of a queue after a select that has found nothing: that of Settings.Hinted while hints
// arrive, otherwise SleepTimeNoData.
func (p *Processor) PollPause() time.Duration {
	s := p.lock()
	defer s.mu.Unlock()
	return s.pollPause()
}

// pollPause returns the pause of a queue after a select that has found nothing.
func (s *scheduler) pollPause() time.Duration {
	if s.settings.Hinted && s.env.Hears() {
		return max(netPause, s.settings.SleepTimeNoData)
	}
	return s.settings.SleepTimeNoData
}

// unhinted counts the selects that have found items without a hint, in tenths, and takes off one for each that a hint
// has made. So a hint that is overtaken by a poll now and then is no finding, and a program that sends none is one.
type unhinted int

// tooManyUnhinted is the number of selects for which the alert is sent.
const tooManyUnhinted = 3

// noteHintLocked counts a select that has found items.
func (s *scheduler) noteHintLocked(c *selectCall) {
	switch {
	case !s.settings.Hinted || !s.env.Hears() || c.found.retries > 0:
	case c.polled:
		s.unhinted = min(s.unhinted+10, 2*10*tooManyUnhinted)
	default:
		s.unhinted = max(s.unhinted-1, 0)
	}
	c.lane.watch.unhinted = c.polled && s.unhinted >= 10*tooManyUnhinted
}

// Hint says that there may be new items, so that their queues need not wait for their next select: a queue that rests
// because its last select has found nothing is selected at once (X9). A key is the ID of a queue. Where queues are
// numbers, it may be any whole number, and QueueOf says which queue it is. No key means all queues. Keys of queues that
// the processor does not hold are ignored.
//
// A hint shortens no other rest: not that after a failure, in an outage (X5), nor sleep_time_interval. An item that
// backs off goes on backing off. A sweep needs no hint. A hint that is lost costs the time up to the next select.
func (p *Processor) Hint(keys ...string) {
	s := p.lock()
	defer s.mu.Unlock()
	now := time.Now()
	if len(keys) == 0 {
		s.hintAllLocked(now)
	}
	totals := s.grants.totals()
	for _, key := range keys {
		if g := s.grants.of(key, totals); g != nil {
			s.hintLocked(g.lane, now)
		}
	}
	s.startNextLocked(now)
}

// hintLocked asks for a select of a lane. If one is in flight, that may have read too early, so another one follows. A
// sweep has no poll that a hint could shorten.
func (s *scheduler) hintLocked(l *lane, now time.Time) {
	if l.sweep == nil && !s.outage.open() {
		l.times.hint(now)
		s.due.update(l)
	}
}

// hintAllLocked makes all lanes due that have found nothing. A peek asks which of the idle ones have work.
func (s *scheduler) hintAllLocked(now time.Time) {
	idle := 0
	for _, l := range s.due.lanes {
		if l.times.idle(now) {
			idle++
		}
	}
	peeks := idle >= peekLeast && !s.outage.open()
	if peeks {
		s.peeks.hint(now)
	}
	for _, g := range s.grants {
		if peeks && g.lane.times.idle(now) {
			s.pollSoonLocked(g.lane, now)
		} else {
			s.hintLocked(g.lane, now)
		}
	}
}

// pollSoonLocked makes an idle lane wait for the peek that answers a hint no longer than for any peek of a queue
// without hints: the peek may hang, or wait for those of other task types.
func (s *scheduler) pollSoonLocked(l *lane, now time.Time) {
	l.times.ask(askPoll, now.Add(2*s.settings.SleepTimeNoData))
	s.due.update(l)
}
