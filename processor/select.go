package processor

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// selectCall is one select of a lane. The methods in this file are its steps, in order.
type selectCall struct {
	call
	selection Selection
	inFlight  []span      // the batches of the lane that were in flight when the select began
	order     *keyOrder   // of an Ordered dealer; else nil
	cursor    cursorState // the grant's when the select began
	loaded    bool        // selection.Queue.Cursor was loaded from the store
	wanted    int         // how many items to execute the select asks for; Limit also counts items that are not executed
	room      int         // for how many failed items Limit allows

	parkedBefore int  // lane.parked when the select was claimed
	fullBefore   bool // lane.saturated then

	found        *page           // nil if the dealer returned nothing
	suspect      bool            // the last select of the lane has failed
	outside      bool            // the queue was not entered
	keysInFlight map[string]bool // the keys of inFlight; a buffer, reused by the next select
	untested     int             // items of the page that have not failed alone, if the failed items are known
	more         bool            // the page has items that this outage has not tried, beside those that it tries now
	retryAt      time.Time       // when the first item that backs off may be retried; zero if none backs off
	heldOnce     bool            // an order key was left out, so that others have a turn
	dead         int             // items that were found dead because they have ended their process
	parked       int             // items of the page that have failed, or that follow such an item of their order key
	saturated    bool            // the page is full and holds nothing to execute
	head         int             // how many items at the head of the page wait, because they have failed

	step      step   // what the select means for the pass of the lane
	last      string // the position of the last item, if the select moves the pass
	signature uint64 // of the page; 0 if it is not compared with others

	// Of a sweep:
	repeated bool        // the page holds only items that the sweep has been through
	givesUp  bool        // it passes the items that wait for the end of an outage
	gaveUp   []SweptItem // these items
}

// claimLocked takes the select of a due lane, and notes the batches of the lane that are in flight (X1).
func (c *selectCall) claimLocked(ctx context.Context, s *scheduler, l *lane, now time.Time) {
	s.due.remove(l)
	s.selects++
	l.selecting, l.closes = true, s.outage.closes
	l.times.selected(now)
	c.suspect = l.rest.failures > 0
	if l.isolated {
		s.turn = l
	}
	c.lane, c.grant = l, l.grant
	c.selection = s.selectionLocked(c.grant)
	c.selection.Limit = s.pageSizeLocked(l, now)
	c.cursor, c.ctx = c.grant.cursor, c.grant.contextLocked(ctx)
	c.parkedBefore, c.fullBefore = l.parked, l.saturated
	c.order = l.newKeyOrderLocked(c.capabilities)
	if l.sweep != nil {
		_, c.givesUp = s.sweepsWaitLocked(now)
	}
	if s.outage.open() {
		c.quota = s.outage.sample.claim(now)
	}
	if l.batches == 0 {
		return
	}
	for e := range s.executors {
		if e.call == &e.batch.call && e.batch.lane == l {
			c.inFlight = append(c.inFlight, e.batch.span)
		}
	}
}

// perform selects a page and prepares it for batches.
func (c *selectCall) perform() error {
	if err := c.prepare(); err != nil {
		return err
	}
	if err := c.ctx.Err(); err != nil { // revoked while it was prepared
		return err
	}
	list, err := c.selectItems()
	if err != nil {
		return err
	}
	n := list.size()
	if n == 0 {
		c.step = ends
		return nil
	}
	page := newPage(c.ctx, list, n)
	err = c.preparePage(list, page)
	if err == nil {
		err = c.findStep(list, page)
	}
	if err != nil {
		page.drop()
	}
	c.found = page // not earlier: a Goexit in the dealer leaves it nil
	return err
}

// prepare loads what the select depends on, and sets its position and its limit.
func (c *selectCall) prepare() error {
	c.lane.watch.begin(c)
	if err := c.enter(); err != nil {
		return err
	}
	if err := c.lane.failures.ask(c); err != nil {
		return fmt.Errorf("ask for failed items: %w", err)
	}
	if c.cursor.unknown {
		if err := c.loadCursor(); err != nil {
			return fmt.Errorf("load cursor: %w", err)
		}
	}
	c.selection.After = c.lane.pass.start(c.began, c.lane.closes, c.lane.sweep != nil || c.quota > 0)
	c.selection.Limit = c.limit()
	c.order.prepare(c)
	return nil
}

