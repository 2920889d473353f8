package engine

import (
	"slices"
	"time"
)

// streak counts the calls of the dealer that have failed since a call last succeeded. The scheduler's lock guards it.
//
// A batch in which an item is done ends the streak, and so does a sweep that is complete without a failure. Any other
// select that succeeds ends at most the part of its queues, because the selects before failing batches succeed. It does
// so if their last failure was a select, or if nothing is left in the lane that could fail again. The streak ends when
// no queue has a part in it any more. It outlives the grants of sweeps, because the next attempt of a sweep is another
// grant.
//
// Items that fail for days are poison. In a task type with little to do, only they may be executed between two
// successes. So an item that failed before the last success does not count. It counts again when the last success is an
// hour old: one old success must not hide that all items of a task type fail.
type streak struct {
	calls   failedCalls
	began   time.Time // when the first of them began, or the last success if that is later: since then nothing succeeds
	since   time.Time // when the first of them ended
	several bool      // the calls are not all executions of one and the same item
	first   *grant    // of the first call
	doneAt  time.Time // when an item last succeeded
}

// failedCalls are calls that have failed in a row.
type failedCalls struct {
	n    int64
	took time.Duration // all of them together
}

// slowCall is how long a failed call takes that counts as one more. Calls that end by a time limit of a minute would
// otherwise need minutes until FailingAfter of them have failed, in which nothing succeeds either.
const slowCall = 10 * time.Second

func (c *failedCalls) add(took time.Duration) {
	c.n++
	c.took += took
}

// enough reports whether so many calls have failed as after says. One slow call is not enough.
func (c failedCalls) enough(after int) bool {
	most := int64(after)
	return after > 0 && c.n >= min(most, 2) && c.n+int64(c.took/slowCall) >= most
}

// failingFor is how long nothing succeeds until the dealer counts as failing: longer than the restart of a database.
const failingFor = 30 * time.Second

// poisonFor is how long after a success the items that had failed before do not count.
const poisonFor = time.Hour

// failing reports whether the dealer does nothing but fail: nothing has succeeded for failingFor, at least so many
// calls in a row have failed as after says, and not all of them executed one item, which may be poison.
func (s *streak) failing(now time.Time, after int) bool {
	return s.calls.enough(after) && s.several && now.Sub(s.began) >= failingFor
}

func (s *streak) end() { *s = streak{doneAt: s.doneAt} }

// observe counts a call for a queue. The streak of the queue has counted it already.
func (s *streak) observe(e evidence, g *grant, sweeps bool) {
	switch {
	case e.outside: // it says nothing about the dealer
	case e.success:
		*s = streak{doneAt: e.now}
	case e.failed && (!e.known || e.now.Sub(s.doneAt) >= poisonFor):
		if s.calls.add(e.took); s.calls.n == 1 {
			s.began, s.since, s.first = e.began, e.now, g
			if s.doneAt.After(s.began) {
				s.began = s.doneAt
			}
		}
		s.several = s.several || s.first != g || g.streak.wide || len(g.streak.items) > 1
	case sweeps && e.exhausted:
		s.end()
	}
}

// queueStreak counts the failures of one queue since an item of it last succeeded. A queue may fail entirely although
// others succeed, because it is the data of one customer or lies on one shard (X7).
type queueStreak struct {
	calls   failedCalls
	since   time.Time // when the first of them ended
	last    time.Time // when the last of them ended
	err     error     // of the last of them
	selects bool      // the last of them was a select
	wide    bool      // a call has failed for no single item: a select, or a batch of a dealer that does not know items
	items   []string  // the keys of items that have failed alone or by name, at most manyItems
	carried bool      // an earlier owner of the queue has found that it fails

	doneAt time.Time // when an item of the queue last succeeded
	round  uint64    // setup.rounds at that time
}

// manyItems is how many distinct items of a queue must fail alone or by name before the queue counts as failing. With
// fewer, the items may be poison. A cursor waits for its first failing item, so there one item is enough.
const manyItems = 3

