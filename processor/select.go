package processor

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
)

// selectCall is one select of a lane.
type selectCall struct {
	call
	selection Selection
	parts     []part      // of the page
	inFlight  []span      // the batches of the lane that were in flight when the select began
	cursor    cursorState // the grant's when the select began
	loaded    bool        // selection.Queue.Cursor was loaded from the store

	wanted int    // the number of items to execute that the select asks for; Limit is larger by those that are not executed
	step   step   // what the select means for the pass of the lane
	last   string // the position of the last item, if the select moves the pass

	signature uint64 // of the page; 0 if it is not compared with others

	found    *page               // nil if the dealer returned nothing
	retryAt  time.Time           // when the first item that backs off may be retried; zero if none backs off
	dead     int                 // items that were found dead because they have ended their process
	repeated bool                // the page of a sweep holds only items that the sweep has been through
	seen     map[string]struct{} // the keys of inFlight; a buffer, reused by the next select
}

// claimLocked takes the select of a due lane.
func (c *selectCall) claimLocked(ctx context.Context, s *scheduler, l *lane, now time.Time) {
	s.due.remove(l)
	s.selects++
	l.selecting, l.closes = true, s.breaker.closes
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
		c.ctx, c.cancel = context.WithCancel(ctx)
	}
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
	if n == 0 {
		return nil
	}
	page := newPage(list, n, c.parts)
	err = c.preparePage(page)
	if err == nil {
		err = c.findStep(list, page)
	}
	c.found = page // not earlier: a Goexit in the dealer leaves it nil
	return err
}

// prepare loads what the select depends on, and sets its limit.
func (c *selectCall) prepare() error {
	c.alertCrashes()
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
	c.startPass()
	c.selection.Limit = c.limit()
	c.tellRepeats()
	return nil
}

// loadFailures loads the failed items of a queue, once per grant and after each Reload. A sweep has only its own.
func (c *selectCall) loadFailures(g *grant) error {
	version := c.reloads.Load() + 1
	if c.env.Items == nil || !c.capabilities.tracksItems() || c.lane.sweep != nil || g.failures.version == version {
		return nil
	}
	c.lane.pass = pass{}
	most := c.settings.ItemMaxAttempts
	return c.lane.failures.load(c, g, version, func(f FailedItem) bool {
		return c.capabilities.discarder && !f.Dead && most > 0 && f.Attempts >= most
	})
}

// limit returns the number of items to ask for, from the size of the page. Items that back off, are dead or have failed
// in the sweep still match the user's condition. The limit grows by their number, so that they do not starve other items
// (X2). It also grows by the number of items in flight.
func (c *selectCall) limit() int {
	c.wanted = c.selection.Limit
	if c.capabilities.cursored { // the cursor has passed them
		return c.wanted
	}
	limit := c.wanted + c.roomForParked()
	for _, s := range c.inFlight {
		limit += s.size()
	}
	return limit
}

// alertPause is the pause between two alerts about a lane while the reason lasts. The receiver decides how often it tells
// people.
const alertPause = time.Minute

// roomForParked returns the number of items that the select may return although they have failed. Beyond the bound, the
// select of a Paged dealer goes on behind its page. Another dealer may miss items, and an alert reports that.
func (c *selectCall) roomForParked() int {
	parked, most := int64(0), parkedRoom*c.settings.FetchNumber
	for _, g := range c.grants {
		parked += g.failures.parked.Load()
	}
	missing := parked > int64(most) && (!c.capabilities.paged || c.lane.pass.ignored)
	switch {
	case !missing:
		c.lane.alertedAt = time.Time{}
	case c.now.Sub(c.lane.alertedAt) >= alertPause:
		c.lane.alertedAt = c.now
		c.alertParked(parked, c.wanted+most)
	}
	return c.lane.pass.room(int(min(parked, int64(most))))
}

func (c *selectCall) alertParked(parked int64, limit int) {
	text := "%d items of queue %s have failed, back off or are dead: selects return at most %d items and may miss others"
	if c.capabilities.paged {
		text += ", because Select ignores Selection.After"
	}
	c.env.Alert(Alert{Kind: AlertParked, Queue: c.selection.Queue.ID, Text: fmt.Sprintf(text, parked, c.queueIDs(), limit)})
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
	}
	if c.settings.BatchTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.settings.BatchTimeout)
		defer cancel()
	}
	var owned []Queue
	if c.capabilities.setSelector {
		owned = queuesOf(c.grants)
	}
	list, err = c.source.selectItems(ctx, c.selection, owned)
	if err == nil && list.size() == 0 && c.selection.Run != nil {
		err = context.Cause(ctx) // the empty result of a cancelled select does not prove that the sweep is complete
	}
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
	c.cutToProbe(p)
	c.tellLimit(p)
	if signErr := c.signPage(p); signErr != nil {
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
	c.logFailure("select", logrus.Fields{})
	c.err = fmt.Errorf("select queue %s: %w", c.queueIDs(), c.err)
}
