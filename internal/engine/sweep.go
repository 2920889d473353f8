package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// sweepStage is what a sweep does with the pages of its lane (R9).
var sweepStage = stage{
	claim: func(c *selectCall, now time.Time, s *scheduler) {
		if c.lane.sweep != nil {
			_, c.swept.givesUp = s.sweepsWaitLocked(now)
		}
	},
	prepare: func(c *selectCall) {
		if w := c.lane.sweep; w != nil && c.selection.After == "" {
			w.inPass = 0
		}
	},
	judge: func(c *selectCall, i int, class class, _ mark, r record) class {
		switch w := c.lane.sweep; {
		case w == nil:
		case class == givenUp:
			c.swept.gaveUp = append(c.swept.gaveUp, SweptItem{Key: c.keys[i], Err: r.cause, At: time.Now()})
			c.lane.failures.note(c.keys[i], record{dead: true, unsavedSince: c.now})
		case r.waits():
			w.inPass++
		}
		return class
	},
	page: func(c *selectCall, _ items, p *page) error {
		if c.lane.sweep == nil {
			return nil
		}
		return c.lane.sweep.fingerprint(c, p)
	},
	finish: func(c *selectCall, _ *scheduler) {
		c.more = c.more || c.lane.sweep != nil && c.lane.sweep.inPass == 0 // it polls only while items wait
	},
	settle: func(b *batch) {
		if b.outcome == done && b.mark >= ordinary && b.fingerprints != nil {
			b.lane.sweep.trail.add(b.fingerprints[b.from:b.to])
		}
	},
	end: func(b *batch, s *scheduler) {
		if b.lane.sweep != nil {
			b.lane.sweep.countBatchLocked(s, b)
		}
	},
}

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

	Waits string // for the end of an outage: why, and until when at most (X5); empty if the sweep does not wait

	ItemsDone   int64  // items executed successfully
	ItemsFailed int64  // items that failed alone or by name, or in the batch that failed the sweep
	Cursor      string // of a Cursored dealer: where the next sweep may begin

	// FailedItems are the first 100 items that failed alone or by name. The processor only appends to them: do not modify
	// them. AllFailed says that no other item of the queue fails, as far as the sweep has come: it is complete, or in
	// order up to the item that failed it.
	FailedItems []SweptItem
	AllFailed   bool
}

// SweptItem is an item that failed in a sweep.
type SweptItem struct {
	Key string // of a Cursored dealer that is not Keyed, its cursor
	Err error
	At  time.Time // by the local clock
}

// maxFailedItems is the number of FailedItems that a sweep keeps.
const maxFailedItems = 100

// Ended reports whether the queue is not selected any more under this grant.
func (s SweepState) Ended() bool { return s.Swept || s.Failed }

// sweep is the sweep of a lane under one grant. The scheduler's lock guards it, except trail.
type sweep struct {
	SweepState
	repeats int // consecutive selects without progress
	trail   trail

	// What the last selects have found, or with a cursor the last batch. It decides whether an outage or poison keeps the
	// sweep from its end.
	inPass     int  // items that wait for the end of an outage, since the selects began at the start of the source
	waiting    int  // the same, after the last select that has reached the end
	onlyFailed bool // nothing else is left
	idles      bool // nothing is left beside the batches in flight
}

// sweptPage is what a sweep finds on a page.
type sweptPage struct {
	repeated bool        // only items that it has been through
	givesUp  bool        // it passes the items that wait for the end of an outage
	gaveUp   []SweptItem // these items
}

// defaultMaxRepeats is the number of consecutive selects without progress after which a sweep fails by default.
const defaultMaxRepeats = 3

// fingerprint finds out whether a page holds only items that the sweep has been through. With a cursor it looks at the
// first item only, because a single repetition there is enough.
func (w *sweep) fingerprint(c *selectCall, p *page) (err error) {
	if p.unstarted() == 0 {
		return nil
	}
	if p.fingerprints, err = p.items.fingerprints(p.items.size()); err != nil || p.fingerprints == nil {
		return err
	}
	decisive := p.fingerprints
	if c.capabilities.Cursored {
		decisive = decisive[:1]
	}
	c.swept.repeated = w.trail.covers(decisive, p.fetched)
	return nil
}

