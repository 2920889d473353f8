package engine

import (
	"math"
	"time"
)

// evidence is what the end of a call says about the service that the dealer calls. The rules about outages, failing
// queues and failing dealers share it.
type evidence struct {
	began   time.Time // of the call
	now     time.Time
	took    time.Duration // of the dealer
	success bool          // an item is done
	failed  bool          // the call has failed; some of its items may be done

	// Of a failed call:
	err          error
	inconclusive bool     // it says nothing about an outage: the items are at fault, or the batch is divided
	known        bool     // all items that failed had failed before the last success, so they are poison
	expected     bool     // an earlier sweep has failed like this
	items        []string // the items that failed, by queue and key; nil if no item is known to be the cause
	first        uint64   // batchResult.first
	wide         bool     // it has failed for no single item: a select, or a batch of a dealer that does not know items

	// failedItems returns the keys of the items that have failed alone or by name, and reports whether none of
	// its items is done. It is set for a failed batch only.
	failedItems func() (keys []string, all bool)

	outside   bool          // the dealer was not called, because the queues were not entered
	selects   bool          // the call is a select that has succeeded or failed
	exhausted bool          // it shows that no item of its lane can fail again, or that its sweep is complete and none has
	recovered bool          // an item that had failed is done
	probe     bool          // a probe has failed
	timeout   time.Duration // of the probe: it took at most that if it is not 0
}

// change is what evidence changes.
type change int

const (
	noChange      change = iota
	firstSuccess         // after a failure
	breakerClosed        // by this success
	breakerOpened        // by this failure
)

// outage judges, from the failures since the last success, whether what Execute calls is away (X5). Each of its methods
// is a decision that depends on its arguments alone; the scheduler carries it out. The scheduler's lock guards it.
type outage struct {
	openSince   time.Time           // since when the breaker is open; zero while it is closed
	closes      uint32              // how often the breaker has closed
	clean       bool                // nothing has failed since the last success
	failing     map[string]struct{} // the items that have failed since the last success, beside known ones
	unnamed     int                 // the failures since the last success that no item has caused
	since       time.Time           // the first of these failures
	failedSince time.Time           // the first failure of any item since the last success, a known one too; see rest
	failedAt    time.Time           // the last of them
	lastFailure time.Time           // the last failure of any item that may be an outage's

	// The largest number of items that failed in a row before one succeeded, so that they were a block of poison and no
	// outage. It is forgotten blockFor after the last such block, at blockAt.
	block   int
	blockAt time.Time

	usual  pace // the time of a call while the breaker is closed
	sample sample
}

const (
	// failuresToOpen is how many distinct items must fail without a success in between. A failure of a select counts as
	// an item of its own. So does each failure of a dealer that is not Keyed.
	failuresToOpen = 3

	// mostFailing bounds the items that an outage remembers. More of them prove nothing more.
	mostFailing = 10_000

	// blockFor is how long a block of poison makes further blocks likely.
	blockFor = 10 * time.Minute

	// doubtFor is how long items may fail without a success before the breaker opens, however large blocks of poison are.
	doubtFor = 10 * time.Second

	// quietProbes is the time without a failure, in multiples of ProbeMax, after which an open breaker closes: no probe
	// is left to close it, because the failing items are gone, or dead, or their queues have moved.
	quietProbes = 2
)

// observe counts the end of a call, and returns what it changes. Without probes there is no breaker.
func (o *outage) observe(e evidence, probes bool) (c change) {
	if e.recovered { // what failed with the item was more likely an outage than poison
		o.block /= 2
	}
	switch {
	case e.success && o.clean && !e.failed:
	case e.success && o.doubted() && e.began.Before(o.since): // the service was there before the failures
	case e.success:
		c = firstSuccess
		if o.succeed(e.now) {
			c = breakerClosed
		}
	case !e.failed || e.inconclusive:
	case !probes, e.known, e.expected && !o.open():
		o.noteFailure(e.now)
	case o.fail(e.now, e.items...):
		c = breakerOpened
	}
	if e.probe {
		o.sample.fail(e.took, e.timeout)
	}
	return c
}

func (o *outage) open() bool { return !o.openSince.IsZero() }

// doubted reports whether so much has failed since the last success that a further failure says little about its item.
func (o *outage) doubted() bool { return len(o.failing)+o.unnamed >= failuresToOpen }

// opens reports whether the failures are an outage rather than poison. Three distinct items open the breaker, or three
// failures that no item has caused, such as those of selects. After a block of poison it takes twice as many items as
// the block had, or doubtFor. Both kinds of failures count together, as parts of what would open the breaker alone:
// after a block of 10 items, 20 items do, and so do 10 items (a half) with two selects (two thirds).
func (o *outage) opens(now time.Time) bool {
	most := failuresToOpen
	if now.Sub(o.blockAt) < blockFor {
		most = max(most, 2*o.block)
	}
	switch named := min(len(o.failing), most); {
	case !o.doubted():
		return false
	case now.Sub(o.since) >= doubtFor:
		return true
	default:
		return named*failuresToOpen+o.unnamed*most >= failuresToOpen*most
	}
}

