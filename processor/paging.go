package processor

import "time"

// paging is how far the selects of a lane reach behind items that have failed (X2). Only the lane's select uses its
// pass; the scheduler's lock guards the rest.
type paging struct {
	pass pass // of a Paged dealer
	met       // what the last page has met
}

// met says how many failed items a page has met.
type met struct {
	parked    int  // items that have failed, or that follow such an item of their order key
	saturated bool // the page is full and holds nothing to execute
}

// reach is how far one select reaches, and what its page means for the next one.
type reach struct {
	before met // what the page before has met
	wanted int // how many items to execute the select asks for; Limit also counts items that are not executed
	room   int // for how many failed items Limit allows

	met
	head int    // how many items at the head of the page wait, because they have failed
	step step   // what the select means for the pass of the lane
	last string // the position of the last item, if the select moves the pass
}

// pass is the way of a lane's selects through the source of a Paged dealer. After a full page with few items to
// execute, the next select goes on behind that page (X2). The next pass begins at the start of the source again. Only
// the lane's select uses it.
type pass struct {
	after    string        // the position behind which the selects go on; empty at the start of the source
	began    time.Time     // when the first select of the pass began; for another dealer, when its last select began
	overhead time.Duration // the duration of the selects that found few items to execute
	arrived  bool          // a select has found many items to execute, or the end of the source
	ended    bool          // a select has reached the end of the source
	worked   bool          // an item was found to execute, one was in flight, or a key was left out once
	waiting  int           // items of a sweep that wait for the end of an outage
	closes   uint32        // how often the breaker had closed when the pass began
	dropped  int           // how many items of the last page are not executed now, if the pass has stayed there
	ignored  bool          // a select has ignored the position
	parked   int           // how many failed items the pass has found
	before   int           // how many the pass before it had found
	retryAt  time.Time     // when the first item that backs off may be retried; zero if none backs off
}

const (
	// passShare is the least ratio of the time between the starts of two passes to the overhead time of the first. If the
	// selects over 50,000 dead items took a second, the next pass over them begins 20 s after the first one.
	passShare = 20

	// parkedRoom is how many failed items a select may return beside the items to execute, in multiples of
	// fetch_number. It bounds the memory of a page.
	parkedRoom = 9
)

// step is what a select means for the pass of its lane.
type step int

const (
	stays step = iota // the next select has the same position
	moves             // the next select goes on behind the page
	skips             // the next select goes on behind the failed items at the head of the page
	ends              // the select has reached the end of the source
	stuck             // the page ends where the page before it ended: the dealer ignores Selection.After
)

// start begins a new pass if it is due at the begin of a select, and returns the position of the select. closes is how
// often the breaker had closed then: after an outage the next pass is due at once. whole says that a pass goes to the
// end of the source. This holds for a sweep, which has no retries and leaves new items to the next run, and for the
// samples of an outage, which go round the source.
func (p *pass) start(began time.Time, closes uint32, whole bool) (after string) {
	due := p.arrived && !began.Before(p.againAt())
	if whole {
		due = p.ended
	}
	if p.after == "" || due || p.closes != closes {
		*p = pass{began: began, ignored: p.ignored, closes: closes, before: p.parked}
	}
	return p.after
}

// room returns how many failed items the next select may return, at most the given number. Where a page has shown how
// many there are, twice that number is enough, which keeps pages small.
func (p *pass) room(most int) int {
	if p.after != "" && p.arrived {
		return min(most, 2*p.dropped)
	}
	return most
}

// againAt returns the earliest time of the next pass.
func (p *pass) againAt() time.Time { return p.began.Add(passShare * p.overhead) }

// advance moves the pass after a select that has succeeded.
func (p *pass) advance(c *selectCall) {
	unstarted := c.found.unstarted()
	p.worked = p.worked || len(c.inFlight) > 0 || unstarted > 0 || c.order.leavesOutOnce()
	p.retryAt = earlier(p.retryAt, c.retryAt)
	p.parked += c.reach.parked
	if c.reach.step == moves {
		p.after, p.overhead = c.reach.last, p.overhead+c.took
		return
	}
	p.dropped = 0
	if c.found != nil {
		p.dropped = c.found.fetched - unstarted
	}
	if c.reach.step == skips {
		p.after, p.overhead, p.dropped = c.reach.last, p.overhead+c.took, p.dropped-c.reach.head
	}
	p.arrived, p.ended, p.ignored = true, p.ended || c.reach.step == ends, c.reach.step == stuck
}