// endsWithLocked reports whether the select was the last one of the sweep. It then drops the page.
func (w *sweep) endsWithLocked(s *scheduler, c *selectCall) bool {
	l := c.lane
	w.notePassLocked(c)
	w.idles = c.outcome == done && c.found.unstarted() == 0 && !c.goesOn && !c.partial
	if len(c.swept.gaveUp) > 0 {
		w.ItemsFailed += int64(len(c.swept.gaveUp))
		w.addErrorLocked(c.swept.gaveUp[0].Err)
		w.keepFailedLocked(c.swept.gaveUp, false)
	}
	wait, _ := s.sweepsWaitLocked(c.now)
	switch {
	case l.sweepEnded(): // a batch has failed during the select
	case c.outcome == failed && (c.outside || wait && !allPermanent(c.err)):
		return false
	case c.outcome == failed:
		s.failSweepLocked(l, c.err)
	case c.outcome != done:
		return false
	case w.completesWith(c):
		w.Swept, w.AllFailed = true, true
		c.grant.emptySince = c.since
		s.surviveLocked(l)
		notify(s.signals.emptied)
	case w.countRepeatsLocked(c) >= cmp.Or(s.settings.SweepMaxRepeats, defaultMaxRepeats):
		s.failSweepLocked(l, fmt.Errorf("select queue %s: no progress: %d selects in a row returned only items "+
			"that this sweep has executed or passed already (sweep_max_repeats)",
			c.queueID(), w.repeats))
	default:
		return false
	}
	if c.found != nil {
		skip(&s.stats, c.found.drop())
	}
	return true
}

// notePassLocked notes whether only items are left that wait for the end of an outage. A select of a page knows this at
// the end of its pass. A cursor has no such selects.
func (w *sweep) notePassLocked(c *selectCall) {
	switch {
	case c.capabilities.Cursored:
	case c.outcome != done, c.untested > 0:
		w.onlyFailed = false
	case c.found == nil, c.found.fetched < c.selection.Limit:
		w.waiting, w.onlyFailed = w.inPass, w.inPass > 0
	}
}

// countRepeatsLocked returns the number of consecutive selects that found nothing new. A page of items that are all in
// flight, or have failed, does not count while batches are in flight, or if the next select sees more: behind the page,
// with more room, or with the order keys that this one has left out.
func (w *sweep) countRepeatsLocked(c *selectCall) int {
	switch {
	case c.found == nil, w.inPass > 0:
	case c.found.unstarted() == 0 && (c.goesOn || c.ended || c.partial || c.reachesFurther()):
	case c.found.unstarted() > 0 && !c.swept.repeated:
		w.repeats = 0
	case c.found.unstarted() > 0 || len(c.inFlight) == 0:
		w.repeats++
	}
	return w.repeats
}

// completesWith reports whether the select shows that nothing is left. Failed items still match the user's condition. A
// page of only failed items therefore completes the sweep only if it had room for other items (R9), and a select behind
// a page only if the selects before it have found nothing.
func (w *sweep) completesWith(c *selectCall) bool {
	return c.empty() && w.inPass == 0 && (c.found == nil || c.found.fetched < c.selection.Limit)
}

// countBatchLocked counts the items of a batch, and fails the sweep if the batch cannot be blamed on items (R11).
func (w *sweep) countBatchLocked(s *scheduler, b *batch) {
	n := int64(b.size())
	if b.capabilities.Cursored {
		w.waiting, w.onlyFailed = 1, b.outcome == failed && n == 1
	}
	wait, _ := s.sweepsWaitLocked(b.now)
	switch {
	case b.outcome == done:
		w.ItemsDone += n
		s.sweptRun.done += n
	case b.outcome != failed, b.result.retryNow: // it says nothing about the items, or they are tried in smaller batches
	case b.result.pause && wait && !allPermanent(b.err):
	case b.result.waiting > 0 && b.result.waiting == b.result.failed:
		w.ItemsDone += int64(b.result.done)
	default:
		w.ItemsFailed += int64(b.result.failed - b.result.waiting)
		if !b.result.pause || !b.capabilities.Cursored { // else the other items are executed again, from the cursor on
			w.ItemsDone += int64(b.result.done)
		}
		w.addErrorLocked(b.err)
		w.keepFailedLocked(b.result.passed, b.capabilities.Cursored)
		if b.result.pause {
			s.failSweepLocked(b.lane, b.err)
		}
	}
}

// keepFailedLocked keeps failed items, as far as there is room. No item behind a cursor has failed.
func (w *sweep) keepFailedLocked(failed []SweptItem, inOrder bool) {
	room := maxFailedItems - len(w.FailedItems)
	w.FailedItems = append(w.FailedItems, failed[:min(room, len(failed))]...)
	w.AllFailed = w.AllFailed || inOrder && len(failed) > 0
}

func (w *sweep) addErrorLocked(err error) {
	w.Permanent = allPermanent(err) && (w.Err == nil || w.Permanent)
	if w.Err == nil {
		w.Err = err
	}
}

// failSweepLocked ends a sweep that cannot go on. The caller calls placeLocked.
func (s *scheduler) failSweepLocked(l *lane, err error) {
	if l.sweepEnded() {
		return
	}
	l.sweep.addErrorLocked(err)
	l.sweep.Failed, l.sweep.Err = true, err
	s.due.remove(l)
	if l.page != nil {
		skip(&s.stats, l.page.drop())
	}
	notify(s.signals.emptied)
}

// sweptRun holds what the sweeps of this processor have done for the present run. The scheduler's lock guards it.
type sweptRun struct {
	id    string
	began time.Time // the first grant
	done  int64     // items
}

