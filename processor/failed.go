package processor

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
)

// All methods of this file are called by the executor of a batch, before the batch is booked, so that its items are
// still in hand: nobody else has to do with them.

// update is what a failure makes of an item.
type update struct {
	held *held
	key  string
	entry
}

// blame finds out which items of a failed batch have failed, and keeps it.
func (p *Processor) blame(c *call) {
	n := c.to - c.from
	named := partial(c.err, n)
	if p.powers.cursored {
		named = nil
	}
	if c.failed = n; named != nil {
		c.failed = len(named)
	}
	if !p.powers.tracks() {
		c.trouble, c.wish = true, retryAfter(c.err)
		return
	}
	var err error
	if c.keys, err = c.items.keys(c.keys[:0], c.from, c.to); err != nil {
		p.complain(c, "find the keys of failed items", err)
		c.trouble = true
		return
	}
	switch {
	case named != nil:
		p.fail(c, named)
	case n == 1:
		p.fail(c, []failure{{0, c.err}})
	default:
		p.suspect(c)
	}
}

// suspect has the items of a batch executed in smaller ones, down to one by one: its error does not say which of them
// failed, and one that is broken must not cost the attempts of the others.
func (p *Processor) suspect(c *call) {
	wish := retryAfter(c.err)
	if c.lane.sweep != nil {
		wish = 0
	}
	until := c.now.Add(wish)
	c.hurry, c.until = wish == 0, until
	if p.powers.cursored {
		return
	}
	c.until = time.Time{}
	c.lane.books.Lock()
	defer c.lane.books.Unlock()
	for i, key := range c.keys {
		c.holder(i).book.suspect(key, smaller(len(c.keys)), until)
	}
	for _, h := range c.queues {
		h.book.tidy(c.now)
	}
}

// holder is the queue of the ith item of the batch.
func (c *call) holder(i int) *held {
	if c.of == nil {
		return c.queues[0]
	}
	return c.parts[c.of[c.from+i]].held
}

// fail counts an attempt of each item that failed. In a sweep there is no other.
func (p *Processor) fail(c *call, named []failure) {
	if c.lane.sweep != nil {
		p.pass(c, named)
		return
	}
	updates := make([]update, 0, len(named))
	for _, f := range named {
		u := p.attempt(c, f)
		if c.verdict != failed {
			return // Discard met the end of our ownership, so nothing is ours to record
		}
		updates = append(updates, u)
		if u.dead {
			c.dead++
		}
	}
	p.record(c, updates)
	if p.powers.cursored {
		c.until, c.hurry = updates[0].until, updates[0].dead
		if updates[0].dead {
			c.until = time.Time{}
		}
	}
}

// attempt says what becomes of an item that has failed once more.
func (p *Processor) attempt(c *call, f failure) update {
	u := update{held: c.holder(f.index), key: c.keys[f.index]}
	c.lane.books.Lock()
	u.entry = u.held.book.entries[u.key]
	c.lane.books.Unlock()
	if !u.owed {
		u.attempts++
	}
	u.group, u.cause = 0, f.err
	most := c.settings.ItemMaxAttempts
	if u.owed || isPermanent(f.err) || most > 0 && u.attempts >= most {
		u.dead = p.discard(c, f)
		u.owed = !u.dead
		u.attempts = max(u.attempts, most*btoi(u.owed)) // so that a successor discards it too
	}
	if u.dead {
		p.log(c).WithFields(logrus.Fields{"item": u.key, "attempts": u.attempts, "err": f.err}).Error("item is dead")
	}
	u.until = time.Now().Add(c.settings.retryIn(u.attempts, f.err))
	return u
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// discard gives an item up, and reports whether that succeeded.
func (p *Processor) discard(c *call, f failure) bool {
	if !p.powers.discards {
		return true
	}
	ctx := c.bound
	if d := c.settings.BatchTimeout; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	err := c.items.discard(ctx, c.from+f.index, f.err)
	if err == nil {
		return true
	}
	if p.complain(c, "discard item "+c.keys[f.index], err) == cancelled {
		c.verdict = cancelled
	}
	return false
}

// record keeps the failed items of the batch, in memory even if the store fails.
func (p *Processor) record(c *call, updates []update) {
	l := c.lane
	l.storing.enter()
	defer l.storing.leave()
	for _, h := range c.queues {
		p.recordOf(c, h, updates)
	}
}

func (p *Processor) recordOf(c *call, h *held, updates []update) {
	now, items := time.Now(), []FailedItem(nil)
	for _, u := range updates {
		if u.held == h {
			items = append(items, u.item(u.key, now))
		}
	}
	if len(items) == 0 {
		return
	}
	saved := p.save(c, h, items) == nil
	c.lane.books.Lock()
	defer c.lane.books.Unlock()
	for _, u := range updates {
		if u.held == h {
			u.stored, u.saved = true, saved
			h.book.put(u.key, u.entry)
		}
	}
}

// save writes to the store, if there is one.
func (p *Processor) save(c *call, h *held, items []FailedItem) error {
	if p.env.Items == nil {
		return nil
	}
	err := p.env.Items.Save(c.bound, h.queue, items)
	if err != nil {
		p.complain(c, "save failed items", err)
	}
	return err
}

// cure forgets the suspicions against a batch that has succeeded, or the failures of its single item.
func (p *Processor) cure(c *call) {
	var err error
	if c.keys, err = c.items.keys(c.keys[:0], c.from, c.to); err != nil {
		p.complain(c, "find the keys of items", err)
		return
	}
	c.lane.storing.enter()
	defer c.lane.storing.leave()
	if !c.forget() || p.env.Items == nil {
		return
	}
	if err := p.env.Items.Delete(c.bound, c.holder(0).queue, c.keys); err != nil {
		p.complain(c, "delete failed item "+c.keys[0], err)
	}
}

// forget takes the items of a batch out of the books, and reports whether the store has one, which then is the only.
func (c *call) forget() (stored bool) {
	c.lane.books.Lock()
	defer c.lane.books.Unlock()
	for i, key := range c.keys {
		b := &c.holder(i).book
		stored = stored || b.entries[key].stored
		b.remove(key)
	}
	return stored
}

// causeOf returns why an item is to be discarded, as if it had failed with that again.
func (p *Processor) causeOf(c *call) error {
	var err error
	if c.keys, err = c.items.keys(c.keys[:0], c.from, c.to); err != nil {
		return err
	}
	c.lane.books.Lock()
	defer c.lane.books.Unlock()
	e, ok := c.holder(0).book.entries[c.keys[0]]
	if !ok || !e.owed {
		return errWithdrawn
	}
	return e.cause
}