// proves reports whether the selects since the pass began have found nothing to execute, if the last one, behind the
// position after, has found nothing. A select that begins behind a page proves nothing alone.
func (p *pass) proves(s step, after string) bool { return s == ends && (after == "" || !p.worked) }

// retryTime returns when the first item that backs off may be selected again; zero if none backs off. retryAt is the
// time of the last page. An item before the position of the pass waits for the next pass. After a pass that has found
// work, the next pass does not rest: it proves that nothing is left.
func (p *pass) retryTime(retryAt, now time.Time) time.Time {
	switch {
	case p.after == "":
		return retryAt
	case !p.worked && (p.retryAt.IsZero() || p.retryAt.After(p.againAt())):
		return p.retryAt
	case p.againAt().Before(now):
		return now
	}
	return p.againAt()
}

// limit returns the number of items to ask for, from the size of the page. Items that back off, are dead or have failed
// in the sweep still match the user's condition. The limit grows by their number, so that they do not starve other
// items (X2). It also grows by the number of items in flight. Where the select of an outage's sample cannot go on
// behind a page, the sample reaches further with each round, as far as a select reaches behind failed items.
func (c *selectCall) limit() int {
	c.reach.wanted = c.selection.Limit
	switch {
	case c.capabilities.Cursored: // the cursor has passed them
		return c.reach.wanted
	case c.quota > 0 && c.capabilities.Paged:
		c.reach.wanted = c.settings.FetchNumber
	case c.quota > 0 && c.capabilities.Keyed:
		c.reach.wanted = min(c.quota, 1+parkedRoom) * c.settings.FetchNumber
	}
	c.reach.room = c.roomForParked()
	limit := c.reach.wanted + c.reach.room
	for _, s := range c.inFlight {
		limit += s.size()
	}
	return limit
}

// roomForParked returns the number of items that the select may return although they have failed. The last page and its
// batches show how many there are, and on the way of a pass the pass before it; if the page had no other items, there
// may be many more. Beyond the bound, the select of a Paged dealer goes on behind its page. Another dealer may miss
// items, and an alert says so.
func (c *selectCall) roomForParked() int {
	l, most := c.lane, parkedRoom*c.settings.FetchNumber
	l.watch.alertParked(c, c.reach.before.parked, most)
	parked := max(c.reach.before.parked, l.paging.pass.before-l.paging.pass.parked)
	if c.reach.before.saturated {
		parked = max(parked, 2*c.reach.before.parked)
	}
	return l.paging.pass.room(min(parked, most))
}

// reachesFurther reports whether the next select has room for more failed items than this one, whose page had no
// others.
func (c *selectCall) reachesFurther() bool {
	return c.reach.saturated && !c.capabilities.Cursored && !c.capabilities.Paged &&
		min(2*c.reach.parked, parkedRoom*c.settings.FetchNumber) > c.reach.room
}

// findStep finds what the select means for the pass of its lane. It looks at the items as the dealer returned them. In
// an outage the next select always goes on behind the page, so that the samples are of different items.
func (c *selectCall) findStep(returned items, p *page) (err error) {
	switch {
	case !c.capabilities.Paged:
	case p.fetched < c.selection.Limit:
		c.reach.step = ends
	case c.quota > 0 || c.untested < c.reach.wanted:
		if err = c.goOn(moves, returned, p.fetched); err != nil || c.reach.step == stuck {
			return err
		}
		if c.order != nil {
			c.leaveKeysBehind()
		}
	case c.order == nil && c.lane.sweep == nil && c.reach.head >= c.reach.wanted:
		return c.goOn(skips, returned, c.reach.head)
	}
	return nil
}

// goOn makes the next select go on behind the first n items that the dealer returned.
func (c *selectCall) goOn(how step, returned items, n int) (err error) {
	if c.reach.last, err = returned.place(n - 1); err != nil {
		return err
	}
	if c.reach.step = how; c.reach.last == c.selection.After {
		c.reach.step = stuck
	}
	return nil
}
