package processor

import (
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// lane is the unit of selecting: one queue, or all queues if the dealer is a SetSelector. The scheduler's lock guards
// the fields up to sweep.
type lane struct {
	grants       []*grant
	selecting    bool  // a select is in flight
	page         *page // with unstarted items; nil if there are none
	batches      int   // batches in flight, of this page and in NOTSLEEP also of older ones
	foundNothing bool  // the last select succeeded and returned nothing to execute
	rest         rest

	dueAt     time.Time // the time of the next select, while the lane is idle
	order     uint64    // order among lanes that are due at the same time
	heapIndex int       // in dueLanes; -1 outside

	sweep *sweep // of a queue with a Run; nil in CONTINUOUS. It does not change.

	alerted  bool // the alert was sent (X2); only the lane's select uses it
	failures *failureLog
}

func newLane(store ItemStore) *lane {
	return &lane{heapIndex: -1, rest: newRest(), failures: newFailureLog(store)}
}

// selectable reports whether at least one queue of the lane may be selected.
func (l *lane) selectable() bool {
	return !l.sweepEnded() && slices.ContainsFunc(l.grants, func(g *grant) bool { return !g.draining })
}

// sweepEnded reports whether the lane has a sweep and it has ended.
func (l *lane) sweepEnded() bool { return l.sweep != nil && l.sweep.Ended() }

// idle reports whether no call in flight and no page keeps the lane from being selected. In NOTSLEEP, batches in flight
// do not. But a sweep that found nothing waits for them even then: an empty select proves the end only when nothing is
// in flight.
func (l *lane) idle(notSleep bool) bool {
	return !l.selecting && l.page == nil && (l.batches == 0 || notSleep && (l.sweep == nil || !l.foundNothing))
}

func (l *lane) inDueLanes() bool { return l.heapIndex >= 0 }

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
