package processor

import (
	"cmp"
	"fmt"
)

// SweepState is the progress of the sweep of a queue with a Run, under its present grant.
type SweepState struct {
	// Swept means that the sweep is complete: a select has returned nothing to execute, while nothing of the queue was
	// in flight since it began (R9). Items that failed in this sweep are nothing to execute.
	Swept bool

	// Failed means that the sweep cannot go on: a select has failed, or a batch of a dealer that is neither Keyed nor
	// Cursored, or the selects return only the same items. Calls that are in flight may still end, and are counted.
	Failed bool

	Err error // why the sweep has failed; before that, the first failure of an item; nil if there was none

	// Permanent means that all failures of the sweep were Permanent: another sweep would fail too.
	Permanent bool

	ItemsDone   int64  // items executed successfully
	ItemsFailed int64  // items that failed alone or by name, or in the batch that failed the sweep
	Cursor      string // of a Cursored dealer: where the next sweep may begin
}

// Ended reports whether the queue is not selected any more under this grant.
func (s SweepState) Ended() bool { return s.Swept || s.Failed }

// sweep is the sweep of a lane under one grant. The scheduler's lock guards it, except trail.
type sweep struct {
	SweepState
	repeats int // consecutive selects without progress
	trail   trail
}

// defaultMaxRepeats is the number of consecutive selects without progress after which a sweep fails by default.
const defaultMaxRepeats = 3

// sweepStateLocked returns the state for Queues.
func (g *grant) sweepStateLocked() SweepState {
	if g.lane.sweep == nil {
		return SweepState{}
	}
	s := g.lane.sweep.SweepState
	s.Cursor = g.queue.Cursor
	return s
}

// fingerprint finds out whether a page holds only items that the sweep has been through. With a cursor it looks at the
// first item only, because a single repetition there is enough.
func (w *sweep) fingerprint(c *selectCall, p *page) (err error) {
	if p.unstarted() == 0 {
		return nil
	}
	if p.fingerprints, err = p.items.fingerprints(); err != nil || p.fingerprints == nil {
		return err
	}
	decisive := p.fingerprints
	if c.capabilities.cursored {
		decisive = decisive[:1]
	}
	c.repeated = w.trail.covers(decisive, p.fetched)
	return nil
}

// endsWithLocked reports whether the select was the last one of the sweep. It then drops the page.
func (w *sweep) endsWithLocked(s *scheduler, c *selectCall) bool {
	l := c.lane
	switch {
	case l.sweepEnded(): // a batch has failed during the select
	case c.outcome == failed && s.sweepWaitsLocked(c.now):
		return false
	case c.outcome == failed:
		s.failSweepLocked(l, c.err)
	case c.outcome != done:
		return false
	case completesSweep(c):
		w.Swept = true
		c.grants[0].emptySince, _ = c.proven()
		notify(s.signals.emptied)
	case w.countRepeatsLocked(c) >= cmp.Or(s.settings.SweepMaxRepeats, defaultMaxRepeats):
		s.failSweepLocked(l, fmt.Errorf("select queue %s: no progress: %d selects in a row returned only items that this sweep has executed or passed already (sweep_max_repeats)",
			c.queueIDs(), w.repeats))
	default:
		return false
	}
	if c.found != nil {
		s.stats.skip(c.found.drop())
	}
	return true
}

// completesSweep reports whether the select shows that nothing is left. Failed items still match the user's condition. A
// page of only failed items therefore completes the sweep only if it had room for other items (R9), and a select behind a
// page only if the pass has found nothing before.
func completesSweep(c *selectCall) bool {
	_, proven := c.proven()
	return proven && len(c.inFlight) == 0 && (c.found == nil || c.found.unstarted() == 0 && c.found.fetched < c.selection.Limit)
}

// countRepeatsLocked returns the number of consecutive selects that found nothing new. A page of items that are all in
// flight, or have failed, does not count while batches are in flight, or if the pass of a Paged dealer goes on.
func (w *sweep) countRepeatsLocked(c *selectCall) int {
	switch {
	case c.found == nil:
	case c.found.unstarted() == 0 && (c.step == moves || c.step == ends):
	case c.found.unstarted() > 0 && !c.repeated:
		w.repeats = 0
	case c.found.unstarted() > 0 || len(c.inFlight) == 0:
		w.repeats++
	}
	return w.repeats
}

// countBatchLocked counts the items of a batch, and fails the sweep if the batch cannot be blamed on items (R11).
func (w *sweep) countBatchLocked(s *scheduler, b *batch) {
	n := int64(b.size())
	switch {
	case b.outcome == done:
		w.ItemsDone += n
	case b.outcome != failed, b.result.retryNow: // it says nothing about the items, or they are tried in smaller batches
	case b.result.pause && s.sweepWaitsLocked(b.now):
	default:
		w.ItemsFailed += int64(b.result.failed)
		if !b.result.pause || !b.capabilities.cursored { // else the other items are executed again, from the cursor on
			w.ItemsDone += n - int64(b.result.failed)
		}
		w.addErrorLocked(b.err)
		if b.result.pause {
			s.failSweepLocked(b.lane, b.err)
		}
	}
}

func (w *sweep) addErrorLocked(err error) {
	w.Permanent = allPermanent(err) && (w.Err == nil || w.Permanent)
	if w.Err == nil {
		w.Err = err
	}
}

// failSweepLocked ends a sweep that cannot go on. The caller settles the lane.
func (s *scheduler) failSweepLocked(l *lane, err error) {
	if l.sweepEnded() {
		return
	}
	l.sweep.addErrorLocked(err)
	l.sweep.Failed, l.sweep.Err = true, err
	s.due.remove(l)
	if l.page != nil {
		s.stats.skip(l.page.drop())
	}
	notify(s.signals.emptied)
}
