package engine

import (
	"math"
	"slices"
	"time"
)

// filter decides from the record of an item of a page whether the item is executed now, and in which batch.
type filter struct {
	now           time.Time
	round         uint64      // setup.rounds when the select began
	samples       bool        // the breaker is open, so only a sample is executed
	inOrder       bool        // the items of a cursor keep their order
	cursor        cursorState // whose first items are suspects
	sweeps        bool
	discards      bool
	givesUp       bool // of a sweep: it passes the items that wait for the end of an outage
	executeNumber int
}

// class says why an item of a page is executed now, or why it is not. A page has its items in the order of the classes.
// The items of a Cursored dealer keep the order of the cursor, all in class fresh.
type class int

const (
	ahead     class = iota // it is retried or dying, and its turn before the others has come (retryShare)
	fresh                  // it has not failed
	suspected              // it was in a batch that failed
	retried                // it has failed alone
	dying                  // it is dead, and its record or its Discard is missing
	classes
	// In the classes from here on, the item is not executed now.
	held     // an item of its order key comes first
	backsOff // until the time of its record
	over     // it is dead, or the sweep has passed it
	givenUp  // the sweep passes it now
)

// judge returns the class and the mark of the item at an index of the page. known reports whether it has the record r.
func (f filter) judge(index int, r record, known bool) (class, mark) {
	switch {
	case !known && index < f.cursor.suspects:
		return retried, mark(f.cursor.batchLimit)
	case !known:
		return fresh, ordinary
	case r.dead && f.inOrder && !f.unfinished(r):
		return retried, passed
	case f.sweeps && (r.dead && r.stored || f.givesUp && r.waits()):
		return givenUp, ordinary
	case r.dead && !f.unfinished(r):
		return over, ordinary
	case r.retryAt.After(f.now) && !f.early(r):
		return backsOff, ordinary
	case r.dead:
		return dying, unfinished
	case r.batchLimit > 0:
		return suspected, mark(r.batchLimit)
	case r.doubtful && r.attempts == 0: // after an outage, these are many healthy items
		return retried, mark(f.executeNumber)
	}
	return retried, single
}

// unfinished reports whether a dead item lacks its record or its Discard, which a sweep leaves to mode CONTINUOUS.
func (f filter) unfinished(r record) bool {
	return !f.sweeps && (r.unsaved() || f.discards && !r.discarded)
}

// early reports whether an item that backs off is executed now nevertheless: something has succeeded since its last
// failure, which was no attempt, or the item is the probe of a cursor.
func (f filter) early(r record) bool { return r.doubtful && r.last < f.round || f.samples && f.inOrder }

// division has the items of a page by class.
type division struct {
	of         [classes][]int32 // indexes of the items to keep
	backingOff []int32          // indexes of items that back off, one of which may be the probe of the lane
	marks      []mark           // of all items; nil while all are ordinary
	size       int              // number of all items
}

// keep adds the item at an index to a class and notes its mark.
func (d *division) keep(c class, i int32, m mark) {
	if m != ordinary {
		if d.marks == nil {
			d.marks = make([]mark, d.size)
		}
		d.marks[i] = m
	}
	if d.of[c] == nil {
		d.of[c] = make([]int32, 0, d.size)
	}
	d.of[c] = append(d.of[c], i)
}

// takeTurns leaves the first most of the retries and Discards, in the order in which they are due, so that each has its
// turn: the items at the head of the page may be due again each time. The first ones of these come ahead.
func (d *division) takeTurns(first, most int, dueAt func(i int32) time.Time) {
	turns := slices.Concat(d.of[retried], d.of[dying])
	if first == 0 && len(turns) <= most {
		return
	}
	slices.SortStableFunc(turns, func(a, b int32) int { return dueAt(a).Compare(dueAt(b)) })
	turn := make([]int, d.size)
	for n, i := range turns {
		turn[i] = n
	}
	for _, c := range []class{retried, dying} {
		var behind []int32
		for _, i := range d.of[c] {
			switch {
			case turn[i] < first:
				d.of[ahead] = append(d.of[ahead], i)
			case turn[i] < most:
				behind = append(behind, i)
			}
		}
		d.of[c] = behind
	}
}

