package processor

import "time"

// streak counts the calls of the dealer that have failed since a call last succeeded. The scheduler's lock guards it.
//
// A batch in which an item is done ends the streak, and so does a sweep that is complete without a failure. Any other
// select that succeeds ends at most the part of its lane, because the selects before failing batches succeed. It does
// so if the last failure of the lane was a select, or if nothing is left in the lane that could fail again. The streak
// ends when no lane has a part in it any more. It outlives the grants of sweeps, because the next attempt of a sweep is
// another grant.
//
// Items that fail for days are poison. In a task type with little to do, only they may be executed between two
// successes. So an item that failed before the last success does not count. It counts again when the last success is an
// hour old: one old success must not hide that all items of a task type fail.
type streak struct {
	calls   int64
	since   time.Time // when the first of them ended
	number  uint64    // of this streak, for lanePart
	several bool      // the calls are not all executions of one and the same item

	lane *lane  // of the first call
	key  string // of the item of the first call that executed a single item; empty if there was none

	doneAt time.Time // when an item last succeeded
}

// poisonFor is how long after a success the items that had failed before do not count.
const poisonFor = time.Hour

// lanePart is the part of a lane in a streak.
type lanePart struct {
	number  uint64 // of the streak
	selects bool   // its last failure was a failed select
}

// failing reports whether the dealer does nothing but fail: at least so many calls in a row have failed as after says,
// and not all of them executed one item, which may be poison.
func (s *streak) failing(after int) bool { return after > 0 && s.calls >= int64(after) && s.several }

func (s *streak) end() { *s = streak{number: s.number + 1, doneAt: s.doneAt} }

func (s *streak) fail(l *lane, now time.Time, selects bool) {
	if s.calls++; s.calls == 1 {
		s.since, s.lane = now, l
	}
	l.part = lanePart{number: s.number, selects: selects}
	s.several = s.several || s.lane != l
}

// failItem notes the item of a failed batch that executed only this one.
func (s *streak) failItem(key string) {
	s.several = s.several || s.key != "" && s.key != key
	s.key = key
}

// failingIn reports whether the lane has a part in the streak.
func (l *lane) failingIn(s *streak) bool { return s.calls > 0 && l.part.number == s.number }

// countInStreakLocked updates the streak after a select.
func (c *selectCall) countInStreakLocked(s *scheduler) {
	switch t := &s.streak; {
	case c.outcome == failed:
		t.fail(c.lane, c.now, true)
		t.several = true
	case t.calls == 0 || c.outcome != done:
	case c.lane.sweep != nil:
		if c.lane.sweep.ItemsFailed == 0 && completesSweep(c) {
			t.end()
		}
	case c.lane.failingIn(t) && (c.lane.part.selects || c.foundNothingLeft()):
		c.lane.part = lanePart{}
		s.endStreakLocked()
	}
}

// foundNothingLeft reports whether the select proves that no item of its lane can fail again: nothing is in flight,
// waits for its next attempt or is to be executed.
func (c *selectCall) foundNothingLeft() bool {
	return len(c.inFlight) == 0 && c.retryAt.IsZero() && (c.found == nil || c.found.unstarted() == 0)
}

// countInStreakLocked updates the streak after a batch.
func (b *batch) countInStreakLocked(s *scheduler) {
	t := &s.streak
	if b.outcome == failed && b.result.failed > 0 && b.result.failed < b.size() || b.outcome == done && b.mark >= ordinary {
		if t.doneAt = b.now; t.calls > 0 {
			t.end()
		}
		return
	}
	if b.outcome != failed || b.knownLocked(s) && b.now.Sub(t.doneAt) < poisonFor {
		return
	}
	t.fail(b.lane, b.now, false)
	switch {
	case !b.capabilities.tracksItems():
		t.several = true // the batch is all that is known
	case b.size() == 1 && !b.result.pause && len(b.keys) == 1:
		t.failItem(b.keys[0])
	}
}

// endStreakLocked ends the streak if no lane has a part in it any more.
func (s *scheduler) endStreakLocked() {
	for _, g := range s.grants {
		if g.lane.failingIn(&s.streak) {
			return
		}
	}
	s.streak.end()
}
