package processor

import (
	"time"

	"github.com/cenkalti/backoff/v5"
)

// What the scheduler does about an outage (X5): it opens and closes the breaker, and paces the selects and the probes
// while the breaker is open.

// observeLocked counts the outcome of a batch. Most batches return at the first case.
func (b *batch) observeLocked(s *scheduler) {
	if b.result.recovered && b.mark >= ordinary {
		s.outage.recover()
	}
	switch {
	case b.outcome == done && s.clean, b.mark < ordinary:
	case b.itemsDone() > 0:
		s.succeedLocked(b.now)
	case b.outcome != failed, b.result.retryNow, b.env.blames(b.err): // the failure says nothing about an outage
	case s.settings.ProbeMax == 0:
		s.clean = false
	case b.knownLocked(s), !s.outage.open() && b.expectedInSweep(): // the failure says nothing new
		s.clean = false
	case !b.capabilities.keyed, b.capabilities.cursored, b.result.pause:
		s.failLocked(b.now, 1)
	default:
		s.failLocked(b.now, 0, b.failingItems()...)
	}
	if b.quota > 0 && b.outcome == failed {
		s.outage.sample.fail(b.took, s.settings.BatchTimeout)
	}
}

// knownLocked reports whether all failed items of a batch had failed before the last success.
func (b *batch) knownLocked(s *scheduler) bool {
	return b.result.first > 0 && b.result.first < s.rounds.Load()
}

// failingItems returns the items of a failed batch, at most as many as open the breaker.
func (b *batch) failingItems() (items []string) {
	for i, key := range b.keys[:min(len(b.keys), failuresToOpen)] {
		items = append(items, b.grantOf(i).queue.ID+"\x00"+key)
	}
	return items
}

// observeLocked counts a failed select. It is no evidence if the database has refused the data of the queue.
func (c *selectCall) observeLocked(s *scheduler) {
	if c.outcome == failed && s.settings.ProbeMax > 0 && !c.env.blames(c.err) {
		s.failLocked(c.now, 1)
	}
}

// failLocked counts failures. If they open the breaker, the unstarted items are dropped, and all lanes are sampled.
func (s *scheduler) failLocked(now time.Time, unnamed int, items ...string) {
	s.clean = false
	goOn := now.Sub(s.outage.blockAt) < time.Minute
	if !s.outage.fail(now, unnamed, items...) {
		return
	}
	s.outage.sample.begin(time.Duration(s.callPace), goOn)
	for _, g := range s.grants {
		g.lane.untried = s.capabilities.keyed && !s.capabilities.cursored
	}
	s.limiter.probe(true)
	s.dropReadyLocked(now)
}

// succeedLocked forgets the failures after a success. A closed breaker makes all lanes due.
func (s *scheduler) succeedLocked(now time.Time) {
	s.clean = true
	s.rounds.Add(1)
	s.endOutageLocked(now, s.outage.succeed(now))
}

// expireOutageLocked closes the breaker if no probe is left to close it.
func (s *scheduler) expireOutageLocked(now time.Time) {
	if s.stats.InFlight == 0 && s.outage.quiet(now, s.settings) {
		s.endOutageLocked(now, s.outage.end())
	}
}

func (s *scheduler) endOutageLocked(now time.Time, closed bool) {
	if closed {
		s.limiter.probe(false)
		s.due.advance(now)
	}
}

// doubtedLocked reports whether a failure of a call that begins now is no attempt of its item, unless something else
// proves that the item is at fault. The first item of a cursor needs such a proof from the beginning, because all items
// behind it wait. After the horizon of the retry policy nothing is doubted any more: what still fails then is poison,
// or a service that nobody repairs.
func (s *scheduler) doubtedLocked(now time.Time) bool {
	switch o := &s.outage; {
	case s.settings.ProbeMax == 0, s.settings.CountInOutage, !o.since.IsZero() && now.Sub(o.since) >= s.settings.horizon():
		return false
	default:
		return s.capabilities.cursored || o.doubted()
	}
}

// nextSelectAtLocked returns the earliest time of the select of a lane that is due at the given time.
func (s *scheduler) nextSelectAtLocked(dueAt time.Time) time.Time {
	if s.outage.open() && s.outage.sample.next.After(dueAt) {
		return s.outage.sample.next
	}
	return dueAt
}

// paceLocked returns the time of the next select of a lane, which is due at the given time. While the breaker is open,
// it returns the time of the next probe: a lane with items that the outage has not tried is due at once, and its turn
// comes with the pace of all selects. If the breaker has closed since the last select, the time is at most half a
// second from now.
func (s *scheduler) paceLocked(l *lane, at, now time.Time, after time.Duration) time.Time {
	switch soon := now.Add(s.settings.floor()); {
	case s.outage.open():
		pause := max(s.settings.SleepTimeInterval, after)
		if !l.untried || s.outage.sample.exhausted() {
			pause = max(pause, s.probePauseLocked(now))
		}
		return now.Add(pause)
	case l.closes != s.outage.closes && at.After(soon):
		return soon
	}
	return at
}

// probePauseLocked returns the pause of a lane before its next probe: a quarter of the time since the breaker opened,
// from Retry to ProbeMax, with jitter.
func (s *scheduler) probePauseLocked(now time.Time) time.Duration {
	d := max(s.settings.Retry, s.settings.floor(), now.Sub(s.outage.openSince)/4)
	b := backoff.ExponentialBackOff{InitialInterval: min(d, s.settings.ProbeMax), RandomizationFactor: s.settings.RetryJitter, Multiplier: 1}
	return max(time.Nanosecond, min(b.NextBackOff(), s.settings.ProbeMax))
}
