package engine

import (
	"cmp"
	"time"

	"golang.org/x/time/rate"

	"github.com/dutyrota/rota/processor"
)

// rateOf returns the items per second of a queue; 0 is no bound.
func (s *Settings) rateOf(l processor.QueueLimits) float64 {
	return max(0, cmp.Or(l.RatePerSecond, s.QueueRatePerSecond))
}

// inFlightOf returns the batches of a queue that may be in flight; 0 is no bound.
func (s *Settings) inFlightOf(l processor.QueueLimits) int {
	return max(0, cmp.Or(l.MaxInFlight, s.QueueMaxInFlight))
}

// SetLimits replaces the bounds of a queue that the processor holds. Batches in flight go on.
func (p *Processor) SetLimits(id string, limits processor.QueueLimits) {
	s := p.lock()
	defer s.mu.Unlock()
	g := s.grants[id]
	if g == nil || g.lane.limits == limits {
		return
	}
	g.lane.limit(limits, s.settings) // and not those of g.queue, which calls in flight read
	s.due.update(g.lane)
	s.offerLocked(g.lane)
	s.placeLocked(g.lane, time.Now())
	s.wakeLocked()
}

// limit replaces the bounds of a lane. It begins with a whole burst, so that nothing has to be saved up.
func (l *lane) limit(limits processor.QueueLimits, s *Settings) {
	l.limits, l.rate = limits, newQueueRate(s.rateOf(limits))
	l.times.holds[holdRate] = time.Time{}
}

// queueRate bounds the items per second of one queue (X11). It bounds the pages and not
// the batches: a page has as many items as the rate has saved up, at most those of a second, and the lane rests until
// it has saved some again. A batch therefore never waits for the rate of its queue on a page, where it would take the
// place of other queues. The scheduler's lock guards it. A nil queueRate bounds nothing.
type queueRate struct{ *rate.Limiter }

// newQueueRate returns the bound for a rate; nil for none.
func newQueueRate(perSecond float64) *queueRate {
	if perSecond == 0 {
		return nil
	}
	return &queueRate{rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond)))}
}

// atMost returns how many items the next page has, at most n.
func (r *queueRate) atMost(now time.Time, n int) int {
	if r == nil {
		return n
	}
	return min(n, max(1, int(r.TokensAt(now))))
}

// take counts a batch of n items. A select may return more items than it was asked for, so the rate may have to make up
// for them.
func (r *queueRate) take(now time.Time, n int) {
	for r != nil && n > 0 {
		some := min(n, r.Burst())
		r.ReserveN(now, some)
		n -= some
	}
}

// readyAt returns when the rate has saved up enough for a page: a quarter of a second of it, or one item. With less,
// each page would have one item.
func (r *queueRate) readyAt(now time.Time) time.Time {
	if r == nil {
		return now
	}
	missing := max(1, float64(r.Burst())/4) - r.TokensAt(now)
	if missing <= 0 {
		return now
	}
	return now.Add(time.Duration(missing / float64(r.Limit()) * float64(time.Second)))
}

// full reports whether no further batch of the lane may start, because too many are in flight (X11).
func (l *lane) full(s *Settings) bool {
	most := s.inFlightOf(l.limits)
	return most > 0 && l.batches >= most
}

// offerLocked makes the page of a lane ready, if a batch of it may start.
func (s *scheduler) offerLocked(l *lane) {
	waits := l.serial && l.batches > 0 || l.full(s.settings)
	if l.page.startable() && !waits {
		s.ready.add(l)
	}
}
