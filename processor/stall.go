package processor

import (
	"slices"
	"time"
)

// Stall is a call of the dealer that has been running for long. Go cannot end it; its queues stay in hand until it
// returns.
type Stall struct {
	Queues []string // IDs
	Since  time.Time
	Select bool // it is a select, not a batch
	Items  int  // of the batch
}

// Stalled returns the calls of the dealer that have been running for longer than after, the oldest first. What an
// executor does beside, such as saving failed items, counts as part of its call.
func (p *Processor) Stalled(after time.Duration) []Stall {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Stall
	for c := range p.executors {
		if c.lane != nil && time.Since(c.since) > after {
			all = append(all, c.stall())
		}
	}
	slices.SortFunc(all, func(a, b Stall) int { return a.Since.Compare(b.Since) })
	return all
}

func (c *call) stall() Stall {
	s := Stall{Since: c.since, Select: c.page == nil, Items: c.to - c.from}
	if s.Select {
		s.Items = 0
	}
	for _, h := range c.queues {
		s.Queues = append(s.Queues, h.queue.ID)
	}
	return s
}
