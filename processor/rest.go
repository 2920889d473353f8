package processor

import (
	"time"

	"github.com/cenkalti/backoff/v5"
)

// rest decides how long a lane rests before its next select. The failures of a page set its fields. The scheduler's lock
// guards it.
type rest struct {
	backoff    backoff.ExponentialBackOff
	pause      bool          // a failure makes the lane pause
	retryAfter time.Duration // the length of the pause, if RetryAfter set one
	retryNow   bool          // the page left suspects, which are selected again at once
	retryAt    time.Time     // the first item of a cursored lane backs off until then
}

func newRest() rest {
	return rest{backoff: backoff.ExponentialBackOff{RandomizationFactor: 0.5, Multiplier: 2}}
}

// nextPause returns the pause after one more failure. It is after, if that is positive.
func (r *rest) nextPause(s *Settings, after time.Duration) time.Duration {
	if after > 0 {
		return after
	}
	r.backoff.InitialInterval, r.backoff.MaxInterval = s.Retry, s.RetryMax
	return min(r.backoff.NextBackOff(), s.RetryMax)
}

// reset makes the next pause as short as the first one.
func (r *rest) reset(s *Settings) {
	r.backoff.InitialInterval = s.Retry
	r.backoff.Reset()
}

// afterPage returns the time of the next select after a page, and forgets the failures of that page.
func (r *rest) afterPage(s *Settings, now time.Time) time.Time {
	d := s.SleepTimeInterval
	switch {
	case r.pause:
		d = r.nextPause(s, r.retryAfter)
	case r.retryAt.After(now):
		d = r.retryAt.Sub(now)
	case r.retryNow:
		d = 0
	default:
		r.reset(s)
	}
	r.pause, r.retryAfter, r.retryNow, r.retryAt = false, 0, false, time.Time{}
	return now.Add(d)
}
