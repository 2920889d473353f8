package processor

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// selectCall is one select of a lane. Its methods are the steps of a select, in order. What a step has to decide is in
// types of its own, which hold the select: selectLimit, passStep, pageFilter, pageCheck, crashedSelect and selectEnd.
type selectCall struct {
	call
	selection Selection
	parts     []part      // of the page
	inFlight  []span      // the batches of the lane that were in flight when the select began
	cursor    cursorState // the grant's when the select began
	loaded    bool        // selection.Queue.Cursor was loaded from the store

	wanted int    // the number of items to execute that the select asks for; Limit also counts the items that are not executed
	step   step   // what the select means for the pass of the lane
	last   string // the position of the last item, if the select moves the pass

	signature uint64 // of the page; 0 if it is not compared with others

	found    *page               // nil if the dealer returned nothing
	retryAt  time.Time           // when the first item that backs off may be retried; zero if none backs off
	dead     int                 // items that were found dead because they have ended their process
	repeated bool                // the page of a sweep holds only items that the sweep has been through
	seen     map[string]struct{} // the keys of inFlight; a buffer, reused by the next select

	untested int         // items of the page that have not failed alone, if the failed items are known
	more     bool        // the page has items that this outage has not tried, beside those that it tries now
	givesUp  bool        // of a sweep: it passes the items that wait for the end of an outage
	gaveUp   []SweptItem // these items
}

// claimLocked takes the select of a due lane.
func (c *selectCall) claimLocked(ctx context.Context, s *scheduler, l *lane, now time.Time) {
	s.due.remove(l)
	s.selects++
	l.selecting, l.closes = true, s.outage.closes
	if l.alone {
		s.alone.turn = l
	}
	c.lane = l
	c.grants = c.grants[:0]
	for _, g := range l.grants {
		if !g.draining {
			c.grants = append(c.grants, g)
		}
	}
	c.parts = make([]part, len(c.grants))
	for i, g := range c.grants {
		c.parts[i] = part{grant: g, ctx: g.contextLocked(ctx)}
	}
	c.selection = Selection{
		TaskType: c.env.TaskType, OwnSign: c.env.OwnSign, Parameter: s.settings.Parameter, Total: c.grants[0].total,
		Limit: s.pageSizeLocked(l, now),
	}
	if s.set == nil {
		g := c.grants[0]
		c.selection.Queue, c.selection.Run, c.cursor, c.ctx = g.queue, g.queue.Run, g.cursor, c.parts[0].ctx
	} else {
		c.ctx, c.cancel = context.WithCancelCause(ctx)
	}
	c.givesUp = l.sweep != nil && s.sweepsGiveUpLocked(now)
	c.noteInFlightLocked(s, l)
}

// noteInFlightLocked keeps the batches of the lane that are in flight when its select begins. No other item of the lane
// can be in flight during the select, because items get in flight only through a select, and this is the only one (X1).
func (c *selectCall) noteInFlightLocked(s *scheduler, l *lane) {
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
func (c *selectCall) perform() (err error) {
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
	c.lane.unheld, c.lane.crowded = 0, false
	if n == 0 {
		return nil
	}
	page := newPage(list, n, c.parts)
	err = c.preparePage(page)
	if err == nil {
		err = passStep{c}.findStep(list, page)
	}
	c.found = page // not earlier: a Goexit in the dealer leaves it nil
	return err
}

// prepare loads what the select depends on, and sets its limit.
func (c *selectCall) prepare() error {
	crashedSelect{c}.alertCrashes()
	for _, g := range c.grants {
		if err := c.loadFailures(g); err != nil {
			return fmt.Errorf("load failed items: %w", err)
		}
	}
	if c.cursor.unknown {
		if err := c.loadCursor(); err != nil {
			return fmt.Errorf("load cursor: %w", err)
		}
	}
	passStep{c}.startPass()
	c.selection.Limit = selectLimit{c}.limit()
	pageCheck{c}.tellRepeats()
	return nil
}

// loadFailures loads the failed items of a queue, once per grant and after each Reload. A sweep loads them once.
func (c *selectCall) loadFailures(g *grant) error {
	version := c.reloads.Load() + 1
	if c.env.Items == nil || !c.capabilities.tracksItems() || g.failures.version == version || c.lane.sweep != nil && g.failures.version > 0 {
		return nil
	}
	c.lane.pass = pass{}
	return c.lane.failures.load(c, g, version)
}

// selectItems calls the dealer and the hook.
func (c *selectCall) selectItems() (list items, err error) {
	ctx := c.ctx
	if hook := c.env.Hooks.Select; hook != nil {
		var end func(int, error)
		if ctx, end = hook(ctx, c.selection); end != nil {
			err = errExited
			defer func() { end(sizeOf(list), err) }()
		}
		c.logCtx = ctx
	}
	var owned []Queue
	if c.capabilities.setSelector {
		owned = queuesOf(c.grants)
	}
	err = c.inTime(ctx, func(ctx context.Context) (err error) {
		list, err = c.source.selectItems(ctx, c.selection, owned)
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
func (c *selectCall) preparePage(p *page) (err error) {
	if c.capabilities.setSelector {
		err = p.assignQueues()
		pageCheck{c}.tellForeign(err)
	}
	if twiceErr := (pageCheck{c}).tellTwice(p); twiceErr != nil {
		p.drop()
		return twiceErr
	}
	f := pageFilter{selectCall: c, page: p}
	if filterErr := f.filter(); filterErr != nil {
		p.drop()
		return filterErr
	}
	if c.lane.sweep != nil {
		if fingerprintErr := c.lane.sweep.fingerprint(c, p); fingerprintErr != nil {
			p.drop()
			return fingerprintErr
		}
	}
	c.lane.crowded = p.unstarted() == 0 && p.fetched >= c.selection.Limit
	c.cutToProbe(p)
	pageCheck{c}.tellLimit(p)
	if signErr := (pageCheck{c}).signPage(p); signErr != nil {
		p.drop()
		return signErr
	}
	if !c.capabilities.cursored { // with cursors each batch has its own context
		p.bind(c.env.Bind)
	}
	return err
}

func (c *selectCall) conclude() {
	c.now = time.Now()
	c.took = c.now.Sub(c.began)
	if c.err == nil {
		return
	}
	c.outcome = c.classify(c.err)
	if _, told := errors.AsType[*foreignError](c.err); !told {
		c.logFailure("select")
	}
	c.err = fmt.Errorf("select queue %s: %w", c.queueIDs(), c.err)
}
