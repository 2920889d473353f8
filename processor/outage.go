package processor

import (
	"math"
	"time"
)

// outage judges, from the failures since the last success, whether what Execute calls is away (X5). Each of its methods
// is a decision that depends on its arguments alone; the scheduler carries it out. The scheduler's lock guards it.
type outage struct {
	openSince   time.Time           // since when the breaker is open; zero while it is closed
	closes      uint32              // how often the breaker has closed
	failing     map[string]struct{} // the items that have failed since the last success, by queue and key, beside known ones
	unnamed     int                 // the failures since the last success that no item has caused
	since       time.Time           // the first of these failures
	lastFailure time.Time           // the last failure of any item that may be an outage's

	// The most items that failed in a row of late before one succeeded, so that they were a block of poison and no outage.
	block   int
	blockAt time.Time

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

func (o *outage) open() bool { return !o.openSince.IsZero() }

// doubted reports whether so much has failed since the last success that a further failure says little about its item.
func (o *outage) doubted() bool { return len(o.failing)+o.unnamed >= failuresToOpen }

// opens reports whether the failures are an outage rather than poison. After a block of poison it takes twice as many
// items, or doubtFor.
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

// fail counts failures. It reports whether they open the breaker.
func (o *outage) fail(now time.Time, unnamed int, items ...string) (opened bool) {
	o.lastFailure = now
	if !o.doubted() && len(o.failing)+o.unnamed == 0 {
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
	o.unnamed = min(o.unnamed+unnamed, math.MaxInt32)
	if o.open() || !o.opens(now) {
		return false
	}
	o.openSince = now
	return true
}

// succeed forgets the failures after a success. It reports whether it has closed the breaker.
func (o *outage) succeed(now time.Time) (closed bool) {
	if o.doubted() {
		if now.Sub(o.blockAt) >= blockFor {
			o.block = 0
		}
		o.block, o.blockAt = max(o.block, len(o.failing)), now
	}
	return o.end()
}

// end forgets the failures, and closes the breaker.
func (o *outage) end() (closed bool) {
	closed = o.open()
	*o = outage{closes: o.closes, block: o.block, blockAt: o.blockAt, sample: o.sample}
	if closed {
		o.closes++
	}
	return closed
}

// recover notes that an item that had failed has succeeded: what failed with it was more likely an outage than poison.
func (o *outage) recover() { o.block /= 2 }

// quiet reports whether an open breaker has seen no failure for so long that no probe is left to close it.
func (o *outage) quiet(now time.Time, s *Settings) bool {
	return o.open() && now.Sub(o.lastFailure) > quietProbes*s.ProbeMax
}

// sample says how many items an open breaker lets each select try. A source whose first items are all bad looks like an
// outage until a healthy item is found. Each round therefore tries twice as many items as the last one, so that some
// thousand bad items hide a healthy one for half a minute, and a service that is away gets a bounded number of calls.
type sample struct {
	width  int           // the items of the present round
	failed int           // of these
	tried  int           // since the breaker opened
	next   time.Time     // no select begins before
	usual  time.Duration // the usual duration of a call before the breaker opened; 0 if none was measured
}

const (
	// probesPerSecond bounds the probes of a task type on this server, as a rate. It also bounds a round.
	probesPerSecond = 100

	// selectEvery is the least time between two selects while the breaker is open.
	selectEvery = 400 * time.Millisecond

	// sampleMost is how many items an outage tries at that pace. From then on the lanes pause between their rounds.
	sampleMost = 10_000

	// A probe that takes slowFactor times the usual duration of a call, and at least slowProbe, is slow.
	slowFactor = 10
	slowProbe  = 100 * time.Millisecond
)

// begin starts the sample of a new outage. Soon after a block of poison it goes on with the width that had found the
// end of the block.
func (p *sample) begin(usual time.Duration, goOn bool) {
	width := 1
	if goOn {
		width = max(width, p.width)
	}
	*p = sample{width: width, usual: usual}
}

// claim returns how many items the next select may try, and sets the time of the select after it.
func (p *sample) claim(now time.Time) int {
	if p.failed >= p.width {
		p.width, p.failed = min(2*p.width, probesPerSecond), 0
	}
	p.next = now.Add(max(selectEvery, time.Duration(p.width)*time.Second/probesPerSecond))
	return p.width
}

// fail counts a probe that has failed. After a slow one the next round is one item: a service that is slow must not get
// more calls because it is slow.
func (p *sample) fail(took, timeout time.Duration) {
	p.tried++
	p.failed++
	if timeout > 0 && took >= timeout || p.usual > 0 && took >= max(slowProbe, slowFactor*p.usual) {
		p.width, p.failed = 1, 0
	}
}

// exhausted reports whether the outage has tried so many items that a healthy one is unlikely to be near.
func (p *sample) exhausted() bool { return p.tried >= sampleMost }
