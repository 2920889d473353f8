package processor

import (
	"time"

	"github.com/cenkalti/backoff/v5"
)

// breaker is the circuit breaker of the task type on this server. It opens when failuresToOpen items fail and nothing
// succeeds in between (X5). While it is open, each lane executes one item at a time, its probe, with growing pauses. It
// closes when a probe succeeds. The scheduler's lock guards it.
type breaker struct {
	openSince   time.Time           // zero while it is closed
	closes      uint32              // how often the breaker has closed
	lastFailure time.Time           // the last failure that counts
	failing     map[string]struct{} // the items that have failed since the last success, by queue and key
	unnamed     int                 // the failures since the last success that no item has caused
}

const (
	// failuresToOpen is how many distinct items must fail without a success in between. A failure of a select counts as
	// an item of its own. So does each failure of a dealer that is not Keyed.
	failuresToOpen = 3

	// quietProbes is the time without a failure, in multiples of ProbeMax, after which an open breaker closes: no probe
	// is left to close it, because the failing items are gone, or dead, or their queues have moved.
	quietProbes = 2
)

func (b *breaker) open() bool { return !b.openSince.IsZero() }

// observeLocked counts the outcome of a batch for the breaker. Most batches return at the first condition.
func (b *batch) observeLocked(s *scheduler) {
	br := &s.breaker
	switch {
	case b.outcome == done && br.lastFailure.IsZero(), s.settings.ProbeMax == 0, b.mark < ordinary:
	case b.outcome == done, b.outcome == failed && b.result.failed < b.size():
		s.succeedLocked(b.now)
	case b.outcome != failed, b.result.retryNow, allPermanent(b.err): // the failure says nothing about an outage
	case !br.open() && b.expectedInSweepLocked(): // the failure says nothing new
	case !b.capabilities.keyed, b.capabilities.cursored, b.result.pause:
		s.failLocked(b.now, 1)
	default:
		s.failLocked(b.now, 0, b.failingItems()...)
	}
}

// failingItems returns the items of a failed batch, at most as many as open the breaker.
func (b *batch) failingItems() (items []string) {
	for i, key := range b.keys[:min(len(b.keys), failuresToOpen)] {
		items = append(items, b.grantOf(i).queue.ID+"\x00"+key)
	}
	return items
}

// observeLocked counts a failed select for the breaker.
func (c *selectCall) observeLocked(s *scheduler) {
	if c.outcome == failed && s.settings.ProbeMax > 0 && !allPermanent(c.err) {
		s.failLocked(c.now, 1)
	}
}

// failLocked counts failures, and opens the breaker after enough of them. The unstarted items are then dropped.
func (s *scheduler) failLocked(now time.Time, unnamed int, items ...string) {
	b := &s.breaker
	b.lastFailure = now
	if b.open() {
		return
	}
	if b.failing == nil {
		b.failing = map[string]struct{}{}
	}
	for _, item := range items {
		b.failing[item] = struct{}{}
	}
	if b.unnamed += unnamed; len(b.failing)+b.unnamed >= failuresToOpen {
		b.openSince = now
		s.dropReadyLocked(now)
	}
}

// succeedLocked forgets the failures. It closes the breaker, and makes all lanes due.
func (s *scheduler) succeedLocked(now time.Time) {
	b := &s.breaker
	wasOpen := b.open()
	*b = breaker{closes: b.closes}
	if wasOpen {
		b.closes++
		s.due.advance(now)
	}
}

// expireOutageLocked closes the breaker if no probe is left to close it.
func (s *scheduler) expireOutageLocked(now time.Time) {
	b := &s.breaker
	if b.open() && s.stats.InFlight == 0 && now.Sub(b.lastFailure) > quietProbes*s.settings.ProbeMax {
		s.succeedLocked(now)
	}
}

// paceLocked returns the time of the next select of a lane, which is due at the given time. While the breaker is open,
// it returns the time of the next probe. If the breaker has closed since the last select, the time is at most half a
// second from now.
func (s *scheduler) paceLocked(l *lane, at, now time.Time, after time.Duration) time.Time {
	switch soon := now.Add(s.settings.floor()); {
	case s.breaker.open():
		return now.Add(max(s.probePauseLocked(now), s.settings.SleepTimeInterval, after))
	case l.closes != s.breaker.closes && at.After(soon):
		return soon
	}
	return at
}

// probePauseLocked returns the pause of a lane before its next probe: a quarter of the time since the breaker opened,
// from Retry to ProbeMax, with jitter.
func (s *scheduler) probePauseLocked(now time.Time) time.Duration {
	d := max(s.settings.Retry, s.settings.floor(), now.Sub(s.breaker.openSince)/4)
	b := backoff.ExponentialBackOff{InitialInterval: min(d, s.settings.ProbeMax), RandomizationFactor: s.settings.RetryJitter, Multiplier: 1}
	return max(time.Nanosecond, min(b.NextBackOff(), s.settings.ProbeMax))
}
