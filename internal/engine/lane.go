package engine

import (
	"container/heap"
	"slices"
	"time"

	"github.com/dutyrota/rota/processor"
)

// lane is what the scheduler knows of the selects and batches of one queue under one grant. The scheduler's lock guards
// it, except what only the lane's select uses.
type lane struct {
	grant     *grant
	selecting bool  // a select is in flight
	page      *page // with unstarted items; nil if there are none
	batches   int   // batches in flight, of this page and in NOTSLEEP also of older ones
	pace      pace
	limits    processor.QueueLimits
	rate      *queueRate // nil without a bound
	failures  *failureLog
	retries   retryShare

	times     timetable
	rest      rest
	dueAt     time.Time // of times, since dueLanes last asked it
	added     uint64    // order among lanes that are due at the same time
	heapIndex int       // in dueLanes; -1 outside

	serial bool   // it has one batch in flight at most (X3, S14)
	alone  bool   // its batches have one item (S14)
	sweep  *sweep // of a queue with a Run; nil in CONTINUOUS. It does not change.

	stageStates
}

// selectable reports whether the queue may be selected.
func (l *lane) selectable() bool { return !l.sweepEnded() && !l.grant.draining }

// sweepEnded reports whether the lane has a sweep and it has ended.
func (l *lane) sweepEnded() bool { return l.sweep != nil && l.sweep.Ended() }

// idle reports whether the lane may be selected: it has no select in flight, no page, and no batches in flight. In
// NOTSLEEP it may have batches in flight, unless it is serial, or its sweep has found nothing: an empty select proves
// the end of a sweep only when nothing is in flight.
func (l *lane) idle(notSleep bool) bool {
	waits := l.batches > 0 && (!notSleep || l.serial || l.sweep != nil && l.sweep.idles)
	return !l.selecting && l.page == nil && !waits
}

func (l *lane) inDueLanes() bool { return l.heapIndex >= 0 }

// dueLanes is a heap of idle lanes, with the lane that is due first on top. Lanes that are due at the same time keep
// the order in which they were added. This makes scheduling fair: a lane that never rests comes after all lanes that
// became due in the meantime. The scheduler's lock guards it.
type dueLanes struct {
	lanes []*lane
	added uint64
}

func (d *dueLanes) first() *lane {
	if len(d.lanes) == 0 {
		return nil
	}
	return d.lanes[0]
}

func (d *dueLanes) add(l *lane) {
	d.added++
	l.added = d.added
	l.dueAt, _ = l.times.due()
	heap.Push(d, l)
}

func (d *dueLanes) remove(l *lane) {
	if l.heapIndex >= 0 {
		heap.Remove(d, l.heapIndex)
	}
}

// waiting returns the number of lanes that are due, up to the given bound.
func (d *dueLanes) waiting(now time.Time, most int) int {
	n := 0
	var count func(i int)
	count = func(i int) {
		if n < most && i < len(d.lanes) && !d.lanes[i].dueAt.After(now) {
			n++
			count(2*i + 1)
			count(2*i + 2)
		}
	}
	count(0)
	return n
}

// update restores the order after the timetable of a lane has changed. It does nothing for a lane that is not here.
func (d *dueLanes) update(l *lane) {
	if l.inDueLanes() {
		l.dueAt, _ = l.times.due()
		heap.Fix(d, l.heapIndex)
	}
}

func (d *dueLanes) Len() int { return len(d.lanes) }

func (d *dueLanes) Less(i, j int) bool {
	a, b := d.lanes[i], d.lanes[j]
	if !a.dueAt.Equal(b.dueAt) {
		return a.dueAt.Before(b.dueAt)
	}
	return a.added < b.added
}

func (d *dueLanes) Swap(i, j int) {
	d.lanes[i], d.lanes[j] = d.lanes[j], d.lanes[i]
	d.lanes[i].heapIndex, d.lanes[j].heapIndex = i, j
}

// Push is for package heap.
func (d *dueLanes) Push(x any) {
	l := x.(*lane)
	l.heapIndex = len(d.lanes)
	d.lanes = append(d.lanes, l)
}

// Pop is for package heap.
func (d *dueLanes) Pop() any {
	last := len(d.lanes) - 1
	l := d.lanes[last]
	d.lanes[last] = nil
	d.lanes = d.lanes[:last]
	l.heapIndex = -1
	return l
}

// readyLanes are the lanes whose page has unstarted items that an executor may take. Each lane gives as many batches in
// its turn as it has weight. The scheduler's lock guards it.
type readyLanes struct {
	lanes []*lane // in the order of their turns
	last  *lane   // had its turn last, and is ready since; nil once another has begun its turn
	given int     // batches that the first lane has given in this turn
}

// next returns the lane that gives the next batch, or nil.
func (r *readyLanes) next() *lane {
	if len(r.lanes) == 0 {
		return nil
	}
	return r.lanes[0]
}

// take counts a batch of the lane whose turn it is.
func (r *readyLanes) take() {
	r.last = nil // although the turn may go on, or end with the page
	if r.given++; r.given >= max(1, r.lanes[0].limits.Weight) {
		r.last, r.given = r.lanes[0], 0
		r.lanes = append(slices.Delete(r.lanes, 0, 1), r.last)
	}
}

// add adds a lane that is not ready yet. Its turn comes after that of all lanes that wait, so that these get theirs
// although other pages are replaced all the time, but before a further turn of the lane that has just had one.
func (r *readyLanes) add(l *lane) {
	if slices.Contains(r.lanes, l) {
		return
	}
	at := len(r.lanes)
	if at > 0 && r.lanes[at-1] == r.last {
		at--
	}
	r.lanes = slices.Insert(r.lanes, at, l)
}

func (r *readyLanes) remove(l *lane) {
	i := slices.Index(r.lanes, l)
	if i < 0 {
		return
	}
	r.lanes = slices.Delete(r.lanes, i, i+1)
	if i == 0 {
		r.given = 0
	}
	if l == r.last {
		r.last = nil
	}
}
