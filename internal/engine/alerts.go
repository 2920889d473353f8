package engine

import (
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// watchStage finds what is wrong with the selects of a lane, and alerts it.
var watchStage = stage{
	prepare: func(c *selectCall) { c.lane.watch.begin(c) },
	page:    func(c *selectCall, returned items, p *page) error { return c.lane.watch.inspect(c, returned, p) },
	begins: func(c *selectCall, s *scheduler) {
		c.lane.watch.checkRepeatsLocked(c, s)
		s.noteHintLocked(c)
	},
}

// watch is what the watch knows of a lane. Only the lane's select uses it.
type watch struct {
	comparedAt time.Time // when the items of a page were last compared with each other
	repeats    repeats
	unhinted   bool // items have come without a hint
}

// begin sends, before a select, the alerts that are due.
func (w *watch) begin(c *selectCall) {
	if w.unhinted {
		c.remindQueue(Alert{Kind: AlertUnhinted, Text: fmt.Sprintf("a poll of queue %s has found items, although the "+
			"setting hinted says that a hint comes with each: a program adds items and sends none", c.queueID())})
	}
	if r := &w.repeats; r.err != nil && !r.alerted {
		r.alerted = true
		c.env.Logger.LogAttrs(c.logCtx, slog.LevelError, r.err.Error(), slog.String("queue", c.queueID()))
		c.env.Alert(Alert{Kind: AlertNoEffect, Queue: c.selection.Queue.ID, Text: r.err.Error()})
	}
}

// remindPause is the pause between two alerts of remind about one condition. The receiver counts what it is told seldom
// as lasting for longer than that.
const remindPause = 30 * time.Minute

// remindQueue logs a condition of the select's queue once per process, and sends its alert.
func (c *selectCall) remindQueue(a Alert) {
	a.Queue = c.selection.Queue.ID
	if c.remind(a) {
		c.env.Logger.LogAttrs(c.logCtx, slog.LevelWarn, a.Text, slog.String("queue", c.queueID()))
	}
}

// remind sends an alert at once, and again while a call finds its condition. It reports whether it was the first one.
func (c *call) remind(a Alert) (first bool) {
	about := a
	about.Text = ""
	at, told := c.alerted.Load(about)
	if told && c.began.Sub(at.(time.Time)) < remindPause {
		return false
	}
	c.alerted.Store(about, c.began)
	c.env.Alert(a)
	return !told
}

// inspect sends the alerts about a page, and computes its signature, which is equal for pages with an equal first item.
// returned are the items of the dealer, and p is what the filter has left of them. A page has no signature if its items
// cannot be distinguished, if it holds failed items, or in a sweep, which has a trail. But it has one if its first item
// is dead and the cursor passes it: the next select returns that item only if it ignores the cursor.
func (w *watch) inspect(c *selectCall, returned items, p *page) error {
	w.alertLimit(c, p)
	compares := c.capabilities.tracksItems() && returned.size() > 1 && c.began.Sub(w.comparedAt) >= compareEvery
	if compares {
		w.comparedAt = c.began
		if err := w.alertDuplicates(c, returned); err != nil {
			return err
		}
	}
	if p.unstarted() == 0 || c.lane.sweep != nil ||
		p.marks != nil && (!c.capabilities.Cursored || p.marks[0] != passed) {
		return nil
	}
	first, err := p.items.fingerprints(1)
	if len(first) > 0 {
		c.signature = first[0]
	}
	return err
}

// compareEvery is the pause between two pages of a lane that are searched for an item that occurs twice. The search
// needs the key of each item, and one page a minute is enough: a join that returns items twice does so in most pages.
const compareEvery = time.Minute

// alertDuplicates sends an alert if the dealer has returned an item twice.
func (w *watch) alertDuplicates(c *selectCall, returned items) error {
	prints, err := returned.fingerprints(returned.size())
	seen := make(map[uint64]bool, len(prints))
	for i, print := range prints {
		if seen[print] {
			keys, err := returned.keys(nil, i, i+1)
			if err == nil {
				c.remindQueue(Alert{Kind: AlertPage, Subject: "an item twice", Text: fmt.Sprintf("a select of queue %s returned "+
					"item %s twice, and both may be executed: does a join return a row more than once?", c.queueID(), keys[0])})
			}
			return err
		}
		seen[print] = true
	}
	return err
}

// alertLimit sends an alert if the select seems to ignore its limit, because it returned more items than that. It also
// sends one if the select returned only items that back off or are dead, and exactly fetch_number of them although the
// limit is larger: other items may be behind them.
func (w *watch) alertLimit(c *selectCall, p *page) {
	text, asked := "", c.selection.Limit
	switch {
	case c.capabilities.Cursored || c.capabilities.Paged || len(c.selection.Held) > 0:
	case p.fetched > asked:
		text = fmt.Sprintf("a select of queue %s returned %s, and was asked for %d at most",
			c.queueID(), countItems(p.fetched), asked)
	case p.unstarted() > 0 || len(c.inFlight) > 0:
	case p.fetched == c.settings.FetchNumber && p.fetched < asked:
		text = fmt.Sprintf("a select of queue %s was asked for %s and returned %d, "+
			"which all have failed, back off or are dead: it may miss the items behind them",
			c.queueID(), countItems(asked), p.fetched)
	}
	if text != "" {
		c.remindQueue(Alert{Kind: AlertLimit, Text: text + ": does it use Selection.Limit, {{limit}} in SQL?"})
	}
}

// repeats detects that Execute succeeds without effect: the selects of a lane return items that were executed just
// before. It compares the first items of pages. Only the lane's select uses it.
type repeats struct {
	pages   [4]uint64 // the last pages; NOTSLEEP may alternate between a few
	next    int       // index of the oldest page
	count   int       // repeated pages, minus pages that were new
	began   time.Time // when the select of the last page began
	pause   time.Duration
	err     error // why the lane pauses; nil if it does not
	alerted bool  // the alert for err was sent
}

const (
	// maxRepeatedPages is the number of repeated pages in a row after which a lane pauses. Items that need a few steps
	// under one key cause some.
	maxRepeatedPages = 100
	// busyFor is the time in which a page must be executed to count as repeated. A dealer that takes longer, or rests
	// longer, does not keep its executors busy in vain.
	busyFor = time.Second
)

// observe compares a page with the pages before it, and returns the pause that it causes.
func (r *repeats) observe(page uint64, began time.Time, s *Settings) time.Duration {
	busy := began.Sub(r.began)-r.pause < busyFor
	r.began, r.pause = began, 0
	repeated := busy && slices.Contains(r.pages[:], page)
	if repeated {
		r.count++
	} else {
		r.count = max(0, r.count-1) // one new page proves little: in NOTSLEEP the first items vary
	}
	r.pages[r.next] = page
	r.next = (r.next + 1) % len(r.pages)
	if repeated && r.count > maxRepeatedPages {
		r.pause = s.queuePause(r.count - maxRepeatedPages)
	}
	return r.pause
}

// checkRepeatsLocked makes the lane pause after its page if Execute seems to have no effect. It ignores a failed batch
// of a dealer without keys, which is selected again for another reason.
func (w *watch) checkRepeatsLocked(c *selectCall, s *scheduler) {
	l, r := c.lane, &w.repeats
	if c.signature == 0 || l.rest.failures > 0 || s.settings.SleepTimeInterval > 0 {
		return
	}
	pause := r.observe(c.signature, c.began, s.settings)
	if pause == 0 {
		r.alerted, r.err = r.alerted && r.count > 0, nil
		return
	}
	why := "although Execute succeeded with it: it does not change what Select returns"
	if c.found.marks != nil {
		why = "although the cursor has passed it, because it is dead: does Select go on behind Queue.Cursor?"
	}
	r.err = fmt.Errorf("select queue %s: %d selects returned the same first items as before, %s",
		c.queueID(), r.count+1, why)
	l.rest.notBefore = c.began.Add(pause)
	s.stats.LastError, s.stats.LastErrorTime = r.err, c.now
}
