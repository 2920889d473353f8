package processor

import (
	"context"
	"slices"
	"time"
)

// All methods of this file are called under the lock.

// claim gives c the next batch, or else the select of the first lane that is due. Batches go first, so that no more
// pages are in memory than there are executors.
func (p *Processor) claim(ctx context.Context, c *call) bool {
	if p.asleep {
		return false
	}
	if len(p.pending) > 0 {
		p.claimBatch(ctx, c)
		return true
	}
	if l := p.due.first(); l != nil && !l.at.After(c.now) {
		p.claimSelect(ctx, c, l)
		return true
	}
	return false
}

// claimBatch takes a batch of the lane whose turn it is.
func (p *Processor) claimBatch(ctx context.Context, c *call) {
	p.turn %= len(p.pending)
	l := p.pending[p.turn]
	g := l.page
	c.lane, c.page, c.items = l, g, g.items
	c.from, c.to = g.cut(p.settings.ExecuteNumber)
	c.queues, c.ctx = g.queues(c.queues[:0], c.from, c.to)
	if len(c.queues) > 1 {
		c.ctx, c.cancel = context.WithCancel(ctx)
	}
	p.turn++
	if g.unstarted() == 0 {
		p.unpend(l)
	}
	p.book(c)
}

// claimSelect takes the select of l.
func (p *Processor) claimSelect(ctx context.Context, c *call, l *lane) {
	p.due.remove(l)
	l.phase = selecting
	c.lane = l
	c.queues = c.queues[:0]
	for _, h := range l.queues {
		if !h.draining {
			c.queues = append(c.queues, h)
		}
	}
	c.parts = make([]part, len(c.queues))
	for i, h := range c.queues {
		c.parts[i] = part{held: h, ctx: h.context(ctx)}
	}
	c.selection = Selection{
		TaskType: p.env.TaskType, OwnSign: p.env.OwnSign, Parameter: p.settings.Parameter,
		Total: c.queues[0].total, Limit: p.settings.FetchNumber,
	}
	if p.set == nil {
		c.selection.Queue, c.ctx = c.queues[0].queue, c.parts[0].ctx
	} else {
		c.ctx, c.cancel = context.WithCancel(ctx)
	}
	p.book(c)
}

// book counts c in hand.
func (p *Processor) book(c *call) {
	for _, h := range c.queues {
		h.running++
	}
	c.since, c.wakes = c.now, p.wakes
}

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
	c.lane, c.page, c.items, c.parts, c.found = nil, nil, nil, nil, nil
}

// finishSelect makes the page pending, or puts the lane to rest.
func (p *Processor) finishSelect(c *call) {
	l := c.lane
	switch {
	case c.found != nil:
		l.phase, l.page = executing, c.found
		p.stats.InHand += l.page.fetched
		p.skip(l.page.fetched - l.page.unstarted())
		p.skip(l.page.dropDraining())
		if p.stopping {
			p.skip(l.page.drop())
		}
		if l.page.unstarted() > 0 {
			p.pending = append(p.pending, l)
		}
		p.settle(l, c.now)
	case c.verdict == failed || c.verdict == lost:
		p.rest(l, c.now.Add(l.pause(p.settings)))
	case c.verdict == done:
		l.recovered(p.settings)
		p.rest(l, c.now.Add(p.settings.SleepTimeNoData))
	default:
		p.rest(l, c.now)
	}
}

// finishBatch puts the lane to rest if that was the last of its page.
func (p *Processor) finishBatch(c *call) {
	c.page.running--
	c.page.trouble = c.page.trouble || c.verdict == failed || c.verdict == lost
	p.stats.InHand -= c.to - c.from
	p.settle(c.lane, c.now)
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

// settle takes a lane from the pending ones if its page has nothing unstarted, and lets it rest if its page is
// finished.
func (p *Processor) settle(l *lane, now time.Time) {
	g := l.page
	if g.unstarted() > 0 {
		return
	}
	p.unpend(l)
	switch {
	case g.running > 0:
	case g.trouble:
		p.rest(l, now.Add(l.pause(p.settings)))
	default:
		l.recovered(p.settings)
		p.rest(l, now.Add(p.settings.SleepTimeInterval))
	}
}

func (p *Processor) unpend(l *lane) {
	i := slices.Index(p.pending, l)
	if i < 0 {
		return
	}
	p.pending = slices.Delete(p.pending, i, i+1)
	if i < p.turn {
		p.turn--
	}
}

// rest makes a lane idle that has nothing in hand, which is when SLEEP allows the next select.
func (p *Processor) rest(l *lane, until time.Time) {
	l.phase, l.page, l.at = idle, nil, until
	p.enqueue(l)
}

// enqueue puts a lane that may be selected among the idle ones.
func (p *Processor) enqueue(l *lane) {
	if l.phase == idle && l.place < 0 && l.live() {
		p.due.add(l)
	}
}

// skip counts n items that are dropped without having been started.
func (p *Processor) skip(n int) {
	p.stats.InHand -= n
	p.stats.SkipCount += int64(n)
}

// dropPending drops all unstarted items.
func (p *Processor) dropPending(now time.Time) {
	for len(p.pending) > 0 {
		l := p.pending[0]
		p.skip(l.page.drop())
		p.settle(l, now)
	}
}

// rouse sees to it that no executor waits while there is work: each that claims something rouses the next, and the
// timer wakes one when the first lane is due.
func (p *Processor) rouse(now time.Time) {
	if p.waiting == 0 || p.asleep {
		return
	}
	if len(p.pending) > 0 {
		p.work.Signal()
		return
	}
	if l := p.due.first(); l != nil {
		p.timer.Reset(max(0, l.at.Sub(now)))
	}
}
