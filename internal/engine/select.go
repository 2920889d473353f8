package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/processor"
)

// selectCall is one select of a lane. The methods in this file are its steps, in order.
type selectCall struct {
	call
	look
	selection    processor.Selection
	inFlight     []span          // the batches of the lane that were in flight when the select began
	cursor       cursorState     // the grant's when the select began
	loaded       bool            // selection.Queue.Cursor was loaded from the store
	found        *page           // nil if the dealer returned nothing
	polled       bool            // nothing asked for it but the poll
	suspect      bool            // the last select of the lane has failed
	outside      bool            // the queue was not entered
	cut          error           // of a sweep: why its page, which is not full, may lack items; nil if it does not
	keysInFlight map[string]bool // the keys of inFlight; a buffer, reused by the next select

	// What options know of the select. Their files have the types.
	order     *keyOrder // of an Ordered dealer; else nil
	reach     reach     // paging.go
	swept     sweptPage // sweep.go
	untried   bool      // the outage leaves items of the page untried for now (sampling.go)
	dead      int       // items that were found dead because they have ended their process (isolation.go)
	signature uint64    // of the page; 0 if it is not compared with others (alerts.go)
}

// claimLocked takes the select of a due lane, and notes the batches of the lane that are in flight (X1).
func (c *selectCall) claimLocked(ctx context.Context, s *scheduler, l *lane, now time.Time) {
	s.due.remove(l)
	s.selects++
	l.selecting = true
	c.polled = l.times.polls() && !s.peeks.answersHint()
	l.times.selected(now)
	c.suspect = l.rest.failures > 0
	c.lane, c.grant = l, l.grant
	c.selection = s.selectionLocked(c.grant)
	c.wanted = s.pageSizeLocked(l, now)
	c.cursor, c.ctx = c.grant.cursor, c.grant.contextLocked(ctx)
	for _, t := range c.stages {
		if t.claim != nil {
			t.claim(c, now, s)
		}
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
		c.ended = true
		return nil
	}
	page := newPage(c.ctx, list, n)
	if err = c.preparePage(list, page); err == nil && c.cut != nil && page.unstarted() == 0 && len(c.inFlight) == 0 {
		err = fmt.Errorf("the page has %s, and none to execute, and may have been cut: %w", countItems(n), c.cut)
	}
	if err != nil {
		page.drop()
	}
	c.found = page // not earlier: a Goexit in the dealer leaves it nil
	return err
}

// prepare loads what the select depends on, and sets its position and its limit. The limit grows by the items that the
// select returns although they are not executed now, so that they do not starve others (X2): those in flight, and those
// that have failed. A cursor has passed them.
func (c *selectCall) prepare() error {
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
	for _, t := range c.stages {
		if t.prepare != nil {
			t.prepare(c)
		}
	}
	c.selection.Limit = c.wanted + c.room
	for _, s := range c.inFlight { // none of a Cursored dealer
		c.selection.Limit += s.size()
	}
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
		if err == nil && c.selection.Run != nil && list.size() < c.selection.Limit {
			c.cut = context.Cause(ctx)
		}
		if err == nil && list.size() == 0 {
			err = c.cut
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
func (c *selectCall) preparePage(returned items, p *page) error {
	for _, t := range c.stages {
		if t.read != nil {
			if err := t.read(c, returned, p); err != nil {
				return err
			}
		}
	}
	if err := c.filterPage(p); err != nil {
		return err
	}
	if !c.capabilities.Cursored { // with cursors each batch has its own context
		p.ctx = c.env.Bind(c.ctx, c.grant.queue, nil)
	}
	for _, t := range c.stages {
		if t.page != nil {
			if err := t.page(c, returned, p); err != nil {
				return err
			}
		}
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
	if c.loaded {
		c.grant.moveCursorLocked(c.selection.Queue.Cursor, c.cursor.suspects)
	} else if c.cursor.unknown { // entered, and not loaded: the next select is not told again that the cursor has changed
		c.grant.cursor.unknown = true
	}
	for _, t := range c.stages {
		if t.finish != nil {
			t.finish(c, s)
		}
	}
	countSelect(&s.stats, c)
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
	e := evidence{began: c.began, now: c.now, took: c.took, err: c.err, wide: true}
	switch w := c.lane.sweep; {
	case c.outcome == failed:
		e.selects, e.failed, e.inconclusive = true, true, c.outside || c.env.blames(c.err)
		e.outside = c.outside
	case c.outcome != done:
	case w != nil:
		e.selects, e.exhausted = true, w.ItemsFailed == 0 && w.completesWith(c)
	default:
		e.selects, e.exhausted = true, c.empty() && c.retryAt.IsZero()
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
		skip(&s.stats, p.drop())
	}
	if p.retries > 0 && p.retries == p.unstarted() && !c.goesOn && !c.waiting {
		l.rest.notBefore = c.began.Add(s.settings.floor())
	}
	for _, t := range c.stages {
		if t.begins != nil {
			t.begins(c, s)
		}
	}
	s.offerLocked(l)
	s.placeLocked(l, c.now)
}

// noteEmptyLocked records that the queue had nothing to execute.
func (c *selectCall) noteEmptyLocked(s *scheduler) {
	s.surviveLocked(c.lane)
	if c.grant.emptySince.IsZero() {
		notify(s.signals.emptied)
	}
	c.grant.emptySince = c.since
}

// empty reports whether the lane has had nothing to execute since its selects began at the start of the source. If
// items were in flight during the select, this is not certain: they may be selectable again.
func (c *selectCall) empty() bool {
	return len(c.inFlight) == 0 && c.found.unstarted() == 0 && !c.partial && !c.unproven
}

// planNextLocked plans the next select after one that has found nothing to execute.
func (c *selectCall) planNextLocked(s *scheduler) {
	l, t := c.lane, &c.lane.times
	switch {
	case c.more || s.outage.open():
		t.ask(askMore, c.now)
	case c.capabilities.Cursored && l.sweep == nil && !c.retryAt.IsZero():
		t.ask(askMore, c.now)
		t.hold(holdCursor, c.retryAt)
	default:
		t.ask(askPoll, c.now.Add(s.pollPause()))
		if !c.retryAt.IsZero() || l.sweep != nil {
			t.ask(askRetry, later(c.retryAt, c.began.Add(s.settings.floor())))
		}
		s.noteIdleLocked(c)
	}
	for _, t := range c.stages {
		if t.next != nil {
			t.next(c, s)
		}
	}
	if c.reloads.Load() != c.reloaded { // it may have read the records before; Reload relaxes the lanes that rest
		t.relax(c.now.Add(s.settings.SleepTimeNoData))
	}
}

func (c *selectCall) reset() {
	clear(c.inFlight)
	*c = selectCall{call: c.call, inFlight: c.inFlight[:0], keysInFlight: c.keysInFlight}
}
