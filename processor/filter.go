package processor

import (
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

// class says why an item of a page is executed now, or why it is not. A page has its items in the order of the classes,
// unless the dealer is Cursored: then they keep the order of the cursor, all in class fresh.
type class int

const (
	fresh     class = iota // it has not failed
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
	return !f.sweeps && (r.unsaved || f.discards && !r.discarded)
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

// filterPage drops the items that must not be executed now, and marks the items that must be executed in small batches
// or not at all. It asks for keys only if there is something to distinguish. This is never so for a dealer that is
// neither Keyed nor Cursored.
func (c *selectCall) filterPage(p *page) (err error) {
	if !c.capabilities.tracksItems() || !c.capabilities.Ordered && len(c.inFlight) == 0 && c.cursor.suspects == 0 &&
		c.quota == 0 && !c.lane.failures.any() {
		if c.untested = p.unstarted(); c.quota > 0 && c.untested > 1 {
			all := make([]int32, c.untested)
			for i := range all {
				all[i] = int32(i)
			}
			p.keep(c.lane.spread(all, 1))
		}
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
	if c.order != nil {
		c.order.held.leaveOut(c.order.blocked, c.began)
	}
	switch {
	case c.quota > 0 && c.capabilities.Cursored:
		d.keepFirst()
	case c.quota > 0:
		c.more = d.keepSample(c.lane, c.quota)
	default:
		most := c.retriesAllowed(d, p)
		d.of[retried] = d.of[retried][:min(most, len(d.of[retried]))]
		d.of[dying] = d.of[dying][:min(most-len(d.of[retried]), len(d.of[dying]))]
	}
	if !c.capabilities.Cursored {
		p.retries = len(d.of[retried]) + len(d.of[dying])
	}
	kept := slices.Concat(d.of[:]...)
	c.order.keep(kept)
	if d.marks != nil || len(d.of[fresh]) < d.size {
		p.marks = d.marks
		p.keep(kept)
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
		if c.order != nil {
			c.order.blockAll(s.order[s.from:s.to])
		}
	}
	return nil
}

// divide divides the items of a page. Behind an item of a cursor that is not executed now, the other items wait too.
func (c *selectCall) divide(p *page) *division {
	l, d := c.lane, &division{size: len(c.keys)}
	f := filter{
		now: time.Now(), round: c.round, samples: c.quota > 0, inOrder: c.capabilities.Cursored, cursor: c.cursor,
		sweeps: l.sweep != nil, discards: c.capabilities.Discarder, givesUp: c.swept.givesUp,
		executeNumber: c.settings.ExecuteNumber,
	}
	atHead := true
	for i, key := range c.keys {
		if c.keysInFlight[key] {
			atHead = false
			continue
		}
		r, known := p.records[key]
		class, m := f.judge(i, r, known)
		class = c.order.judge(i, class, m, r)
		if f.sweeps && r.waits() && class != givenUp {
			l.paging.pass.waiting++
		}
		if class >= retried {
			c.reach.parked++
		}
		if atHead = atHead && class >= classes; atHead {
			c.reach.head++
		}
		switch class {
		case fresh, suspected:
			c.untested++
		case backsOff:
			c.retryAt = earlier(c.retryAt, r.retryAt)
			if f.samples && !r.dead { // else only its Discard backs off
				d.backingOff = append(d.backingOff, int32(i))
			}
		case givenUp:
			c.swept.gaveUp = append(c.swept.gaveUp, SweptItem{Key: key, Err: r.cause, At: f.now})
			l.failures.note(key, record{dead: true, unsaved: true})
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

// keepFirst leaves the first item of a cursor, and the dead items before it.
func (d *division) keepFirst() {
	first := slices.IndexFunc(d.of[fresh], func(i int32) bool { return d.marks == nil || d.marks[i] != passed })
	if first >= 0 {
		d.of[fresh] = d.of[fresh][:first+1]
	}
}

// keepSample leaves the items that the lane tries in this round of the outage: n items that have not failed alone,
// spread over the page. If there are none, it leaves one item, which is one whose pause is over, or else one that backs
// off. Items whose Discard is due stay, because they are not executed. It reports whether the page has more items that
// have not failed alone.
func (d *division) keepSample(l *lane, n int) (more bool) {
	untried := slices.Concat(d.of[fresh], d.of[suspected])
	var kept []int32
	switch {
	case len(untried) > 0:
		kept = l.spread(untried, n)
	case len(d.of[retried]) > 0:
		kept = l.spread(d.of[retried], 1)
	default:
		kept = l.spread(d.backingOff, 1)
	}
	d.of[fresh], d.of[suspected], d.of[retried] = nil, nil, nil
	for _, i := range kept {
		d.keep(retried, i, single)
	}
	return len(kept) < len(untried)
}

// spread returns n of the indexes, at even distances. The first one moves on with each call, so that samples of one
// page find a healthy item wherever it is.
func (l *lane) spread(indexes []int32, n int) []int32 {
	if len(indexes) <= n {
		return indexes
	}
	const stride = 7919
	l.sampling.probes++
	some := make([]int32, n)
	for i := range some {
		some[i] = indexes[(l.sampling.probes*stride+i*len(indexes)/n)%len(indexes)]
	}
	return some
}

// retryShare is the least ratio of other calls to calls for retries, while a lane has enough other items.
const retryShare = 6

// retriesAllowed bounds the retries and the Discards of a page together, so that poison does not take the executors
// from healthy items (X2). The others wait for the next page.
//
// Six calls for other items pay for one retry. A page that is full of other items has no retries until they are paid
// for all executors at once. With 8 executors, for example, a page of 8 batches with one retry takes as long as two
// rounds of calls, and so does one with 8 retries: so 8 of them come together, after 48 calls. A page that is not full
// has as many retries as it may have items, which is about a second of work. If a full page of a Paged dealer holds few
// other items, it has a sixth of them.
func (c *selectCall) retriesAllowed(d *division, p *page) int {
	others := len(d.of[fresh]) + len(d.of[suspected])
	if others < c.reach.wanted {
		if c.capabilities.Paged && p.fetched >= c.selection.Limit { // other items are behind the page
			return max(1, c.reach.wanted/retryShare)
		}
		return c.reach.wanted
	}
	l := c.lane
	l.retryCredit += len(d.of[fresh])/c.settings.ExecuteNumber + len(d.of[suspected])
	most := min(l.retryCredit/retryShare, len(d.of[retried])+len(d.of[dying]))
	if l.retryCredit/retryShare < c.settings.ThreadNumber {
		most = 0
	}
	l.retryCredit = min(l.retryCredit-most*retryShare, retryShare*c.settings.ThreadNumber)
	return most
}
