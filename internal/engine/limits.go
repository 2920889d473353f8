package engine

import (
	"cmp"
	"math"
	"time"

	"golang.org/x/time/rate"
)

// limiter enforces this server's share of rate_per_second (X4). The scheduler's lock guards it.
type limiter struct {
	rate    *rate.Limiter // nil until it is first needed
	current bool          // rate has the share of the present queues and settings
	share   float64       // items per second of this server
	until   time.Time     // the earliest start of the next batch
	probing bool          // the breaker is open: at most probesPerSecond

	part   float64 // the argument of SetRateShare
	parted bool    // SetRateShare was called
}

// SetRateShare sets the part of Settings.RatePerSecond that this server may use, from 0 to 1. Until the first call, it
// is the part that the granted queues are of all queues. A caller that grants only some of its queues at a time calls
// SetRateShare: otherwise the parts of the queues that no processor has would be lost. The parts of all servers must
// not sum to more than 1.
func (p *Processor) SetRateShare(part float64) {
	s := p.lock()
	defer s.mu.Unlock()
	part = min(1, max(0, part))
	if s.limiter.parted && s.limiter.part == part {
		return
	}
	s.limiter.part, s.limiter.parted = part, true
	s.limiter.invalidate()
	s.startNextLocked(time.Now())
}

// allow takes n items from the rate; n is at most atMost. If the rate does not allow them yet, allow sets l.until and
// returns false. The batch then stays on its page, so that a drain does not have to wait for it.
func (l *limiter) allow(now time.Time, n int, s *Settings, grants grants) bool {
	l.until = time.Time{}
	if n == 0 || !l.limits(s) {
		return true
	}
	l.update(now, s, grants)
	r := l.rate.ReserveN(now, n)
	d := r.DelayFrom(now)
	if d == 0 {
		return true
	}
	r.CancelAt(now)
	l.until = now.Add(min(d, time.Hour))
	return false
}

// atMost returns the size of the next batch, which is at most n. A batch that is larger than a burst is split: a server
// with a small share would otherwise exceed it by far when it begins.
func (l *limiter) atMost(now time.Time, n int, s *Settings, grants grants) int {
	if !l.limits(s) {
		return n
	}
	l.update(now, s, grants)
	return min(n, l.rate.Burst())
}

// limits reports whether there is a rate.
func (l *limiter) limits(s *Settings) bool { return s.RatePerSecond > 0 || l.probing }

// probe begins or ends the rate of an outage.
func (l *limiter) probe(on bool) {
	l.probing = on
	l.invalidate()
}

// invalidate makes the next call of update compute the share again.
func (l *limiter) invalidate() { l.current, l.until = false, time.Time{} }

// update computes the share of this server. It does so once after a change of the queues or the settings, before the
// first batch, because a share per Grant would cost a pass over all queues for each of them.
func (l *limiter) update(now time.Time, s *Settings, grants grants) {
	if l.current {
		return
	}
	l.current = true
	l.share = l.part * s.RatePerSecond
	for _, g := range grants {
		if !g.draining && !l.parted {
			l.share += s.RatePerSecond / float64(max(1, g.total))
		}
	}
	burst := max(1, int(l.share))
	if l.probing {
		if s.RatePerSecond == 0 || l.share > probesPerSecond {
			l.share = probesPerSecond
		}
		burst = max(1, min(int(l.share), probesPerSecond/10))
	}
	if l.rate == nil {
		l.rate = rate.NewLimiter(rate.Limit(l.share), burst)
		return
	}
	l.rate.SetLimitAt(now, rate.Limit(l.share))
	l.rate.SetBurstAt(now, burst)
}

// inFlight bounds the batches in flight by this server's share of max_in_flight (P10). The scheduler's lock guards it.
type inFlight struct {
	batches int
	most    int // the argument of SetMaxInFlight
}

// unbounded is the bound before the first call of SetMaxInFlight.
const unbounded = math.MaxInt

// SetMaxInFlight sets how many batches, which are calls of Execute or Discard, may be in flight at once. Until the
// first call of SetMaxInFlight only ThreadNumber bounds them. If more batches are in flight, they go on, and none
// starts until there are fewer. With 0 the processor selects nothing either, and drops the items that have not started,
// so that another server may execute them.
//
// Drained signals when the batches in flight have come down to the number.
func (p *Processor) SetMaxInFlight(most int) {
	s := p.lock()
	defer s.mu.Unlock()
	if s.inFlight.most == most {
		return
	}
	s.inFlight.most = most
	now := time.Now()
	if most == 0 {
		s.dropReadyLocked(now)
	}
	s.startNextLocked(now)
}

