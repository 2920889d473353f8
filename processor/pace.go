package processor

import (
	"cmp"
	"time"
)

// A page is about pageTime of work, so that a lane waits for a few pages of that length and not for pages of
// fetch_number items, however long these take. The estimate may be wrong. A page that takes longer than pageCut gives
// way to a lane that waits.
const (
	pageTime = time.Second
	pageCut  = 2 * pageTime
)

// pace is the time that one item takes, in nanoseconds: an exponentially weighted average over batches. It is 0 while
// nothing was measured.
type pace float64

// measure adds a batch of n items. The last eight batches count most.
func (p *pace) measure(took time.Duration, n int) {
	each := pace(max(1, took)) / pace(n)
	if *p == 0 {
		*p = each
		return
	}
	*p += (each - *p) / 8
}

// items returns the number of items that one executor executes in d.
func (p pace) items(d time.Duration) float64 { return float64(d) / float64(p) }

// measurePaceLocked adds an executed batch to the pace of its lane, and to the pace of all lanes. A new lane begins
// with the latter.
func (b *batch) measurePaceLocked(s *scheduler) {
	if b.mark > ordinary && b.lane.pace > 0 { // an item of a small batch takes longer than others
		return
	}
	if b.quota == 0 {
		s.outage.usual.measure(b.took, 1)
	}
	b.lane.pace.measure(b.took, b.size())
	s.pace.measure(b.took, b.size())
}

// onlyPageBatches is the number of batches for each executor that a page has at least if no other page is there. With
// fewer batches, executors would often wait for the last batch of the page.
const onlyPageBatches = 4

// pageSizeLocked returns the number of items that the next page of a lane should have, which is being selected: about
// pageTime of work for the executors, and of the rate, that are left beside the other pages. It is at most
// fetch_number.
func (s *scheduler) pageSizeLocked(l *lane, now time.Time) int {
	executors := s.inFlight.concurrency(s.settings.ThreadNumber)
	pages := min(executors, len(s.ready.lanes)+s.selects+s.due.waiting(now, s.settings.ThreadNumber))
	size := cmp.Or(l.pace, s.pace).pageSize(s.settings, executors, pages, s.capabilities.cursored)
	if s.settings.RatePerSecond > 0 {
		allowed := s.limiter.shareOf(now, s.settings, s.grants) * pageTime.Seconds() / float64(pages)
		size = int(min(float64(size), max(1, allowed)))
	}
	return size
}

// pageSize returns how many items of a page beside others the executors execute in pageTime, and at most fetch_number.
// Each executor gets at least a batch, however long it takes. Until a batch was measured, it is fetch_number.
func (p pace) pageSize(s *Settings, executors, pages int, cursored bool) int {
	if p == 0 {
		return s.FetchNumber
	}
	executors, batches := executors/pages, 1
	switch {
	case cursored: // one batch after another (X3)
		executors = 1
	case pages == 1:
		batches = onlyPageBatches
	}
	work := min(float64(s.FetchNumber), float64(executors)*p.items(pageTime))
	return min(s.FetchNumber, max(int(work), executors*batches*s.ExecuteNumber))
}

// cutPageLocked makes room for a lane that waits for its select: it drops the rest of the page whose turn it is, if
// that page has taken too long. The next select of that page's lane returns the dropped items again. cutPageLocked
// keeps a page that has given no batch yet, because it may wait for the rate and would never get a turn.
func (s *scheduler) cutPageLocked(now time.Time) bool {
	l := s.ready.next()
	if l == nil || l.page.batches == 0 || now.Sub(l.page.readyAt) <= pageCut {
		return false
	}
	s.stats.skip(l.page.drop())
	s.placeLocked(l, now)
	return s.roomLocked()
}
