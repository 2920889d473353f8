package engine

import (
	"slices"
	"time"
)

// samplingStage makes selects try a sample of their items while the circuit breaker is open (X5).
var samplingStage = stage{
	claim: func(c *selectCall, now time.Time, s *scheduler) {
		c.lane.sampling.closes = s.outage.closes
		if s.outage.open() {
			c.quota = c.lane.rate.atMost(now, s.outage.sample.claim(now))
		}
	},
	prepare: func(c *selectCall) {
		if c.quota == 0 {
			return
		}
		c.judges = true
		if c.capabilities.Keyed && !c.capabilities.Cursored {
			c.wanted = c.settings.FetchNumber * c.pagesOfSample()
		}
	},
	sift: func(c *selectCall, d *division) {
		switch {
		case c.quota == 0:
		case c.capabilities.Cursored:
			d.keepFirst()
		default:
			c.untried = d.keepSample(&c.lane.sampling, c.quota)
		}
	},
	page: func(c *selectCall, _ items, p *page) error {
		if n := p.unstarted(); c.quota > 0 && n > 1 && !c.capabilities.tracksItems() {
			all := make([]int32, n)
			for i := range all {
				all[i] = int32(i)
			}
			p.keep(c.lane.sampling.spread(all, 1))
		}
		return nil
	},
	finish: func(c *selectCall, _ *scheduler) { c.lane.sampling.untried = c.untried || c.goesOn },
	next: func(c *selectCall, s *scheduler) {
		if !c.goesOn {
			c.lane.times.hold(holdProbe, s.outage.nextProbe(c.lane, s.settings, c.now, 0))
		}
		s.afterOutageLocked(c.lane, c.now)
	},
	take: func(b *batch, s *scheduler) {
		if s.outage.open() {
			b.quota = b.size()
		}
	},
}

// sampling is what a lane knows of outages.
type sampling struct {
	closes  uint32 // how often the breaker had closed when the last select was claimed; that select may read it
	untried bool   // while the breaker is open: the lane may have items that the outage has not tried
	probes  int    // number of items that were probes; only the lane's select uses it
}

// pagesOfSample returns how far the sample reaches, in pages. Where its select cannot go on behind a page, it reaches
// further with each round, as far as a select reaches behind failed items.
func (c *selectCall) pagesOfSample() int {
	if c.capabilities.Paged {
		return 1
	}
	return min(c.quota, 1+parkedRoom)
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
func (d *division) keepSample(s *sampling, n int) (more bool) {
	untried := slices.Concat(d.of[fresh], d.of[suspected])
	var kept []int32
	switch {
	case len(untried) > 0:
		kept = s.spread(untried, n)
	case len(d.of[retried]) > 0:
		kept = s.spread(d.of[retried], 1)
	default:
		kept = s.spread(d.backingOff, 1)
	}
	d.of[fresh], d.of[suspected], d.of[retried] = nil, nil, nil
	for _, i := range kept {
		d.keep(retried, i, single)
	}
	return len(kept) < len(untried)
}

// spread returns n of the indexes, at even distances. The first one moves on with each call, so that samples of one
// page find a healthy item wherever it is.
func (s *sampling) spread(indexes []int32, n int) []int32 {
	if len(indexes) <= n {
		return indexes
	}
	const stride = 7919
	s.probes++
	some := make([]int32, n)
	for i := range some {
		some[i] = indexes[(s.probes*stride+i*len(indexes)/n)%len(indexes)]
	}
	return some
}

// sample says how many items an open breaker lets each select try. A source whose first items are all bad looks like an
// outage until a healthy item is found. Each round therefore tries twice as many items as the last one, so that some
// thousand bad items hide a healthy one for half a minute, and a service that is away gets a bounded number of calls.
type sample struct {
	width  int           // the items of the present round
	failed int           // how many of these have failed
	tried  int           // the probes that have failed since the breaker opened
	next   time.Time     // the earliest start of the next select
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

// nextProbe returns when a lane is selected next while the breaker is open, after the pause of RetryAfter at the
// earliest: a lane with items that the outage has not tried is due at once, and its turn comes with the pace of all
// selects. While the breaker is closed, nextProbe returns zero.
func (o *outage) nextProbe(l *lane, s *Settings, now time.Time, after time.Duration) time.Time {
	if !o.open() {
		return time.Time{}
	}
	pause := max(s.SleepTimeInterval, after)
	if !l.sampling.untried || o.sample.exhausted() {
		pause = max(pause, o.probePause(now, s))
	}
	return now.Add(pause)
}

// probePause returns the pause of a lane before its next probe: a quarter of the time since the breaker opened, from
// Retry to ProbeMax, with jitter.
func (o *outage) probePause(now time.Time, s *Settings) time.Duration {
	return s.jitter(max(s.Retry, s.floor(), now.Sub(o.openSince)/4), s.ProbeMax)
}

// afterOutageLocked lets a lane rest for half a second at most, if the breaker has closed since its last select.
func (s *scheduler) afterOutageLocked(l *lane, now time.Time) {
	if l.sampling.closes != s.outage.closes && !s.outage.open() {
		l.times.relax(now.Add(s.settings.floor()))
	}
}