// fail counts the failures of items, or one that no item has caused. It reports whether they open the breaker.
func (o *outage) fail(now time.Time, items ...string) (opened bool) {
	o.noteFailure(now)
	o.lastFailure = now
	if len(o.failing)+o.unnamed == 0 {
		o.since = now
	}
	if o.failing == nil {
		o.failing = map[string]struct{}{}
	}
	for _, item := range items {
		if len(o.failing) < mostFailing {
			o.failing[item] = struct{}{}
		}
	}
	if len(items) == 0 {
		o.unnamed = min(o.unnamed+1, math.MaxInt32)
	}
	if o.open() || !o.opens(now) {
		return false
	}
	o.openSince = now
	o.sample.begin(time.Duration(o.usual), now.Sub(o.blockAt) < time.Minute)
	return true
}

func (o *outage) noteFailure(now time.Time) {
	o.clean, o.failedSince, o.failedAt = false, earlier(o.failedSince, now), now
}

// rest forgets since when items fail if nothing has failed for longer than the retry policy lets an item wait: what
// failed then has ended without a success, and the next failure may be another outage.
func (o *outage) rest(now time.Time, s *Settings) {
	if now.Sub(o.failedAt) > s.horizon() {
		o.failedSince = time.Time{}
	}
}

// succeed forgets the failures after a success. It reports whether it has closed the breaker.
func (o *outage) succeed(now time.Time) (closed bool) {
	if o.doubted() {
		if now.Sub(o.blockAt) >= blockFor {
			o.block = 0
		}
		o.block, o.blockAt = max(o.block, len(o.failing)), now
	}
	closed = o.end()
	o.clean, o.failedSince = true, time.Time{}
	return closed
}

// end forgets the failures, and closes the breaker. Without a success it does not forget since when items fail: else a
// breaker that closes because nothing fails for a while, and opens again, would doubt all failures for ever.
func (o *outage) end() (closed bool) {
	closed = o.open()
	*o = outage{
		closes: o.closes, block: o.block, blockAt: o.blockAt, usual: o.usual, sample: o.sample,
		failedSince: o.failedSince, failedAt: o.failedAt,
	}
	if closed {
		o.closes++
	}
	return closed
}

// quiet reports whether the breaker is open and nothing has failed for so long that no probe is left to close it.
func (o *outage) quiet(now time.Time, s *Settings) bool {
	return o.open() && now.Sub(o.lastFailure) > quietProbes*s.ProbeMax
}

// doubts reports whether a failure of a call that begins now is no attempt of its item, unless something else proves
// that the item is at fault. The first item of a cursor needs such a proof from the beginning, because all items behind
// it wait. After the horizon of the retry policy nothing is doubted any more: what still fails then is poison, or a
// service that nobody repairs.
func (o *outage) doubts(now time.Time, s *Settings, cursored bool) bool {
	if s.ProbeMax == 0 || s.CountInOutage || !o.failedSince.IsZero() && now.Sub(o.failedSince) >= s.horizon() {
		return false
	}
	return cursored || o.doubted()
}

// selectAt returns the earliest time of the select of a lane that is due at the given time.
func (o *outage) selectAt(dueAt time.Time) time.Time {
	if o.open() && o.sample.next.After(dueAt) {
		return o.sample.next
	}
	return dueAt
}

// observeLocked gives the end of a call to the outage and to the streaks, and does what follows. If the breaker opens,
// all lanes are sampled and the unstarted items are dropped. If it closes, all lanes are due.
func (s *scheduler) observeLocked(e evidence, l *lane) {
	switch s.outage.observe(e, s.settings.ProbeMax > 0) {
	case firstSuccess:
		s.rounds.Add(1)
	case breakerClosed:
		s.rounds.Add(1)
		s.limiter.probe(false)
		s.relaxLocked(e.now)
	case breakerOpened:
		for _, g := range s.grants {
			g.lane.sampling.untried = s.capabilities.Keyed && !s.capabilities.Cursored
		}
		s.limiter.probe(true)
		s.dropReadyLocked(e.now)
	}
	l.grant.streak.observe(e, l.grant, s.rounds.Load())
	s.streak.observe(e, l.grant, l.sweep != nil)
	if e.selects && !e.failed && l.sweep == nil {
		s.endStreakLocked()
	}
}

// expireOutageLocked closes the breaker if no probe is left to close it.
func (s *scheduler) expireOutageLocked(now time.Time) {
	if s.stats.InFlight == 0 && s.outage.quiet(now, s.settings) {
		s.outage.end()
		s.limiter.probe(false)
		s.relaxLocked(now)
	}
}
