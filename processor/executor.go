package processor

import (
	"context"
	"time"
)

// call is what one executor has in hand: a select, or a batch. Each executor has one and uses it again and again,
// so that a batch allocates nothing. While the dealer runs only the first block is read by others.
type call struct {
	lane     *lane
	queues   []*held // all that it concerns
	cancel   context.CancelFunc
	since    time.Time
	page     *page // of a batch; nil in a select
	items    items
	from, to int

	ctx      context.Context // of the queue, or of cancel if there are several
	now      time.Time       // when the executor last looked at the clock
	wakes    uint64
	settings *Settings
	parts    []part  // of the select, or of the batch's page
	of       []int32 // that of the batch's page
	sums     []uint64
	how      mark
	request

	outcome
	buffers
}

// request is what a select has to know.
type request struct {
	selection Selection
	inHand    []span // what was in hand of the lane when the select began
	stale     bool   // the cursor is to be loaded
	alone     int    // as in held
	group     int
}

// outcome is what a call came to.
type outcome struct {
	verdict verdict
	err     error
	took    time.Duration // of the dealer
	found   *page         // by a select, if it returned anything

	earliest time.Time // when the first of the items may be tried that are waiting
	bound    context.Context
	cursor   string // a new one, if moved
	placed   bool   // cursor is that after the batch
	moved    bool
	repeated bool // a select of a sweep found only what the sweep has done already

	failed, dead int // items
	trouble      bool
	wish         time.Duration
	hurry        bool
	until        time.Time
	ended        func(Result)
}

// buffers are kept from call to call.
type buffers struct {
	keys []string
	seen map[string]struct{}
}

// reset makes c ready for the next call. What is only looked at if it was set before stays.
func (c *call) reset() {
	c.lane, c.page, c.items, c.parts, c.of, c.sums = nil, nil, nil, nil, nil, nil
	clear(c.inHand)
	c.inHand = c.inHand[:0]
	c.how = ordinary
	c.outcome = outcome{}
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

func (v verdict) String() string { return string(v.public()) }

func (v verdict) public() Verdict {
	return [...]Verdict{VerdictDone, VerdictFailed, VerdictLost, VerdictCancelled, "dropped", "not trusted"}[v]
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

// execute calls Execute, unless the batch is an item that is not to be executed any more.
func (p *Processor) execute(c *call) error {
	if err := p.bind(c); err != nil {
		return err
	}
	switch c.how {
	case owed:
		return p.causeOf(c)
	case passed:
		return p.recordDead(c)
	}
	ctx := p.wrapExecute(c.bound, c)
	if c.settings.BatchTimeout == 0 {
		return c.items.execute(ctx, c.from, c.to)
	}
	ctx, cancel := context.WithTimeout(ctx, c.settings.BatchTimeout)
	defer cancel()
	return c.items.execute(ctx, c.from, c.to)
}

// bind makes the context of the batch, unless it is that of the page.
func (p *Processor) bind(c *call) (err error) {
	c.bound = c.ctx
	switch {
	case p.powers.cursored:
		if c.cursor, err = c.items.cursor(c.to - 1); err != nil {
			return err
		}
		c.placed = true
		cursor := c.cursor
		c.bound = p.env.Bind(c.ctx, queuesOf(c.queues), &cursor)
	case len(c.queues) > 1:
		c.bound = p.env.Bind(c.ctx, queuesOf(c.queues), nil)
	}
	return nil
}

func queuesOf(held []*held) []Queue {
	queues := make([]Queue, len(held))
	for i, h := range held {
		queues[i] = h.queue
	}
	return queues
}
