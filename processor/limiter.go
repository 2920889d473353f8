package processor

import (
	"time"

	"golang.org/x/time/rate"
)

// limiter enforces this server's share of rate_per_second (X4). The scheduler's lock guards it.
type limiter struct {
	rate    *rate.Limiter // nil until it is first needed
	current bool          // rate has the share of the present queues and settings
	until   time.Time     // no batch may start before
}

// allow takes n items from the rate. If the rate does not allow them yet, allow sets l.until and returns false. The batch
// then stays on its page, so that a drain does not have to wait for it.
func (l *limiter) allow(now time.Time, n int, s *Settings, grants map[string]*grant) bool {
	l.until = time.Time{}
	if s.RatePerSecond == 0 || n == 0 {
		return true
	}
	if l.rate == nil || !l.current {
		l.update(now, s, grants)
	}
	r := l.rate.ReserveN(now, n)
	d := r.DelayFrom(now)
	if d == 0 {
		return true
	}
	r.CancelAt(now)
	l.until = now.Add(min(d, time.Hour))
	return false
}

// invalidate makes the next call of allow compute the share again.
func (l *limiter) invalidate() { l.current, l.until = false, time.Time{} }

// update computes the share of this server. It runs once after a change of the queues or the settings, before the first
// batch, because a share per Grant would cost a pass over all queues for each of them.
func (l *limiter) update(now time.Time, s *Settings, grants map[string]*grant) {
	l.current = true
	share := 0.0
	for _, g := range grants {
		if !g.draining {
			share += s.RatePerSecond / float64(max(1, g.total))
		}
	}
	burst := max(s.ExecuteNumber, int(share))
	if l.rate == nil {
		l.rate = rate.NewLimiter(rate.Limit(share), burst)
		return
	}
	l.rate.SetLimitAt(now, rate.Limit(share))
	l.rate.SetBurstAt(now, burst)
}
