package processor

import (
	"context"
	"fmt"
	"time"
)

// fetch selects a page and makes it ready for being cut into batches. The page is nil if the dealer returned nothing.
func (p *Processor) fetch(c *call) (*page, error) {
	if err := p.prepare(c); err != nil {
		return nil, err
	}
	if err := c.ctx.Err(); err != nil { // revoked meanwhile
		return nil, err
	}
	list, err := p.ask(c)
	if err != nil || list.size() == 0 {
		return nil, err
	}
	g := &page{items: list, fetched: list.size(), parts: c.parts}
	if p.set != nil {
		err = g.sort()
	}
	if siftErr := p.sift(c, g); siftErr != nil {
		g.drop()
		return g, siftErr
	}
	if recogniseErr := p.recognise(c, g); recogniseErr != nil {
		g.drop()
		return g, recogniseErr
	}
	if !p.powers.cursored { // whose batches have a context each
		g.bind(p.env.Bind)
	}
	return g, err
}

// prepare loads what the select depends on, and sets its limit.
func (p *Processor) prepare(c *call) error {
	for _, h := range c.queues {
		if err := p.loadBook(c, h); err != nil {
			return fmt.Errorf("load failed items: %w", err)
		}
	}
	if c.stale {
		if err := p.loadCursor(c); err != nil {
			return fmt.Errorf("load cursor: %w", err)
		}
	}
	c.selection.Limit = p.limit(c)
	return nil
}

// loadBook reads the failed items of a queue, once under each grant and after each Reload. A sweep has only its own.
func (p *Processor) loadBook(c *call, h *held) error {
	wanted := p.reloads.Load() + 1
	if p.env.Items == nil || !p.powers.tracks() || c.lane.sweep != nil || h.loaded == wanted {
		return nil
	}
	l := c.lane
	l.storing.enterAlone()
	defer l.storing.leaveAlone()
	list, err := p.env.Items.Load(c.ctx, h.queue)
	if err != nil {
		return err
	}
	l.books.Lock()
	defer l.books.Unlock()
	h.book.replace(list, time.Now(), func(f FailedItem) bool {
		most := c.settings.ItemMaxAttempts
		return p.powers.discards && !f.Dead && most > 0 && f.Attempts >= most
	})
	h.loaded = wanted
	return nil
}

// limit is how many items are asked for. Those that back off, are dead or have failed in the sweep still match the user's condition, so they
// are added, lest they starve the others (X2); those in hand too.
func (p *Processor) limit(c *call) int {
	limit, most := c.settings.FetchNumber, 10*c.settings.FetchNumber
	if p.powers.cursored { // it has passed them
		return limit
	}
	parked := int64(0)
	for _, h := range c.queues {
		parked += h.book.parked.Load()
	}
	full := parked > int64(most-limit)
	if full && !c.lane.alerted {
		p.alertParked(c, parked)
	}
	c.lane.alerted = full
	limit = min(limit+int(parked), most)
	for _, s := range c.inHand {
		limit += s.to - s.from
	}
	return limit
}

func (p *Processor) alertParked(c *call, parked int64) {
	p.env.Alert(Alert{
		Kind: AlertParked, Queue: c.selection.Queue.ID,
		Text: fmt.Sprintf("%d items of queue %s have failed, back off or are dead: selects, of at most %d items, may miss others",
			parked, names(c.queues), 10*c.settings.FetchNumber),
	})
}

// ask calls the dealer.
func (p *Processor) ask(c *call) (list items, err error) {
	ctx, ended := p.wrapSelect(c.ctx, c.selection)
	if ended != nil {
		err = errExited
		defer func() { ended(sizeOf(list), err) }()
	}
	if c.settings.BatchTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.settings.BatchTimeout)
		defer cancel()
	}
	var owned []Queue
	if p.set != nil {
		owned = queuesOf(c.queues)
	}
	list, err = p.source.fetch(ctx, c.selection, owned)
	if err == nil && list.size() == 0 && c.selection.Run != nil {
		err = context.Cause(ctx) // a select that was cut short does not say that the queue is swept
	}
	return list, err
}

func sizeOf(list items) int {
	if list == nil {
		return 0
	}
	return list.size()
}
