package processor

import "time"

// Work is what the calls of Execute have done for a queue since it was granted.
type Work struct {
	Items int64         // of the batches that have ended
	Time  time.Duration // the sum over these batches; of a batch with items of several queues, each has an equal part
}

// Worked returns the work for a queue. It is zero if the queue is not held.
func (p *Processor) Worked(queueID string) Work {
	p.scheduler.mu.Lock()
	defer p.scheduler.mu.Unlock()
	if g := p.scheduler.grants[queueID]; g != nil {
		return g.work
	}
	return Work{}
}

// countWorkLocked counts a batch that has ended for its queues.
func (b *batch) countWorkLocked() {
	if !b.outcome.started() {
		return
	}
	for _, g := range b.grants {
		g.work.Items += int64(b.size() / len(b.grants))
		g.work.Time += b.took / time.Duration(len(b.grants))
	}
}
