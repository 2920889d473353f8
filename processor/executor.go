package processor

import (
	"context"
	"time"
)

// call is what one executor has in hand: a select, or a batch. Each executor has one and uses it again and again,
// so that a batch allocates nothing. While the dealer runs only cancel, queues and since are read by others.
type call struct {
	lane   *lane
	queues []*held // all that it concerns
	ctx    context.Context
	cancel context.CancelFunc // if ctx is not that of a single queue
	now    time.Time          // when the executor last looked at the clock
	since  time.Time
	wakes  uint64

	selection Selection // of a select
	parts     []part
	found     *page // its result, if there was anything

	page     *page // of a batch; nil in a select
	items    items
	from, to int

	verdict verdict
	err     error
}

// verdict is what a call came to.
type verdict int

const (
	done       verdict = iota
	failed             // an error or a panic
	lost               // an error that says that a queue was lost
	cancelled          // an error after our own cancellation, which tells nothing about the items
	dropped            // not started, because it was cancelled before
	distrusted         // not started, because Trusted said no
)

// started reports whether the dealer was called.
func (v verdict) started() bool { return v < dropped }

func (v verdict) String() string {
	return [...]string{"done", "failed", "queue lost", "cancelled", "dropped", "not trusted"}[v]
}

// executor runs one call after another until it is not needed any more.
func (p *Processor) executor(ctx context.Context, c *call) {
	defer p.leave(c)
	for p.next(ctx, c) {
		p.perform(c) //nolint:contextcheck // the call has its own: its queue may be revoked alone
	}
}

// next books the last call and claims another, under one hold of the lock. It waits until there is something to do,
// and returns false if the executor is not needed any more.
func (p *Processor) next(ctx context.Context, c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.lane != nil {
		p.finish(c)
	}
	for ctx.Err() == nil && len(p.executors) <= p.settings.ThreadNumber {
		if p.claim(ctx, c) {
			p.rouse(c.now)
			return true
		}
		p.waiting++
		p.rouse(c.now)
		p.work.Wait()
		p.waiting--
		c.now = time.Now()
	}
	delete(p.executors, c)
	return false
}

// leave books the call in which the dealer ended the goroutine, and has the executor replaced.
func (p *Processor) leave(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.lane == nil {
		return
	}
	p.finish(c)
	delete(p.executors, c)
	notify(p.changed)
}

// perform calls the dealer, unless it must not start.
func (p *Processor) perform(c *call) {
	switch {
	case !p.env.Trusted():
		c.verdict = distrusted
	case c.ctx.Err() != nil: // asked last: the call may have been revoked since it was claimed
		c.verdict = dropped
	default:
		defer p.judge(c)
		c.err = errExited // unless it returns
		if c.page == nil {
			c.found, c.err = p.fetch(c)
		} else {
			c.err = p.execute(c)
		}
	}
}

// fetch selects a page and makes it ready for being cut into batches. The page is nil if there is nothing.
func (p *Processor) fetch(c *call) (*page, error) {
	var owned []Queue
	if p.set != nil {
		owned = queuesOf(c.queues)
	}
	list, err := p.source.fetch(c.ctx, c.selection, owned)
	if err != nil || list.size() == 0 {
		return nil, err
	}
	g := &page{items: list, fetched: list.size(), parts: c.parts}
	if p.set != nil {
		err = g.sort()
	}
	g.bind(p.env.Bind)
	return g, err
}

func (p *Processor) execute(c *call) error {
	ctx := c.ctx
	if len(c.queues) > 1 {
		ctx = p.env.Bind(ctx, queuesOf(c.queues))
	}
	return c.items.execute(ctx, c.from, c.to)
}

func queuesOf(held []*held) []Queue {
	queues := make([]Queue, len(held))
	for i, h := range held {
		queues[i] = h.queue
	}
	return queues
}
