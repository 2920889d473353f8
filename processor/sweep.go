package processor

import "fmt"

// SweepState is how far the sweep of a queue with a Run has come, under its present grant.
type SweepState struct {
	// Swept is set when a select has returned nothing to execute while nothing of the queue was in hand since it began
	// (R9). Items that have failed in this sweep are nothing to execute.
	Swept bool

	// Failed means that the sweep cannot go on: a select has failed, or a batch of a dealer that is neither Keyed nor
	// Cursored, or nothing but the same items comes up again and again. What is in hand then may still end, and count.
	Failed bool

	Err error // why the sweep has failed; before that, the first failure of an item; nil if there was none

	// Permanent means that all failures of the sweep were Permanent: another sweep would be in vain.
	Permanent bool

	ItemsDone   int64  // items executed successfully
	ItemsFailed int64  // items that have failed alone or by name, or in the batch that the sweep has failed with
	Cursor      string // of a Cursored dealer: where a sweep that follows may begin
}

// Ended reports whether the queue is not selected any more under this grant.
func (s SweepState) Ended() bool { return s.Swept || s.Failed }

// sweep is the way of a lane through its queue, under one grant. It is guarded by the processor's lock, but for the
// trail, which the lane's books guard.
type sweep struct {
	SweepState
	still int // how many selects in a row have found nothing new
	trail trail
}

// mostStill is how many selects in a row may find nothing new before the sweep fails.
const mostStill = 3

// sweepState is what Held says of it.
func (h *held) sweepState() SweepState {
	if h.lane.sweep == nil {
		return SweepState{}
	}
	s := h.lane.sweep.SweepState
	s.Cursor = h.queue.Cursor
	return s
}

// sweepEnds books a select of a sweep, and reports whether there will be no other: then what it found is dropped. It
// is called under the lock.
func (p *Processor) sweepEnds(c *call) bool {
	l := c.lane
	switch {
	case l.over(): // a batch has failed meanwhile
	case c.verdict == failed:
		p.giveUp(l, c.err)
	case c.verdict != done:
		return false
	case c.drained():
		l.sweep.Swept = true
		c.queues[0].empty = c.since
		notify(p.empties)
	case c.standsStill():
		p.giveUp(l, fmt.Errorf("select queue %s: no progress: %d selects in a row have returned only items that this sweep has executed or passed already",
			names(c.queues), mostStill))
	default:
		return false
	}
	if c.found != nil {
		p.skip(c.found.drop())
	}
	return true
}

// drained reports whether there is nothing left. Failed items still match the user's condition, but a page of them is
// the end only if there was room for others.
func (c *call) drained() bool {
	return len(c.inHand) == 0 && (c.found == nil || c.found.unstarted() == 0 && c.found.fetched < c.selection.Limit)
}

// standsStill counts the selects that find nothing new, and reports whether there were too many.
func (c *call) standsStill() bool {
	s := c.lane.sweep
	switch {
	case c.found == nil:
	case c.found.unstarted() > 0 && !c.repeated:
		s.still = 0
	case c.found.unstarted() > 0 || len(c.inHand) == 0:
		s.still++
	}
	return s.still >= mostStill
}

// tally counts what a batch of a sweep came to. It is called under the lock.
func (p *Processor) tally(c *call) {
	s, n := c.lane.sweep, int64(c.to-c.from)
	switch {
	case c.verdict == done:
		s.ItemsDone += n
	case c.verdict != failed, c.hurry: // it tells nothing of its items, or they are tried again in smaller batches
	default:
		s.ItemsFailed += int64(c.failed)
		if !c.trouble || !p.powers.cursored { // else its items are executed again, from the cursor on
			s.ItemsDone += n - int64(c.failed)
		}
		s.blame(c.err)
		if c.trouble {
			p.giveUp(c.lane, c.err)
		}
	}
}

// blame books a failure.
func (s *sweep) blame(err error) {
	s.Permanent = hopeless(err) && (s.Err == nil || s.Permanent)
	if s.Err == nil {
		s.Err = err
	}
}

// giveUp ends a sweep that cannot go on. It is called under the lock; the caller settles the lane.
func (p *Processor) giveUp(l *lane, err error) {
	if l.over() {
		return
	}
	l.sweep.blame(err)
	l.sweep.Failed, l.sweep.Err = true, err
	p.due.remove(l)
	if l.page != nil {
		p.skip(l.page.drop())
	}
	notify(p.empties)
}

// pass leaves the items of a sweep that failed alone or by name behind. A cursor passes none (X3): the sweep ends in front
// of it, and another begins there. It is called by the executor of the batch.
func (p *Processor) pass(c *call, named []failure) {
	if p.powers.cursored {
		c.trouble = true
		return
	}
	c.lane.books.Lock()
	defer c.lane.books.Unlock()
	for _, f := range named {
		c.queues[0].book.put(c.keys[f.index], entry{dead: true})
	}
}

// recognise finds out whether a page has only items that the sweep has been through already, or begins with one where a
// cursor says that there can be none.
func (p *Processor) recognise(c *call, g *page) (err error) {
	l := c.lane
	if l.sweep == nil || g.unstarted() == 0 {
		return nil
	}
	if g.sums, err = g.items.sums(); err != nil || g.sums == nil {
		return err
	}
	telling := g.sums
	if p.powers.cursored {
		telling = g.sums[:1]
	}
	l.books.Lock()
	defer l.books.Unlock()
	c.repeated = l.sweep.trail.covers(telling)
	l.sweep.trail.largest = max(l.sweep.trail.largest, g.fetched)
	return nil
}

// remember enters the batch in the trail of its sweep, if it has one.
func (c *call) remember() {
	if c.sums == nil {
		return
	}
	c.lane.books.Lock()
	defer c.lane.books.Unlock()
	c.lane.sweep.trail.add(c.sums[c.from:c.to])
}

// trail holds the fingerprints of the items that a sweep has been through of late: those of the page before at least,
// and no more than of twice the largest page.
type trail struct {
	young, old map[uint64]struct{}
	largest    int // of the pages
}

func (t *trail) add(sums []uint64) {
	if t.young == nil {
		t.young, t.old = map[uint64]struct{}{}, map[uint64]struct{}{}
	}
	for _, sum := range sums {
		t.young[sum] = struct{}{}
	}
	if len(t.young) >= t.largest {
		t.young, t.old = t.old, t.young
		clear(t.young)
	}
}

func (t *trail) covers(sums []uint64) bool {
	for _, sum := range sums {
		_, young := t.young[sum]
		if _, old := t.old[sum]; !young && !old {
			return false
		}
	}
	return true
}
