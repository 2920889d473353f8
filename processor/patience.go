package processor

import (
	"math"
	"time"
)

// sweptRun holds what the sweeps of this processor have done for the present run. The scheduler's lock guards it.
type sweptRun struct {
	id    string
	began time.Time // the first grant
	done  int64     // items
}

// poisonShare bounds the failed items that may be poison and happen to be the last items of a run: at most one in
// poisonShare items.
const poisonShare = 10

// patientPauses is the shortest time, in first pauses of an item, for which a sweep waits for the end of an outage.
const patientPauses = 10

// beginSweepLocked notes the grant of a queue with a run.
func (s *scheduler) beginSweepLocked(run string, now time.Time) {
	if s.sweptRun.id != run {
		s.sweptRun = sweptRun{id: run, began: now}
	}
}

// sweepWaitsLocked reports whether a failure that would fail a sweep makes it wait instead, because of an outage.
func (s *scheduler) sweepWaitsLocked(now time.Time) bool {
	return s.outage.open() && !s.sweepsGiveUpLocked(now)
}

// sweepsGiveUpLocked reports whether sweeps wait no longer for the end of an outage. They wait as long as an item would
// in CONTINUOUS, for the horizon of the retry policy. The deadline of the run usually comes first.
//
// They give up earlier if the failures are more likely poison than an outage: all items of the run that are left here
// have failed alone, and they are a small part of the items done, or no more than failed in the attempts before. An
// outage that begins just then looks the same. So the sweeps wait for as long as they have worked, and poison makes a
// run last at most about twice the time. While an item is left that has not failed alone, it is the next probe, and its
// outcome decides.
func (s *scheduler) sweepsGiveUpLocked(now time.Time) bool {
	if !s.outage.open() {
		return false
	}
	waited, worked := now.Sub(s.outage.openSince), s.outage.openSince.Sub(s.sweptRun.began)
	if waited >= s.settings.horizon() {
		return true
	}
	failed, expected := int64(0), int64(0)
	for _, g := range s.grants {
		w := g.lane.sweep
		switch {
		case w == nil || w.Ended():
		case !w.onlyFailed:
			return false
		default:
			failed += int64(w.waiting)
			expected += g.queue.Run.ItemsFailed
		}
	}
	poison := failed*poisonShare <= s.sweptRun.done || failed <= expected
	return poison && waited >= max(worked, patientPauses*s.settings.Retry)
}

// waitsLocked says for what a sweep waits; empty if it does not.
func (s *scheduler) waitsLocked(w *sweep) string {
	if w.Ended() || !s.outage.open() {
		return ""
	}
	text := "it waits: nothing has succeeded since " + s.outage.since.UTC().Format(time.RFC3339)
	if w.waiting > 0 {
		text += ", and " + count(w.waiting, "item that has failed is", "items that have failed are") + " tried again"
	}
	if horizon := s.settings.horizon(); horizon < math.MaxInt64 {
		text += ", until " + s.outage.openSince.Add(horizon).UTC().Format(time.RFC3339) + " at the latest"
	}
	return text + " (X5)"
}

// expects reports whether a failed batch says nothing new about an outage, because the attempt before has failed like
// this. Such a batch does not open the breaker. Items that failed before are known by their keys; their number counts
// only if not all of them were recorded.
func (w *sweep) expects(b *batch) bool {
	run := b.grants[0].queue.Run
	if b.result.pause {
		return run.Attempt > 1
	}
	return int64(len(run.FailedBefore)) < run.ItemsFailed && w.ItemsFailed < run.ItemsFailed
}

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
