package processor

import "time"

// finishLocked makes the page ready for batches, or lets the lane rest.
func (c *selectCall) finishLocked(s *scheduler) {
	l := c.lane
	s.selects--
	l.selecting = false
	l.foundNothing = false
	l.untried = c.more || c.step == moves
	if c.loaded {
		c.grants[0].moveCursorLocked(c.selection.Queue.Cursor, c.cursor.suspects)
	}
	passStep{c}.advanceLocked()
	s.stats.countSelect(c)
	s.stats.DeadCount += int64(c.dead)
	c.countInStreakLocked(s)
	c.observeLocked(s)
	switch {
	case l.sweep != nil && l.sweep.endsWithLocked(s, c):
		s.passTurnLocked(l)
	case c.found != nil && c.found.unstarted() > 0:
		selectEnd{c}.addPageLocked(s)
	case c.outcome == failed || c.outcome == lost:
		after := retryAfter(c.err)
		s.restLocked(l, s.paceLocked(l, c.now.Add(l.rest.nextPause(s.settings, after)), c.now, after))
	case c.outcome == done:
		l.rest.reset()
		l.foundNothing = c.step != moves
		selectEnd{c}.noteEmptyLocked(s)
		at := selectEnd{c}.nextSelectAtLocked(s)
		if c.step != moves {
			at = s.paceLocked(l, at, c.now, 0)
		}
		s.restLocked(l, at)
	default:
		s.restLocked(l, c.now)
	}
}

// selectEnd is what the end of a select means for its lane: a page, or a rest.
type selectEnd struct{ *selectCall }

// addPageLocked makes the page the one that the lane's batches are taken from.
func (c selectEnd) addPageLocked(s *scheduler) {
	l := c.lane
	for _, g := range c.grants {
		g.emptySince = time.Time{}
	}
	l.page, c.found.readyAt = c.found, c.now
	l.rest.pause = l.rest.pause || c.outcome == failed
	s.stats.skip(l.page.dropDraining())
	if s.stopping || s.outage.open() && c.quota == 0 {
		s.stats.skip(l.page.drop())
	}
	if c.retriesOnly() && c.step != moves {
		l.rest.notBefore = c.began.Add(s.settings.floor())
	}
	pageCheck(c).checkRepeatsLocked(s)
	if l.page.unstarted() > 0 {
		s.ready.add(l)
	}
	s.settleLocked(l, c.now)
}

// nextSelectAtLocked returns the time of the next select after one that found nothing to execute. If a cursor waits for
// an item that backs off, it is the time when the item may be retried. Without a cursor it is no later than
// sleep_time_nodata. A sweep does not rest.
func (c selectEnd) nextSelectAtLocked(s *scheduler) time.Time {
	if c.lane.sweep != nil && c.lane.pass.waiting > 0 && c.step != moves {
		return c.nextRetryAt(s.settings, c.now.Add(s.settings.SleepTimeNoData))
	}
	if c.lane.sweep != nil || c.step == moves {
		return c.now
	}
	c.retryAt = passStep(c).retryTime()
	at := c.now.Add(s.settings.SleepTimeNoData)
	switch {
	case c.retryAt.IsZero():
		return at
	case c.capabilities.cursored:
		return c.retryAt
	}
	return c.nextRetryAt(s.settings, at)
}

// noteEmptyLocked records that the queues had nothing to execute. If items were in flight during the select, this is
// not certain: they may be selectable again. endsWithLocked records the end of a sweep.
func (c selectEnd) noteEmptyLocked(s *scheduler) {
	since, proven := passStep(c).proven()
	if len(c.inFlight) > 0 || c.lane.sweep != nil || !proven {
		return
	}
	for _, g := range c.grants {
		s.surviveLocked(c.lane, g)
		if g.emptySince.IsZero() {
			notify(s.signals.emptied)
		}
		g.emptySince = since
	}
}

func (c *selectCall) reset() {
	clear(c.inFlight)
	c.inFlight = c.inFlight[:0]
	c.dead = 0
	c.parts, c.found, c.retryAt, c.repeated, c.loaded = nil, nil, time.Time{}, false, false
	c.step, c.last, c.signature = stays, "", 0
	c.gaveUp, c.untested, c.more = nil, 0, false
}
