package engine

import (
	"math"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/dutyrota/rota/processor"
)

// maxQueuePause bounds the pause of a queue after failures, so that the queue notices within a minute that the failures
// are over. One failing call a minute is no load.
const maxQueuePause = time.Minute

// retryFloor is the shortest time from the start of a select that found only retries to the next one. The retries
// that become due in the meantime share a page.
const retryFloor = 500 * time.Millisecond

// queuePause returns the pause of a queue after its nth failure in a row.
func (s *Settings) queuePause(n int) time.Duration { return s.pause(n, min(s.RetryMax, maxQueuePause)) }

// pause returns the nth pause of a series, with jitter.
func (s *Settings) pause(n int, most time.Duration) time.Duration {
	d, factor := float64(s.Retry), max(1, s.RetryFactor)
	for ; n > 1 && factor > 1 && d < float64(most); n-- {
		d *= factor
	}
	return s.jitter(time.Duration(min(d, float64(most))), most)
}

// asked returns the pause that RetryAfter added to err, up to RetryMax; 0 if it added none.
func (s *Settings) asked(err error) time.Duration {
	after, _ := processor.RetryOf(err)
	return min(after, s.RetryMax)
}

// jitter returns a pause that is longer or shorter at random, and at most the given one.
func (s *Settings) jitter(d, most time.Duration) time.Duration {
	b := backoff.ExponentialBackOff{InitialInterval: min(d, most), RandomizationFactor: s.RetryJitter, Multiplier: 1}
	return max(time.Nanosecond, min(b.NextBackOff(), most))
}

// floor returns the shortest time between two selects that find retries.
func (s *Settings) floor() time.Duration { return min(retryFloor, s.SleepTimeNoData) }

// horizon returns how long an item is retried: the sum of its pauses without jitter, and at least an hour.
func (s *Settings) horizon() time.Duration {
	if s.ItemMaxAttempts == 0 {
		return math.MaxInt64
	}
	left, sum, pause := float64(s.ItemMaxAttempts-1), 0.0, float64(s.Retry)
	for ; left > 0 && s.RetryFactor > 1 && pause < float64(s.RetryMax); left-- {
		sum += pause
		pause *= s.RetryFactor
	}
	sum += left * min(pause, float64(s.RetryMax))
	return max(time.Hour, time.Duration(min(sum, float64(10*365*24*time.Hour))))
}

// repetition says when the failed items of batches are selected again.
type repetition struct {
	pause      bool          // a failure makes the lane pause
	retryAfter time.Duration // the length of the pause, if RetryAfter set one
	retryNow   bool          // there are suspects, which are selected again at once
	retryAt    time.Time     // the item that a cursor waits for backs off until then
}

// rest decides how long a lane rests before its next select. The scheduler's lock guards it.
type rest struct {
	repetition           // of the page
	failures   int       // number of pauses in a row
	notBefore  time.Time // the earliest time of the next select after a page that holds only retries
}

// nextPause returns the pause after one more failure, which RetryAfter may have set.
func (r *rest) nextPause(s *Settings) time.Duration {
	if r.retryAfter > 0 {
		return r.retryAfter
	}
	r.failures++
	return s.queuePause(r.failures)
}

// observe counts a batch of the page. stops says that the batch met the loss of a queue.
func (r *rest) observe(b repetition, stops bool) {
	if b.pause || stops {
		r.pause, r.retryAfter = true, max(r.retryAfter, b.retryAfter)
	}
	r.retryNow = r.retryNow || b.retryNow
	if b.retryAt.After(r.retryAt) {
		r.retryAt = b.retryAt
	}
}

// plan plans the next select after a page or a failed select, and forgets what that has found. Outside of an outage
// nextProbe is zero.
func (r *rest) plan(t *timetable, s *Settings, now, nextProbe time.Time) {
	t.ask(askMore, now)
	t.hold(holdProbe, nextProbe)
	switch {
	case r.pause:
		if pause := r.nextPause(s); nextProbe.IsZero() {
			t.hold(holdPause, now.Add(pause))
		}
	case !nextProbe.IsZero(), r.retryNow:
	case r.retryAt.After(now):
		t.hold(holdCursor, r.retryAt)
	default:
		r.failures = 0
		t.hold(holdInterval, now.Add(s.SleepTimeInterval))
		t.hold(holdRetries, r.notBefore)
	}
	*r = rest{failures: r.failures}
}