// failing reports whether the queue does nothing but fail.
func (s *queueStreak) failing(after int, c capabilities) bool {
	switch {
	case after == 0:
		return false
	case s.carried:
		return true
	}
	return s.calls.enough(after) && (s.wide || c.Cursored || len(s.items) == manyItems)
}

// observe counts a call for the queue of g. A failed batch is a success of the queue if one of its items is done. A
// select that succeeds ends the streak if the last failure was a select, or if nothing is left that could fail again.
// round is setup.rounds.
func (s *queueStreak) observe(e evidence, g *grant, round uint64) {
	switch {
	case e.failed && e.selects:
		s.fail(e)
	case e.failed:
		keys, all := e.failedItems()
		switch {
		case !all:
			s.succeed(e.now, round)
		case e.first == 0 || e.first >= s.round || e.now.Sub(s.doneAt) >= poisonFor:
			s.fail(e, keys...)
		}
	case e.success:
		s.succeed(e.now, round)
	case e.selects && g.lane.sweep == nil && !s.since.IsZero() && (e.exhausted || s.selects):
		s.end()
	}
}

func (s *queueStreak) fail(e evidence, keys ...string) {
	if s.calls.add(e.took); s.since.IsZero() {
		s.since = e.now
	}
	s.last, s.err, s.selects, s.wide = e.now, e.err, e.selects, s.wide || e.wide
	for _, key := range keys {
		if len(s.items) < manyItems && !slices.Contains(s.items, key) {
			s.items = append(s.items, key)
		}
	}
}

func (s *queueStreak) end() { *s = queueStreak{doneAt: s.doneAt, round: s.round} }

func (s *queueStreak) succeed(now time.Time, round uint64) {
	if s.doneAt, s.round = now, round; !s.since.IsZero() {
		s.end()
	}
}

// rested leaves out a time in which the queue was not worked.
func (s *queueStreak) rested(d time.Duration) {
	if !s.since.IsZero() {
		s.since = s.since.Add(d)
	}
}

// QueueFailure says that all calls for a queue fail, as far as they say something about the queue: at least
// FailingAfter of them in a row. If the dealer is Keyed and not Cursored, at least three distinct items have failed, or
// a select has.
type QueueFailure struct {
	Calls int64     // selects and batches that have failed since an item of the queue last succeeded, here
	Since time.Time // when the first of them ended, here or at an earlier owner; later by the time of drains
	Until time.Time // now, or the begin of the oldest call in flight for the queue, whose outcome is not known yet
	Err   error     // of the last; nil before the first failure under this grant
}

// failureLocked returns the failure of a queue, or nil. A queue that is not worked does not fail. A sweep reports its
// failures itself.
func (s *scheduler) failureLocked(g *grant, now time.Time) *QueueFailure {
	if g.draining || g.lane.sweep != nil || !g.streak.failing(s.settings.FailingAfter, s.capabilities) {
		return nil
	}
	f := &QueueFailure{Calls: g.streak.calls.n, Since: g.streak.since, Until: now, Err: g.streak.err}
	for e := range s.executors {
		if c := e.call; c != nil && c.grant == g && c.began.Before(f.Until) {
			f.Until = c.began
		}
	}
	return f
}

// failedItems returns the keys of the items that have failed alone or by name, and reports whether no item of the batch
// is done. If the items are suspects, it returns no key.
func (b *batch) failedItems() (keys []string, all bool) {
	known := len(b.keys) == b.size() && !b.result.pause
	if b.result.named == nil {
		if known && b.size() == 1 {
			keys = b.keys
		}
		return keys, true
	}
	failed := map[int]bool{}
	for _, f := range b.result.named {
		if known && !failed[f.Index] && len(keys) < manyItems {
			keys = append(keys, b.keys[f.Index])
		}
		failed[f.Index] = true
	}
	return keys, len(failed) == b.size()
}

// endStreakLocked ends the streak if no queue has a part in it any more.
func (s *scheduler) endStreakLocked() {
	if s.streak.calls.n == 0 {
		return
	}
	for _, g := range s.grants {
		if t := &g.streak; !t.last.IsZero() && !t.last.Before(s.streak.since) {
			return
		}
	}
	s.streak.end()
}