// BatchesInFlight returns the number of batches in flight.
func (p *Processor) BatchesInFlight() int {
	s := p.lock()
	defer s.mu.Unlock()
	return s.inFlight.batches
}

// full reports whether no batch may start.
func (f *inFlight) full() bool { return f.batches >= f.most }

// roomLocked reports whether another select may begin. There is room for one page per executor, including the pages
// that are being selected. This bounds memory. While a page is ready, it also leaves at least one executor to batches,
// however many empty lanes are due. If fewer batches than executors may be in flight, there is room for one page more
// than batches, so that the next select runs meanwhile.
func (s *scheduler) roomLocked() bool {
	most := s.inFlight.most
	return most > 0 && len(s.ready.lanes)+s.selects <= min(s.settings.ThreadNumber-1, most)
}

// A page is about pageTime of work, so that a lane waits for a few pages of that length and not for pages of
// fetch_number items, however long these take. The estimate may be wrong. A page that takes longer than pageCut gives
// way to a lane that waits.
const (
	pageTime = time.Second
	pageCut  = 2 * pageTime
)

// pace is the time that one item takes, in nanoseconds: an exponentially weighted average over batches. It is 0 while
// nothing was measured.
type pace float64

// measure adds a batch of n items. The last eight batches count most.
func (p *pace) measure(took time.Duration, n int) {
	each := pace(max(1, took)) / pace(n)
	if *p == 0 {
		*p = each
		return
	}
	*p += (each - *p) / 8
}

// items returns the number of items that one executor executes in d.
func (p pace) items(d time.Duration) float64 { return float64(d) / float64(p) }

// measurePaceLocked adds an executed batch to the pace of its lane, and to the pace of all lanes. A new lane begins
// with the latter.
func (b *batch) measurePaceLocked(s *scheduler) {
	if b.mark > ordinary && b.lane.pace > 0 { // an item of a small batch takes longer than others
		return
	}
	if b.quota == 0 {
		s.outage.usual.measure(b.took, 1)
	}
	b.lane.pace.measure(b.took, b.size())
	s.pace.measure(b.took, b.size())
}

// onlyPageBatches is the least number of batches per executor of a page that has all executors. With fewer batches,
// executors would often wait for the last batch of the page.
const onlyPageBatches = 4

// pageSizeLocked returns how many items the select of a lane should return: about pageTime of work for the lane's share
// of the executors, at most what its share of the rate allows in that time, and at most fetch_number. The lanes that
// have a page, are being selected or are due share alike.
func (s *scheduler) pageSizeLocked(l *lane, now time.Time) int {
	executors := max(1, min(s.settings.ThreadNumber, s.inFlight.most))
	pages := min(executors, len(s.ready.lanes)+s.selects+s.due.waiting(now, s.settings.ThreadNumber))
	size := cmp.Or(l.pace, s.pace).pageSize(s.settings, executors, pages, s.capabilities.Cursored)
	if s.settings.RatePerSecond > 0 {
		s.limiter.update(now, s.settings, s.grants)
		allowed := s.limiter.share * pageTime.Seconds() / float64(pages)
		size = int(min(float64(size), max(1, allowed)))
	}
	return l.rate.atMost(now, size)
}

// pageSize returns how many items a page has if it shares the executors with other pages: as many as its executors
// execute in pageTime, at least a batch for each of them, and at most fetch_number. With 8 executors, 2 pages and 50 ms
// per item, it is 80 items. Until a batch was measured, it is fetch_number.
func (p pace) pageSize(s *Settings, executors, pages int, cursored bool) int {
	if p == 0 {
		return s.FetchNumber
	}
	executors, batches := executors/pages, 1
	switch {
	case cursored: // one batch after another (X3)
		executors = 1
	case pages == 1:
		batches = onlyPageBatches
	}
	work := min(float64(s.FetchNumber), float64(executors)*p.items(pageTime))
	return min(s.FetchNumber, max(int(work), executors*batches*s.ExecuteNumber))
}

// cutPageLocked makes room for a lane that waits for its select: it drops the rest of the page whose turn it is, if
// that page has taken too long. The next select of that page's lane returns the dropped items again. cutPageLocked
// keeps a page that has given no batch yet, because it may wait for the rate and would never get a turn.
func (s *scheduler) cutPageLocked(now time.Time) bool {
	l := s.ready.next()
	if l == nil || l.page.batches == 0 || now.Sub(l.page.readyAt) <= pageCut {
		return false
	}
	skip(&s.stats, l.page.drop())
	s.placeLocked(l, now)
	return s.roomLocked()
}
