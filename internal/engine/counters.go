package engine

import (
	"slices"
	"time"

	"github.com/dutyrota/rota/processor"
)

// Stats returns the present counters.
func (p *Processor) Stats() processor.Stats {
	s := p.lock()
	defer s.mu.Unlock()
	s.expireOutageLocked(time.Now())
	stats := s.stats
	if stats.FailedCalls = s.streak.calls.n; s.streak.failing(time.Now(), s.settings.FailingAfter) {
		stats.FailingSince = s.streak.began
	}
	stats.OutageSince = s.outage.openSince
	for _, g := range s.grants {
		stats.Parked += g.lane.paging.parked
		stats.HeldKeys += g.lane.ordering.waiting
	}
	for e := range s.executors {
		if e.call != nil {
			stats.OldestCallSince = earlier(stats.OldestCallSince, e.call.began)
		}
	}
	if k := s.peeks.running; k != nil {
		stats.OldestCallSince = earlier(stats.OldestCallSince, k.began)
	}
	return stats
}

// countSelect counts a select that has ended.
func countSelect(s *processor.Stats, c *selectCall) {
	s.DeadCount += int64(c.dead)
	if c.outcome.started() {
		s.FetchCount++
		s.LastFetchTime = c.began
	}
	if c.found != nil {
		n := c.found.unstarted()
		s.FetchItemCount += int64(c.found.fetched)
		s.InFlight += n
		s.SkipCount += int64(c.found.fetched - n)
	}
}

// skip counts n items that were dropped before they started.
func skip(s *processor.Stats, n int) {
	s.InFlight -= n
	s.SkipCount += int64(n)
}

// countBatch counts a batch that has ended.
func countBatch(s *processor.Stats, b *batch) {
	n := int64(b.size())
	s.InFlight -= b.size()
	switch {
	case b.outcome == dropped, b.outcome == untrusted, b.outcome == done && b.mark < ordinary:
		s.SkipCount += n
	case b.outcome == done, b.outcome == failed:
		s.SuccessCount += int64(b.result.done)
		s.FailureCount += n - int64(b.result.done)
	}
	s.DeadCount += int64(b.result.dead)
	if b.outcome.started() {
		s.ExecuteTime += b.took
	}
}

// Stall is a call of the dealer that runs for a long time. Go cannot end it. Its queues cannot be drained until it
// returns.
type Stall struct {
	Queues []string // IDs
	Since  time.Time
	Select bool // the call is a select or a peek, not a batch
	Items  int  // of the batch
}

// Stalled returns the calls of the dealer that have been running for longer than after, the oldest first. Related work
// of the executor, such as saving failed items, counts as part of the call.
func (p *Processor) Stalled(after time.Duration) []Stall {
	s := p.lock()
	defer s.mu.Unlock()
	var all []Stall
	for e := range s.executors {
		if stall, runs := e.stallLocked(); runs && time.Since(stall.Since) > after {
			all = append(all, stall)
		}
	}
	if k := s.peeks.running; k != nil && time.Since(k.began) > after {
		all = append(all, Stall{Queues: k.ids(), Since: k.began, Select: true})
	}
	slices.SortFunc(all, func(a, b Stall) int { return a.Since.Compare(b.Since) })
	return all
}

// stallLocked returns the call of the executor, if one runs.
func (e *executor) stallLocked() (stall Stall, runs bool) {
	c := e.call
	if c == nil {
		return Stall{}, false
	}
	stall = Stall{Queues: []string{c.queueID()}, Since: c.began, Select: c != &e.batch.call}
	if stall.Select {
		return stall, true
	}
	stall.Items = e.batch.size()
	stall.Since, runs = e.batch.isolation.began(c.began)
	return stall, runs
}
