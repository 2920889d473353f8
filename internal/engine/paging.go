package engine

import (
	"fmt"
	"time"
)

// pagingStage gives selects room for items that have failed, and makes those of a Paged dealer go on behind pages that
// are full of them (X2).
var pagingStage = stage{
	reset: func(l *lane) { l.paging.pass = pass{} },
	claim: func(c *selectCall, _ time.Time, _ *scheduler) { c.reach.before = c.lane.paging.met },
	prepare: func(c *selectCall) {
		l := c.lane
		c.selection.After = l.paging.pass.start(c.began, l.sampling.closes, l.sweep != nil || c.quota > 0)
		if c.since = l.paging.pass.began; !c.capabilities.Cursored {
			c.room = c.roomForParked()
		}
	},
	page: (*selectCall).findStep,
	finish: func(c *selectCall, _ *scheduler) {
		if c.outcome != done {
			return
		}
		l := c.lane
		l.paging.met = met{c.parked, c.reach.saturated}
		if c.capabilities.Paged {
			l.paging.pass.advance(c)
			c.unproven = !l.paging.pass.proves(c)
		}
		if c.since = l.paging.pass.began; l.sweep == nil {
			c.retryAt = l.paging.pass.retryTime(c.retryAt, c.now)
		}
		c.more = c.more || c.goesOn || c.reachesFurther()
	},
	end: func(b *batch, _ *scheduler) { b.lane.paging.parked += b.result.parked },
}

// paging is how far the selects of a lane reach behind items that have failed. Only the lane's select uses its pass;
// the scheduler's lock guards the rest.
type paging struct {
	pass    pass      // of a Paged dealer
	met               // what the last page has met
	alerted time.Time // when the alert about failed items was last sent; zero while nothing is to be alerted
}

// met says how many failed items a page has met.
type met struct {
	parked    int  // look.parked
	saturated bool // the page is full and holds nothing to execute
}

// reach is how far one select reaches, and what its page means for the next one.
type reach struct {
	before    met    // what the page before has met
	saturated bool   // met.saturated
	step      step   // what the select means for the pass of the lane, unless it goes on
	last      string // the position of the last item, if the select moves the pass
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

// step is what a select that does not go on behind its page means for the pass of its lane.
type step int

const (
	stays step = iota // the next select has the same position, or the pass has reached the end of the source
	skips             // the next select goes on behind the failed items at the head of the page
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
	p.worked = p.worked || len(c.inFlight) > 0 || unstarted > 0 || c.partial
	p.retryAt = earlier(p.retryAt, c.retryAt)
	p.parked += c.parked
	if c.goesOn {
		p.after, p.overhead = c.reach.last, p.overhead+c.took
		return
	}
	p.dropped = 0
	if c.found != nil {
		p.dropped = c.found.fetched - unstarted
	}
	if c.reach.step == skips {
		p.after, p.overhead, p.dropped = c.reach.last, p.overhead+c.took, p.dropped-c.head
	}
	p.arrived, p.ended, p.ignored = true, p.ended || c.ended, c.reach.step == stuck
}

// proves reports whether the selects since the pass began have found nothing to execute, if the last one has found
// nothing. A select that begins behind a page proves nothing alone.
func (p *pass) proves(c *selectCall) bool { return c.ended && (c.selection.After == "" || !p.worked) }

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

// roomForParked returns the number of items that the select may return although they have failed. The last page and its
// batches show how many there are, and on the way of a pass the pass before it; if the page had no other items, there
// may be many more. Beyond the bound, the select of a Paged dealer goes on behind its page. Another dealer may miss
// items, and an alert says so.
func (c *selectCall) roomForParked() int {
	l, most := c.lane, parkedRoom*c.settings.FetchNumber
	c.alertParked(most)
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
		min(2*c.parked, parkedRoom*c.settings.FetchNumber) > c.room
}

// findStep finds what the select means for the pass of its lane. It looks at the items as the dealer returned them. In
// an outage the next select always goes on behind the page, so that the samples are of different items.
func (c *selectCall) findStep(returned items, p *page) (err error) {
	c.reach.saturated = p.unstarted() == 0 && p.fetched >= c.selection.Limit
	switch {
	case !c.capabilities.Paged:
	case p.fetched < c.selection.Limit:
		c.ended = true
	case c.quota > 0 || c.untested < c.wanted:
		c.goesOn, err = c.movesBehind(returned, p.fetched)
	case !c.capabilities.Ordered && c.lane.sweep == nil && c.head >= c.wanted:
		var moves bool
		if moves, err = c.movesBehind(returned, c.head); moves {
			c.reach.step = skips
		}
	}
	return err
}

// movesBehind reports whether the pass can move behind the first n items that the dealer returned.
func (c *selectCall) movesBehind(returned items, n int) (moves bool, err error) {
	if c.reach.last, err = returned.place(n - 1); err == nil && c.reach.last == c.selection.After {
		c.reach.step = stuck
	}
	return err == nil && c.reach.step != stuck, err
}

// alertPause is the pause between two alerts about a lane while the reason lasts. The receiver decides how often it
// notifies operators.
const alertPause = time.Minute

// alertParked sends an alert if the selects may miss items behind failed ones, because more items have failed than the
// given bound. The select of a Paged dealer goes on behind them, so it misses none.
func (c *selectCall) alertParked(most int) {
	l, parked := &c.lane.paging, c.reach.before.parked
	switch {
	case parked <= most || c.capabilities.Paged && !l.pass.ignored:
		l.alerted = time.Time{}
	case c.now.Sub(l.alerted) >= alertPause:
		l.alerted = c.now
		text := fmt.Sprintf("at least %d items of queue %s have failed, back off or are dead: "+
			"selects return at most %d items and may miss others", parked, c.queueID(), c.wanted+most)
		if c.capabilities.Ordered {
			text += " (items that wait for one of their order key count too)"
		}
		if c.capabilities.Paged {
			text += ", because Select ignores Selection.After"
		}
		c.env.Alert(Alert{Kind: AlertParked, Queue: c.selection.Queue.ID, Text: text})
	}
}