// enterPause is the pause of a lane whose queue was not entered. It does not grow: to ask costs little while the
// database cannot be used, and the queue is to go on as soon as it can.
const enterPause = time.Second

// enter makes sure that no earlier transaction of the queue takes effect after the select (F5, F11).
func (c *selectCall) enter() error {
	changed, err := c.env.Enter(c.ctx, c.grant.queue, c.suspect)
	c.cursor.unknown = c.cursor.unknown || changed && c.capabilities.Cursored
	c.outside = err != nil
	return err
}

// loadCursor loads the cursor before a select, after a batch that may have moved it.
func (c *selectCall) loadCursor() (err error) {
	cursor := c.selection.Queue.Cursor
	if c.env.Cursors != nil {
		if cursor, err = c.env.Cursors.Load(c.ctx, c.selection.Queue); err != nil {
			return err
		}
	}
	if cursor != c.selection.Queue.Cursor {
		c.cursor.suspects = 0 // the failed batch was committed after all
	}
	c.selection.Queue.Cursor, c.loaded = cursor, true
	return nil
}

// limit returns the number of items to ask for, from the size of the page. Items that back off, are dead or have failed
// in the sweep still match the user's condition. The limit grows by their number, so that they do not starve other
// items (X2). It also grows by the number of items in flight. Where the select of an outage's sample cannot go on
// behind a page, the sample reaches further with each round, as far as a select reaches behind failed items.
func (c *selectCall) limit() int {
	c.wanted = c.selection.Limit
	switch {
	case c.capabilities.Cursored: // the cursor has passed them
		return c.wanted
	case c.quota > 0 && c.capabilities.Paged:
		c.wanted = c.settings.FetchNumber
	case c.quota > 0 && c.capabilities.Keyed:
		c.wanted = min(c.quota, 1+parkedRoom) * c.settings.FetchNumber
	}
	c.room = c.roomForParked()
	limit := c.wanted + c.room
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
	l.watch.alertParked(c, c.parkedBefore, most)
	parked := max(c.parkedBefore, l.pass.before-l.pass.parked)
	if c.fullBefore {
		parked = max(parked, 2*c.parkedBefore)
	}
	return l.pass.room(min(parked, most))
}

// reachesFurther reports whether the next select has room for more failed items than this one, whose page had no
// others.
func (c *selectCall) reachesFurther() bool {
	return c.saturated && !c.capabilities.Cursored && !c.capabilities.Paged &&
		min(2*c.parked, parkedRoom*c.settings.FetchNumber) > c.room
}

// selectItems calls the dealer and the hooks.
func (c *selectCall) selectItems() (list items, err error) {
	ctx := c.ctx
	var ends []func(int, error)
	for _, hooks := range c.env.Hooks {
		if hooks.Select == nil {
			continue
		}
		var end func(int, error)
		if ctx, end = hooks.Select(ctx, c.selection); end != nil {
			ends = append(ends, end)
		}
		c.logCtx = ctx
	}
	if len(ends) > 0 {
		err = errExited
		defer func() {
			for _, end := range slices.Backward(ends) {
				end(sizeOf(list), err)
			}
		}()
	}
	err = c.inTime(ctx, func(ctx context.Context) (err error) {
		list, err = c.source.selectItems(ctx, c.selection)
		if err == nil && list.size() == 0 && c.selection.Run != nil {
			err = context.Cause(ctx) // the empty result of a cancelled select does not prove that the sweep is complete
		}
		return err
	})
	return list, err
}

func sizeOf(list items) int {
	if list == nil {
		return 0
	}
	return list.size()
}

