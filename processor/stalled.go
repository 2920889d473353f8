package processor

import (
	"slices"
	"time"
)

// Stall is a call of the dealer that runs for a long time. Go cannot end it. Its queues cannot be drained until it
// returns.
type Stall struct {
	Queues []string // IDs
	Since  time.Time
	Select bool // the call is a select, not a batch
	Items  int  // of the batch
}

// Stalled returns the calls of the dealer that have been running for longer than after, the oldest first. Related work
// of the executor, such as saving failed items, counts as part of the call.
func (p *Processor) Stalled(after time.Duration) []Stall {
	s := p.lock()
	defer s.mu.Unlock()
	var all []Stall
	for e := range s.executors {
		if c := e.call; c != nil && time.Since(c.began) > after {
			all = append(all, e.stallLocked())
		}
	}
	slices.SortFunc(all, func(a, b Stall) int { return a.Since.Compare(b.Since) })
	return all
}

func (e *executor) stallLocked() Stall {
	stall := Stall{Since: e.call.began, Select: e.call == &e.selection.call}
	if !stall.Select {
		stall.Items = e.batch.size()
	}
	for _, g := range e.call.grants {
		stall.Queues = append(stall.Queues, g.queue.ID)
	}
	return stall
}
