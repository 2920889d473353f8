package processor

import (
	"errors"
	"fmt"
)

// errWithdrawn ends a batch whose item is not in the book any more, since an operator changed its record.
var errWithdrawn = errors.New("the record of the failed item has changed")

// loadCursor finds out where the cursor is, after a batch of which we do not know what it has committed.
func (p *Processor) loadCursor(c *call) error {
	c.cursor = c.selection.Queue.Cursor
	if p.env.Cursors != nil {
		cursor, err := p.env.Cursors.Load(c.ctx, c.selection.Queue)
		if err != nil {
			return err
		}
		c.cursor = cursor
	}
	if c.cursor != c.selection.Queue.Cursor {
		c.alone = 0 // the batch is done after all
	}
	c.selection.Queue.Cursor, c.moved = c.cursor, true
	return nil
}

// advance moves the cursor behind a batch that is done. If that fails the batch has failed, but not its items.
func (p *Processor) advance(c *call) {
	if p.env.Cursors != nil {
		if err := p.env.Cursors.Save(c.bound, c.queues[0].queue, c.cursor); err != nil {
			c.err = fmt.Errorf("save cursor: %w", err)
			c.verdict = p.verdict(c, c.err)
			c.trouble, c.failed = true, c.to-c.from
			p.tell(c)
			return
		}
	}
	c.moved = true
}

// askCursor finds out whether a batch of a sweep that has failed is done after all: if the cursor is behind it, its
// commit has happened, and only the reply is missing. It is asked at once, since what fails alone ends the sweep. A
// batch of items that are all at one place with those before them cannot be told from these: it has failed.
func (p *Processor) askCursor(c *call) {
	if p.env.Cursors == nil || !c.placed || c.cursor == c.queues[0].queue.Cursor {
		return
	}
	cursor, err := p.env.Cursors.Load(c.ctx, c.queues[0].queue)
	switch {
	case err != nil: // the sweep ends, and another begins where the cursor is
		c.trouble = true
		p.complain(c, "load cursor", err)
	case cursor == c.cursor:
		p.log(c).Info("the batch is done after all")
		c.verdict, c.err = done, nil
	}
}

// recordDead sees to it that a dead item is in the store before the cursor passes it for ever.
func (p *Processor) recordDead(c *call) (err error) {
	if c.keys, err = c.items.keys(c.keys[:0], c.from, c.to); err != nil {
		return err
	}
	l, h, key := c.lane, c.queues[0], c.keys[0]
	l.storing.enter()
	defer l.storing.leave()
	l.books.Lock()
	e, ok := h.book.entries[key]
	l.books.Unlock()
	switch {
	case !ok || !e.dead:
		return errWithdrawn
	case e.saved:
		return nil
	}
	if err := p.save(c, h, []FailedItem{e.item(key, c.now)}); err != nil {
		return err
	}
	e.saved = true
	l.books.Lock()
	defer l.books.Unlock()
	h.book.put(key, e)
	return nil
}

// finishCursor takes over the cursor that the call has moved or loaded. It is called under the lock.
func (p *Processor) finishCursor(c *call) {
	if c.moved {
		h := c.queues[0]
		h.queue.Cursor, h.stale, h.alone = c.cursor, false, c.alone
	}
}

// finishInOrder lets the lane of a cursored batch go on after a success. After anything else the rest of the page is
// selected again, behind the cursor as it is then: no item may be executed before those in front of it are done (X3).
// It is called under the lock.
func (p *Processor) finishInOrder(c *call) {
	h, g, n := c.queues[0], c.page, c.to-c.from
	if c.verdict == done && c.moved {
		p.goOn(c)
		return
	}
	p.skip(g.drop())
	h.stale = c.verdict != failed || c.lane.sweep == nil // else askCursor has just asked
	if c.verdict == failed && n > 1 && !c.trouble {
		h.alone, h.group = n, smaller(n)
	}
}

// goOn moves the cursor behind a batch, and lets the rest of its page follow.
func (p *Processor) goOn(c *call) {
	h, g := c.queues[0], c.page
	h.queue.Cursor, h.alone = c.cursor, max(0, h.alone-(c.to-c.from))
	if p.asleep || p.stopping {
		p.skip(g.drop())
	}
	if g.unstarted() > 0 {
		p.pend(c.lane)
	}
}
