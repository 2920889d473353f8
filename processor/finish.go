package processor

import "time"

// All methods of this file are called under the lock.

// finish books what c ended with.
func (p *Processor) finish(c *call) {
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil
	}
	for _, h := range c.queues {
		h.running--
	}
	p.stats.count(c)
	if c.verdict == lost {
		p.lose(c)
	}
	if c.page == nil {
		p.finishSelect(c)
	} else {
		p.finishBatch(c)
	}
	if c.verdict == distrusted && c.wakes == p.wakes {
		p.asleep = true
		p.dropPending(c.now)
	}
	for _, h := range c.queues {
		if h.draining && h.running == 0 {
			notify(p.drained)
		}
	}
	c.reset()
}

// finishSelect makes the page pending, or puts the lane to rest.
func (p *Processor) finishSelect(c *call) {
	l := c.lane
	p.selects--
	l.selecting = false
	l.inVain = false
	p.finishCursor(c)
	if c.found != nil {
		p.stats.InHand += c.found.fetched
		p.skip(c.found.fetched - c.found.unstarted())
	}
	switch {
	case l.sweep != nil && p.sweepEnds(c):
	case c.found != nil && c.found.unstarted() > 0:
		p.turnIn(l, c)
	case c.verdict == failed || c.verdict == lost:
		p.restUntil(l, c.now.Add(l.pause(p.settings, retryAfter(c.err))))
	case c.verdict == done:
		l.recovered(p.settings)
		l.inVain = true
		p.emptied(c)
		p.restUntil(l, p.nextLook(c))
	default:
		p.restUntil(l, c.now)
	}
}

// turnIn makes the page of a select the one that batches are taken from.
func (p *Processor) turnIn(l *lane, c *call) {
	for _, h := range c.queues {
		h.empty = time.Time{}
	}
	l.page = c.found
	l.trouble = l.trouble || c.verdict == failed
	p.skip(l.page.dropDraining())
	if p.stopping {
		p.skip(l.page.drop())
	}
	if l.page.unstarted() > 0 {
		p.pend(l)
	}
	p.settle(l, c.now)
}

// nextLook says when a lane is selected again of which nothing could be executed: not before an item that a cursor
// waits for may be tried again, and not long after that if no cursor waits. A sweep does not rest.
func (p *Processor) nextLook(c *call) time.Time {
	if c.lane.sweep != nil {
		return c.now
	}
	at := c.now.Add(p.settings.SleepTimeNoData)
	if !c.earliest.IsZero() && (p.powers.cursored || c.earliest.Before(at)) {
		return c.earliest
	}
	return at
}

// emptied notes that the queues of a select had nothing to execute, unless something was in hand meanwhile, which
// may be selectable again.
func (p *Processor) emptied(c *call) {
	if len(c.inHand) > 0 || c.lane.sweep != nil { // whose end is not that of a select alone
		return
	}
	for _, h := range c.queues {
		if h.empty.IsZero() {
			notify(p.empties)
		}
		h.empty = c.since
	}
}

// finishBatch puts the lane to rest if that was what it waited for.
func (p *Processor) finishBatch(c *call) {
	l := c.lane
	l.running--
	p.stats.InHand -= c.to - c.from
	if p.powers.cursored {
		p.finishInOrder(c)
	}
	if l.sweep != nil {
		p.tally(c)
	}
	if c.trouble || c.verdict == lost {
		l.trouble, l.wish = true, max(l.wish, c.wish)
	}
	l.hurry = l.hurry || c.hurry
	if c.until.After(l.until) {
		l.until = c.until
	}
	if c.hurry && l.inVain { // in NOTSLEEP the lane may rest already
		l.inVain = false
		if l.place >= 0 {
			p.due.remove(l)
			p.restUntil(l, c.now)
		}
	}
	p.settle(l, c.now)
}

// lose stops all queues of a call that met the loss of one.
func (p *Processor) lose(c *call) {
	for _, h := range c.queues {
		if !h.draining {
			p.drain(h, c.now)
			h.lost = true
		}
	}
}