// filterPage drops the items that must not be executed now, and marks the items that must be executed in small batches
// or not at all. It asks for keys only if there is something to distinguish. This is never so for a dealer that is
// neither Keyed nor Cursored.
func (c *selectCall) filterPage(p *page) (err error) {
	if !c.capabilities.tracksItems() ||
		!c.judges && len(c.inFlight) == 0 && c.cursor.suspects == 0 && !c.lane.failures.any() {
		c.untested = p.unstarted()
		return nil
	}
	if err := c.findKeysInFlight(); err != nil {
		return err
	}
	if c.keys, err = p.items.keys(c.keys[:0], 0, p.items.size()); err != nil {
		return err
	}
	asked := slices.DeleteFunc(slices.Clone(c.keys), func(key string) bool { return c.keysInFlight[key] })
	if p.records, err = c.lane.failures.find(&c.call, asked); err != nil {
		return err
	}
	d := c.divide(p)
	if c.quota == 0 {
		first, most := c.lane.retries.share(c, d, p)
		d.takeTurns(first, most, func(i int32) time.Time { return p.records[c.keys[i]].retryAt })
	}
	for _, t := range c.stages {
		if t.sift != nil {
			t.sift(c, d)
		}
	}
	if !c.capabilities.Cursored {
		p.retries = len(d.of[ahead]) + len(d.of[retried]) + len(d.of[dying])
	}
	c.kept = slices.Concat(d.of[:]...)
	if d.marks != nil || len(d.of[fresh]) < d.size {
		p.marks = d.marks
		p.keep(c.kept)
	}
	return nil
}

// findKeysInFlight collects the keys of the items that were in flight when the select began.
func (c *selectCall) findKeysInFlight() (err error) {
	clear(c.keysInFlight)
	for _, s := range c.inFlight {
		if c.keys, err = s.items.keys(c.keys[:0], s.from, s.to); err != nil {
			return err
		}
		if c.keysInFlight == nil {
			c.keysInFlight = map[string]bool{}
		}
		for _, key := range c.keys {
			c.keysInFlight[key] = true
		}
	}
	return nil
}

// divide divides the items of a page. Behind an item of a cursor that is not executed now, the other items wait too.
func (c *selectCall) divide(p *page) *division {
	d := &division{size: len(c.keys)}
	f := filter{
		now: time.Now(), round: c.round, samples: c.quota > 0, inOrder: c.capabilities.Cursored, cursor: c.cursor,
		sweeps: c.lane.sweep != nil, discards: c.capabilities.Discarder, givesUp: c.swept.givesUp,
		executeNumber: c.settings.ExecuteNumber,
	}
	for i, key := range c.keys {
		if c.keysInFlight[key] {
			continue
		}
		r, known := p.records[key]
		class, m := f.judge(i, r, known)
		for _, t := range c.stages {
			if t.judge != nil {
				class = t.judge(c, i, class, m, r)
			}
		}
		if class >= retried {
			c.parked++
		}
		if class >= classes && c.head == i {
			c.head++
		}
		switch class {
		case fresh, suspected:
			c.untested++
		case backsOff:
			c.retryAt = earlier(c.retryAt, r.retryAt)
			if !r.dead { // else only its Discard backs off
				d.backingOff = append(d.backingOff, int32(i))
			}
		}
		switch {
		case class < classes && !f.inOrder:
			d.keep(class, int32(i), m)
		case class < classes:
			if class > suspected && r.failedItself() && !r.dead {
				p.retries++
			}
			d.keep(fresh, int32(i), m)
		case f.inOrder:
			return d
		}
	}
	return d
}

// retryRatio is the least ratio of other calls to calls for retries, while a lane has enough other items.
const retryRatio = 6

// retryShare is the number of calls of a lane for other items since the last retries. Only the lane's select uses it.
type retryShare int

// share returns how many retries and Discards a page has ahead of the other items, and how many it has at most, so that
// poison does not take the executors from healthy items (X2). The others wait for the next page.
//
// Six calls for other items pay for one retry, which comes ahead of others because a page that takes long is cut. No
// retry comes ahead until all executors can have one. With 8 executors, for example, a page of 8 batches with one retry
// takes as long as two rounds of calls, and so does one with 8 retries: so 8 of them come together, after 48 calls. A
// page that is not full has more of them behind the others: as many retries as it may have items, which is about a
// second of work. If a full page of a Paged dealer holds few other items, it has a sixth of them.
func (s *retryShare) share(c *selectCall, d *division, p *page) (first, most int) {
	calls := math.Ceil(float64(len(d.of[fresh])) / float64(c.settings.ExecuteNumber)) // a page may be less than a batch
	paid, executors := int(*s)+int(calls)+len(d.of[suspected]), c.settings.ThreadNumber
	if paid/retryRatio >= executors {
		first = min(paid/retryRatio, len(d.of[retried])+len(d.of[dying]))
	}
	*s = retryShare(min(paid-first*retryRatio, retryRatio*executors))
	switch {
	case len(d.of[fresh])+len(d.of[suspected]) >= c.wanted:
		return first, first
	case c.capabilities.Paged && p.fetched >= c.selection.Limit: // other items are behind the page
		return first, max(first, 1, c.wanted/retryRatio)
	default:
		return first, max(first, c.wanted)
	}
}
