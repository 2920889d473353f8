package processor

import (
	"time"

	"golang.org/x/time/rate"
)

// limiter enforces this server's share of rate_per_second (X4). The scheduler's lock guards it.
type limiter struct {
	rate    *rate.Limiter // nil until it is first needed
	current bool          // rate has the share of the present queues and settings
	share   float64       // items per second of this server
	until   time.Time     // no batch may start before
	probing bool          // the breaker is open: at most probesPerSecond

	part   float64 // of SetRateShare
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
	s.wakeNextLocked(time.Now())
}

// allow takes n items from the rate; n is at most atMost. If the rate does not allow them yet, allow sets l.until and
// returns false. The batch then stays on its page, so that a drain does not have to wait for it.
func (l *limiter) allow(now time.Time, n int, s *Settings, grants map[string]*grant) bool {
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
func (l *limiter) atMost(now time.Time, n int, s *Settings, grants map[string]*grant) int {
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

// shareOf returns the items per second of this server.
func (l *limiter) shareOf(now time.Time, s *Settings, grants map[string]*grant) float64 {
	l.update(now, s, grants)
	return l.share
}

// invalidate makes the next call of update compute the share again.
func (l *limiter) invalidate() { l.current, l.until = false, time.Time{} }

// update computes the share of this server. It does so once after a change of the queues or the settings, before the
// first batch, because a share per Grant would cost a pass over all queues for each of them.
func (l *limiter) update(now time.Time, s *Settings, grants map[string]*grant) {
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
