package processor

import "time"

// pass is the way of a lane's selects through the source of a Paged dealer. After a full page with few items to
// execute, the next select goes on behind that page (X2). The next pass begins at the start of the source again. Only
// the lane's select uses it.
//
// Items that fail, and new items, may lie before the position of the pass. They wait for the next pass. The passes over
// failed items take at most one part in passShare of the lane's time, so they neither delay the items behind them nor
// load the database in vain.
type pass struct {
	after   string        // the position behind which the selects go on; empty at the start of the source
	began   time.Time     // the time of the first select
	barren  time.Duration // the duration of the selects that found few items to execute
	arrived bool          // a select has found many items to execute, or the end of the source
	ended   bool          // a select has reached the end of the source
	worked  bool          // an item was found to execute, or one was in flight
	waiting int           // items of a sweep that wait for the end of an outage
	closes  uint32        // how often the breaker had closed when the pass began
	dropped int           // how many items of the last page are not executed now, if the pass has stayed there
	ignored bool          // a select has ignored the position
	retryAt time.Time     // when the first item that backs off may be retried; zero if none backs off
}

const (
	// passShare is the least ratio of the time between the starts of two passes to the barren time of the first.
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
	ends              // the select has reached the end of the source
	stuck             // the page ends where the page before it ended: the dealer ignores Selection.After
)

// passStep is what a select means for the pass of its lane.
type passStep struct{ *selectCall }

// startPass begins a new pass if it is due, and sets the position of the select.
func (c passStep) startPass() {
	p := &c.lane.pass
	due := p.arrived && !c.began.Before(p.againAt())
	if c.lane.sweep != nil || c.quota > 0 { // it has no retries, and new items belong to the next run; a sample goes round
		due = p.ended
	}
	if p.after == "" || due || p.closes != c.closes {
		*p = pass{began: c.began, ignored: p.ignored, closes: c.closes}
	}
	c.selection.After = p.after
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
func (p *pass) againAt() time.Time { return p.began.Add(passShare * p.barren) }

// findStep finds what the select means for the pass, from the items as the dealer returned them. The caller has
// filtered the page.
func (c passStep) findStep(list items, p *page) (err error) {
	if !c.capabilities.paged {
		return nil
	}
	switch {
	case p.fetched < c.selection.Limit:
		c.step = ends
		return nil
	case c.quota == 0 && c.untested >= c.wanted:
		return nil // a sample goes on behind each page
	}
	if c.last, err = list.position(p.fetched - 1); err != nil {
		p.drop()
		return err
	}
	c.step = moves
	if c.last == c.selection.After {
		c.step = stuck
	}
	return nil
}

// advanceLocked moves the pass of the lane after a select.
func (c passStep) advanceLocked() {
	if !c.capabilities.paged || c.outcome != done {
		return
	}
	p := &c.lane.pass
	if c.found == nil {
		c.step = ends
	}
	p.worked = p.worked || len(c.inFlight) > 0 || c.found != nil && c.found.unstarted() > 0
	if !c.retryAt.IsZero() && (p.retryAt.IsZero() || c.retryAt.Before(p.retryAt)) {
		p.retryAt = c.retryAt
	}
	switch c.step {
	case moves:
		p.after, p.barren = c.last, p.barren+c.took
	default:
		p.dropped = 0
		if c.found != nil {
			p.dropped = c.found.fetched - c.found.unstarted()
		}
		p.arrived, p.ended, p.ignored = true, p.ended || c.step == ends, c.step == stuck
	}
}

// proven reports whether the selects since the start of the source have found nothing to execute, and since when. A
// select that begins behind a page proves nothing alone.
func (c passStep) proven() (since time.Time, ok bool) {
	p := &c.lane.pass
	switch {
	case !c.capabilities.paged || c.selection.After == "" && c.step == ends:
		return c.began, true
	case c.step == ends && !p.worked:
		return p.began, true
	}
	return time.Time{}, false
}

// retryTime returns when the first item that backs off may be selected again; zero if none backs off. An item before
// the position of the pass waits for the next pass. After a pass that has found work, the next pass does not rest: it
// proves that nothing is left.
func (c passStep) retryTime() time.Time {
	p := &c.lane.pass
	switch {
	case p.after == "":
		return c.retryAt
	case !p.worked && (p.retryAt.IsZero() || p.retryAt.After(p.againAt())):
		return p.retryAt
	case p.againAt().Before(c.now):
		return c.now
	}
	return p.againAt()
}
