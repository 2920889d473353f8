package processor

import "time"

// Stats are the counters of a processor since it was made, and what it has in hand at the moment. Every fetched item
// ends in SuccessCount, FailureCount or SkipCount, but for those whose Execute was cancelled or met the loss of a
// queue: what became of these, the processor cannot know.
type Stats struct {
	FetchCount     int64         // selects that ran
	FetchItemCount int64         // items that they returned
	SuccessCount   int64         // items of batches without error, or not among their Failures
	FailureCount   int64         // items of batches that failed, or their Failures
	SkipCount      int64         // items that were not started: dropped, in hand already, backing off, dead or passed
	DeadCount      int64         // items that died
	ExecuteTime    time.Duration // the sum over all batches that have ended

	InHand            int       // items that are fetched and neither executed nor dropped
	Parked            int       // failed items of the held queues that back off, are dead or are passed in a sweep
	OldestInHandSince time.Time // when the oldest call of the dealer that still runs began; zero if none runs
	LastFetchTime     time.Time // when the last select that has ended began; zero before the first
	LastError         error     // the last failure of a select or a batch, with the names of its queues
	LastErrorTime     time.Time // when it was; zero before the first
}

// Stats returns the counters as they are now.
func (p *Processor) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	for _, h := range p.held {
		s.Parked += int(h.book.parked.Load())
	}
	for c := range p.executors {
		if c.lane != nil && (s.OldestInHandSince.IsZero() || c.since.Before(s.OldestInHandSince)) {
			s.OldestInHandSince = c.since
		}
	}
	return s
}

// count adds a call that has ended.
func (s *Stats) count(c *call) {
	if c.verdict == failed {
		s.LastError, s.LastErrorTime = c.err, c.now
	}
	if c.page != nil {
		s.countBatch(c)
		return
	}
	if c.verdict.started() {
		s.FetchCount++
		s.LastFetchTime = c.since
	}
	if c.found != nil {
		s.FetchItemCount += int64(c.found.fetched)
	}
}

func (s *Stats) countBatch(c *call) {
	n := int64(c.to - c.from)
	switch {
	case c.verdict == dropped, c.verdict == distrusted, c.verdict == done && c.how == passed:
		s.SkipCount += n
	case c.verdict == done:
		s.SuccessCount += n
	case c.verdict == failed:
		s.FailureCount += int64(c.failed)
		s.SuccessCount += n - int64(c.failed)
	}
	s.DeadCount += int64(c.dead)
	if c.verdict.started() {
		s.ExecuteTime += c.took
	}
}