// preparePage keeps the items that may be executed now, and gives them what their batches need.
func (c *selectCall) preparePage(returned items, p *page) (err error) {
	if c.order != nil {
		if p.order, err = returned.orderKeys(); err != nil {
			return err
		}
		c.order.keys, c.order.last = p.order, make(map[uint64]lastOfKey, len(p.order))
	}
	if err = c.filterPage(p); err != nil {
		return err
	}
	if c.lane.sweep != nil {
		if err = c.lane.sweep.fingerprint(c, p); err != nil {
			return err
		}
	}
	c.saturated = p.unstarted() == 0 && p.fetched >= c.selection.Limit
	if err = c.lane.watch.inspect(c, returned, p); err != nil {
		return err
	}
	if !c.capabilities.Cursored { // with cursors each batch has its own context
		p.ctx = c.env.Bind(c.ctx, c.grant.queue, nil)
	}
	if c.order != nil {
		p.chains = newChains(p.order, c.capabilities.atomic)
	}
	return nil
}

// findStep finds what the select means for the pass of its lane. It looks at the items as the dealer returned them. In
// an outage the next select always goes on behind the page, so that the samples are of different items.
func (c *selectCall) findStep(returned items, p *page) (err error) {
	switch {
	case !c.capabilities.Paged:
	case p.fetched < c.selection.Limit:
		c.step = ends
	case c.quota > 0 || c.untested < c.wanted:
		if err = c.goOn(moves, returned, p.fetched); err != nil || c.step == stuck {
			return err
		}
		if c.order != nil && !c.order.leaveBehind(c.memory.keysBehind) {
			c.step = stays
			c.lane.watch.alertManyKeys(c)
		}
	case c.order == nil && c.lane.sweep == nil && c.head >= c.wanted:
		return c.goOn(skips, returned, c.head)
	}
	return nil
}

// goOn makes the next select go on behind the first n items that the dealer returned.
func (c *selectCall) goOn(how step, returned items, n int) (err error) {
	if c.last, err = returned.place(n - 1); err != nil {
		return err
	}
	if c.step = how; c.last == c.selection.After {
		c.step = stuck
	}
	return nil
}

func (c *selectCall) conclude() {
	c.now = time.Now()
	c.took = c.now.Sub(c.began)
	if c.err == nil {
		return
	}
	c.outcome = c.classify(c.err)
	c.logFailure("select", c.outcome, c.err)
	c.err = fmt.Errorf("select queue %s: %w", c.queueID(), c.err)
}

// finishLocked makes the page ready for batches, or lets the lane rest.
func (c *selectCall) finishLocked(s *scheduler) {
	l := c.lane
	s.selects--
	l.selecting = false
	l.sweepWaits = false
	l.untried = c.more || c.step == moves
	if c.order != nil {
		l.behind, l.heldKeys = c.order.behind, c.order.waitingKeys()
		if c.found != nil && c.step == moves {
			c.found.behind = l.behind
		}
	}
	if c.outcome == done {
		l.parked, l.saturated = c.parked, c.saturated
	}
	if c.loaded {
		c.grant.moveCursorLocked(c.selection.Queue.Cursor, c.cursor.suspects)
	} else if c.cursor.unknown { // entered, and not loaded: the next select is not told again that the cursor has changed
		c.grant.cursor.unknown = true
	}
	if c.capabilities.Paged && c.outcome == done {
		l.pass.advance(c)
	}
	s.stats.countSelect(c)
	s.observeLocked(c.evidence(), l)
	switch {
	case l.sweep != nil && l.sweep.endsWithLocked(s, c):
		s.passTurnLocked(l)
	case c.found.unstarted() > 0:
		c.addPageLocked(s)
	case c.outcome == failed || c.outcome == lost:
		l.rest.observe(repetition{pause: true, retryAfter: c.pauseAsked()}, false)
		s.placeLocked(l, c.now)
	case c.outcome == done:
		l.rest.failures = 0
		l.sweepWaits = l.sweep != nil && c.step != moves && !c.heldOnce
		if l.sweep == nil && c.empty() {
			c.noteEmptyLocked(s)
		}
		c.planNextLocked(s)
		s.enqueueLocked(l)
	default:
		l.times.ask(askMore, c.now)
		s.enqueueLocked(l)
	}
}

// pauseAsked returns the pause that a failed select asks for; 0 if it asks for none.
func (c *selectCall) pauseAsked() time.Duration {
	if c.outside {
		return enterPause
	}
	return c.settings.asked(c.err)
}

