package processor

import (
	"context"
	"slices"
	"time"
)

// All methods of this file are called under the lock.

// claim gives c the select of the first lane that is due, or else the next batch. So no page, however large or slow,
// keeps the other lanes from being selected. There must be room for another page: there is for one per executor, those
// included that are being selected. That bounds memory, and while a page is pending it leaves an executor to batches,
// however many lanes without items are due.
func (p *Processor) claim(ctx context.Context, c *call) bool {
	if p.asleep {
		return false
	}
	c.settings = p.settings
	if l := p.dueLane(c.now); l != nil {
		p.claimSelect(ctx, c, l)
		return true
	}
	return p.claimBatch(ctx, c)
}

// dueLane returns the lane that is to be selected now, nil for none.
func (p *Processor) dueLane(now time.Time) *lane {
	if l := p.due.first(); l != nil && !l.at.After(now) && p.room() {
		return l
	}
	return nil
}

// room reports whether a select may begin, though its page adds to those that are pending.
func (p *Processor) room() bool { return len(p.pending)+p.selects < p.settings.ThreadNumber }

// claimBatch takes a batch of the lane whose turn it is, unless there is none or the rate forbids it for now.
func (p *Processor) claimBatch(ctx context.Context, c *call) bool {
	if len(p.pending) == 0 {
		return false
	}
	p.turn %= len(p.pending)
	l := p.pending[p.turn]
	g := l.page
	to, how := g.peek(c.settings.ExecuteNumber)
	if !p.pace(c.now, to-g.next, how) {
		return false
	}
	p.turn++
	l.running++
	c.lane, c.page, c.items, c.of, c.parts, c.sums = l, g, g.items, g.of, g.parts, g.sums
	c.from, c.to, c.how = g.cut(to), to, how
	c.queues, c.ctx = g.queues(c.queues[:0], c.from, c.to)
	if len(c.queues) > 1 {
		c.ctx, c.cancel = context.WithCancel(ctx)
	}
	switch {
	case g.unstarted() == 0:
		p.settle(l, c.now)
	case p.powers.cursored:
		p.unpend(l) // one batch after the other (X3)
	}
	p.book(c)
	return true
}

// claimSelect takes the select of l.
func (p *Processor) claimSelect(ctx context.Context, c *call, l *lane) {
	p.due.remove(l)
	p.selects++
	l.selecting = true
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
		Total: c.queues[0].total,
	}
	if p.set == nil {
		h := c.queues[0]
		c.selection.Queue, c.selection.Run, c.ctx = h.queue, h.queue.Run, c.parts[0].ctx
		c.stale, c.alone, c.group = h.stale, h.alone, h.group
	} else {
		c.ctx, c.cancel = context.WithCancel(ctx)
	}
	p.lookInHand(c, l)
	p.book(c)
}

// lookInHand keeps what is in hand of l at the moment when its select begins. All that can be in hand of it at any
// moment of that select is among it, because nothing else gets in hand but by the select itself (X1).
func (p *Processor) lookInHand(c *call, l *lane) {
	if l.running == 0 {
		return
	}
	for other := range p.executors {
		if other.lane == l && other.page != nil {
			c.inHand = append(c.inHand, span{other.items, other.from, other.to})
		}
	}
}

// book counts c in hand.
func (p *Processor) book(c *call) {
	for _, h := range c.queues {
		h.running++
	}
	c.since, c.wakes = c.now, p.wakes
}

// settle takes a lane from the pending ones if its page has nothing unstarted, and lets it rest if it is idle.
func (p *Processor) settle(l *lane, now time.Time) {
	if l.page != nil && l.page.unstarted() == 0 {
		p.unpend(l)
		l.page = nil
	}
	if l.place >= 0 || !l.idle(p.settings.NotSleep) {
		return
	}
	// In NOTSLEEP a lane that drains may come here several times; the longest rest counts.
	if at := l.rest(p.settings, now); at.After(l.at) {
		l.at = at
	}
	p.enqueue(l)
}

// pend makes l one of the lanes that batches are taken from.
func (p *Processor) pend(l *lane) { p.pending = append(p.pending, l) }

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

// restUntil makes a lane that was selected in vain rest.
func (p *Processor) restUntil(l *lane, until time.Time) {
	l.at = until
	p.enqueue(l)
}

// enqueue puts a lane among those that wait to be selected, if it may be.
func (p *Processor) enqueue(l *lane) {
	if l.place < 0 && l.idle(p.settings.NotSleep) && l.live() {
		p.due.add(l)
	}
}

// skip counts n items that are dropped without having been started.
func (p *Processor) skip(n int) {
	p.stats.InHand -= n
	p.stats.SkipCount += int64(n)
}

// dropPending drops all unstarted items. Those of a cursored lane that is executing are dropped when it comes back.
func (p *Processor) dropPending(now time.Time) {
	for len(p.pending) > 0 {
		l := p.pending[0]
		p.skip(l.page.drop())
		p.settle(l, now)
	}
}

// rouse sees to it that no executor waits while there is work: each that claims something rouses the next, and the
// timer wakes one when the first lane is due, or the rate allows the next batch.
func (p *Processor) rouse(now time.Time) {
	if p.waiting == 0 || p.asleep {
		return
	}
	var next time.Time
	if l := p.due.first(); l != nil && p.room() {
		next = l.at
	}
	if len(p.pending) > 0 {
		if !p.pacedUntil.After(now) {
			p.work.Signal()
			return
		}
		if next.IsZero() || p.pacedUntil.Before(next) {
			next = p.pacedUntil
		}
	}
	if !next.IsZero() {
		p.timer.Reset(max(0, next.Sub(now)))
	}
}