// poisonShare tells poison from an outage at the end of a run, when only failed items are left. They may be poison if
// there is at most one for each poisonShare items that are done: after 1,000 items, 100 that fail may be the bad rows
// of the run, and 101 are rather an outage that began near its end.
const poisonShare = 10

// patientPauses is the shortest time for which a sweep waits for the end of an outage, in first pauses of an item: with
// a Retry of 1 s it waits for 10 s at least, however little it has worked before.
const patientPauses = 10

// remainder is what is left of the sweeps of this processor, under their present grants.
type remainder struct {
	untested bool  // an item is left that has not failed alone
	failed   int64 // items that have failed and wait for the end of an outage
	expected int64 // items that failed in the attempts before
}

// givesUp reports whether sweeps wait no longer for the end of an outage that has begun at the given time. They wait as
// long as an item would in CONTINUOUS, for the horizon of the retry policy. The deadline of the run usually comes
// first.
//
// They give up earlier if the failures are more likely poison than an outage: all items of the run that are left here
// have failed alone, and they are a small part of the items done, or no more than failed in the attempts before. An
// outage that begins just then looks the same. So the sweeps wait for as long as they have worked, and poison makes a
// run last at most about twice the time: with 3 bad rows among 1,000 that took ten minutes, the run fails after twenty.
// While an item is left that has not failed alone, it is the next probe, and its outcome decides.
func (r sweptRun) givesUp(left remainder, s *Settings, openSince, now time.Time) bool {
	waited, worked := now.Sub(openSince), openSince.Sub(r.began)
	if waited >= s.horizon() {
		return true
	}
	poison := left.failed*poisonShare <= r.done || left.failed <= left.expected
	return poison && !left.untested && waited >= max(worked, patientPauses*s.Retry)
}

// sweepsWaitLocked reports whether sweeps wait for the end of an outage, or have given up waiting for it. While they
// wait, nothing fails a sweep.
func (s *scheduler) sweepsWaitLocked(now time.Time) (wait, giveUp bool) {
	if !s.outage.open() {
		return false, false
	}
	var left remainder
	for _, g := range s.grants {
		if w := g.lane.sweep; w != nil && !w.Ended() {
			left.untested = left.untested || !w.onlyFailed
			left.failed += int64(w.waiting)
			left.expected += g.queue.Run.ItemsFailed
		}
	}
	giveUp = s.sweptRun.givesUp(left, s.settings, s.outage.openSince, now)
	return !giveUp, giveUp
}

// state returns the state for Queues.
func (w *sweep) state(g *grant, o *outage, s *Settings) SweepState {
	if w == nil {
		return SweepState{}
	}
	state := w.SweepState
	state.Cursor, state.FailedItems = g.queue.Cursor, slices.Clip(state.FailedItems)
	if w.Ended() || !o.open() {
		return state
	}
	state.Waits = "it waits: nothing has succeeded since " + o.since.UTC().Format(time.RFC3339)
	if w.waiting > 0 {
		state.Waits += ", and " + count(w.waiting, "item that has failed is", "items that have failed are") + " tried again"
	}
	if horizon := s.horizon(); horizon < math.MaxInt64 {
		state.Waits += ", until " + o.openSince.Add(horizon).UTC().Format(time.RFC3339) + " at the latest"
	}
	state.Waits += " (X5)"
	return state
}

// expects reports whether a failed batch says nothing new about an outage, because the attempt before has failed like
// this. Such a batch does not open the breaker. Items that failed before are known by their keys; their number counts
// only if not all of them were recorded.
func (w *sweep) expects(b *batch) bool {
	run := b.grant.queue.Run
	if b.result.pause {
		return run.Attempt > 1
	}
	return int64(len(run.FailedBefore)) < run.ItemsFailed && w.ItemsFailed < run.ItemsFailed
}

// trail holds the fingerprints of the items that a sweep has been through recently: at least as many as its largest
// page has, and at most about twice as many.
type trail struct {
	mu       sync.Mutex
	young    map[uint64]struct{}
	old      map[uint64]struct{}
	capacity int // fetched items of the largest page
}

// add adds the items of a batch.
func (t *trail) add(fingerprints []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.young == nil {
		t.young, t.old = map[uint64]struct{}{}, map[uint64]struct{}{}
	}
	for _, f := range fingerprints {
		t.young[f] = struct{}{}
	}
	if len(t.young) >= t.capacity {
		t.young, t.old = t.old, t.young
		clear(t.young)
	}
}

// covers reports whether the trail holds all of the fingerprints, which are those of a page of fetched items.
func (t *trail) covers(fingerprints []uint64, fetched int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.capacity = max(t.capacity, fetched)
	for _, f := range fingerprints {
		_, young := t.young[f]
		if _, old := t.old[f]; !young && !old {
			return false
		}
	}
	return true
}