// evidence returns what the select says about the dealer and its queue.
func (c *selectCall) evidence() evidence {
	e := evidence{now: c.now, err: c.err, wide: true}
	switch w := c.lane.sweep; {
	case c.outcome == failed:
		e.selects, e.failed, e.inconclusive = true, true, c.outside || c.env.blames(c.err)
		e.outside = c.outside
	case c.outcome != done:
	case w != nil:
		e.selects, e.exhausted = true, w.ItemsFailed == 0 && c.completesSweep()
	default:
		e.selects, e.exhausted = true, c.empty() && c.lane.pass.retryTime(c.retryAt, c.now).IsZero()
	}
	return e
}

// addPageLocked makes the page the one that the lane's batches are taken from.
func (c *selectCall) addPageLocked(s *scheduler) {
	l, p := c.lane, c.found
	c.grant.emptySince = time.Time{}
	l.page, p.readyAt = p, c.now
	l.rest.pause = l.rest.pause || c.outcome == failed
	if c.grant.draining || s.stopping || s.outage.open() && c.quota == 0 {
		s.stats.skip(p.drop())
	}
	waited := c.order != nil && c.order.waiting > 0 // for these retries
	if p.retries > 0 && p.retries == p.unstarted() && c.step != moves && !waited {
		l.rest.notBefore = c.began.Add(s.settings.floor())
	}
	l.watch.checkRepeatsLocked(c, s)
	s.offerLocked(l)
	s.placeLocked(l, c.now)
}

// noteEmptyLocked records that the queue had nothing to execute.
func (c *selectCall) noteEmptyLocked(s *scheduler) {
	s.surviveLocked(c.lane)
	if c.grant.emptySince.IsZero() {
		notify(s.signals.emptied)
	}
	c.grant.emptySince = c.lane.pass.began
}

// empty reports whether the lane has had nothing to execute since its pass began. If items were in flight during the
// select, this is not certain: they may be selectable again.
func (c *selectCall) empty() bool {
	return len(c.inFlight) == 0 && c.found.unstarted() == 0 && !c.heldOnce &&
		(!c.capabilities.Paged || c.lane.pass.proves(c.step, c.selection.After))
}

// completesSweep reports whether the select shows that nothing is left. Failed items still match the user's condition.
// A page of only failed items therefore completes the sweep only if it had room for other items (R9), and a select
// behind a page only if the pass has found nothing before.
func (c *selectCall) completesSweep() bool {
	return c.empty() && c.lane.pass.waiting == 0 && (c.found == nil || c.found.fetched < c.selection.Limit)
}

// freed reports whether a batch has ended during the select for which items of its keys may have waited.
func (c *selectCall) freed() bool {
	return c.order != nil && c.order.waiting > 0 && c.lane.batches < len(c.inFlight)
}

// planNextLocked plans the next select after one that has found nothing to execute. A sweep polls only while items wait
// for the end of an outage.
func (c *selectCall) planNextLocked(s *scheduler) {
	l, t := c.lane, &c.lane.times
	retryAt := c.retryAt
	if l.sweep == nil {
		retryAt = l.pass.retryTime(c.retryAt, c.now)
	}
	switch {
	case c.step == moves:
		t.ask(askMore, c.now)
		return
	case s.outage.open():
		t.ask(askMore, c.now)
		t.hold(holdProbe, s.outage.nextProbe(l, s.settings, c.now, 0))
		return
	case c.heldOnce, c.freed(), c.reachesFurther(), l.sweep != nil && l.pass.waiting == 0:
		t.ask(askMore, c.now)
	case c.capabilities.Cursored && l.sweep == nil && !retryAt.IsZero():
		t.ask(askMore, c.now)
		t.hold(holdCursor, retryAt)
	default:
		t.ask(askPoll, c.now.Add(s.settings.SleepTimeNoData))
		if !retryAt.IsZero() || l.sweep != nil {
			t.ask(askRetry, later(retryAt, c.began.Add(s.settings.floor())))
		}
		s.noteIdleLocked(c)
	}
	s.afterOutageLocked(l, c.now)
}

func (c *selectCall) reset() {
	clear(c.inFlight)
	*c = selectCall{call: c.call, inFlight: c.inFlight[:0], keysInFlight: c.keysInFlight}
}
