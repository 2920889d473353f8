package processor

import (
	"slices"
	"time"
)

// lane is the unit of selecting: one queue, or all queues if the dealer is a SetSelector. The scheduler's lock guards
// the fields up to sweep. It has more than 20 fields, because all that concerns one queue alone is here, by what uses
// it.
type lane struct {
	grants       []*grant
	selecting    bool  // a select is in flight
	page         *page // with unstarted items; nil if there are none
	batches      int   // batches in flight, of this page and in NOTSLEEP also of older ones
	foundNothing bool  // the last select succeeded and returned nothing to execute
	rest         rest
	isolated     bool // its items are executed one by one, because its queues have crashed too often
	crashes      int  // of these queues; 0 if they have not
	pace         pace

	dueAt     time.Time // the time of the next select, while the lane is idle
	order     uint64    // order among lanes that are due at the same time
	heapIndex int       // in dueLanes; -1 outside

	closes  uint32 // how often the breaker had closed when the last select was claimed
	untried bool   // while the breaker is open: the lane may have items that the outage has not tried
	probes  int    // number of items that were probes; only the lane's select uses it

	sweep *sweep // of a queue with a Run; nil in CONTINUOUS. It does not change.

	// Only the lane's select uses these.
	pass        pass      // of a Paged dealer
	retryCredit int       // calls for other items since the last retries
	unheld      int       // how many items of the last page have records that memory does not hold (X2)
	crowded     bool      // the last page was full and held nothing to execute
	crashesTold bool      // the alert about crashes was sent
	alertedAt   time.Time // when the alert was last sent (X2), zero while there is no reason
	comparedAt  time.Time // when the items of a page were last compared with each other
	repeats     repeats

	failures *failureLog
}

func newLane(store ItemStore) *lane {
	return &lane{heapIndex: -1, failures: newFailureLog(store)}
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
	return !l.selecting && l.page == nil && (l.batches == 0 || notSleep && !l.isolated && (l.sweep == nil || !l.foundNothing))
}

func (l *lane) inDueLanes() bool { return l.heapIndex >= 0 }
