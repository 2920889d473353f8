package processor

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Holding is what the processor has to do with one queue.
type Holding struct {
	Queue    Queue
	Draining bool // by Drain or Revoke, or by itself if Lost
	Lost     bool // the dealer met an error that Env.Lost knows, and neither Resume nor Revoke came since
	InHand   int  // calls of the dealer for this queue that run now
	Drained  bool // draining and nothing in hand: not a single item of it is touched before Resume

	// EmptySince is when the last select of the queue began that found nothing to execute while nothing of it, or
	// of its set, was in hand. Items that back off or are dead are nothing to execute. It is zero if no select has
	// ended so, or the last one that succeeded found something. A queue with a Run has it once it is swept.
	EmptySince time.Time

	Sweep SweepState // of a queue with a Run
}

// Grant starts the work on a queue under q.Epoch; total is the number of queues of the task type. It fails for a
// queue that is held, under whatever epoch: what was begun under the old one must have ended first, which Revoke,
// Drained and Forget see to.
//
// A queue with a Run, which is copied, is swept once: it is selected again and again, without pauses of
// sleep_time_nodata, until Holding.Sweep says that the sweep has ended, and not any more then. The queue stays held until it is
// drained and forgotten like any other; it may be drained and resumed in between, and be granted anew afterwards, with
// another Run or the same. Grant fails for a Run if the dealer is a SetSelector.
func (p *Processor) Grant(q Queue, total int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.held[q.ID]; h != nil {
		return fmt.Errorf("grant queue %s under epoch %d: still held under epoch %d", q.ID, q.Epoch, h.queue.Epoch)
	}
	l := p.set
	switch {
	case l != nil && q.Run != nil:
		return fmt.Errorf("grant queue %s: mode RUN needs a select per queue, and the dealer is a SetSelector", q.ID)
	case l == nil:
		l = newLane()
	}
	if q.Run != nil {
		run := *q.Run // so that no two grants have the same
		q.Run, l.sweep = &run, &sweep{}
	}
	h := &held{queue: q, total: total, lane: l}
	l.queues = append(l.queues, h)
	p.held[q.ID] = h
	p.due.remove(l)
	l.at = time.Now()
	p.enqueue(l)
	p.repace()
	p.wake()
	return nil
}

// Drain stops the selects of a queue and drops its items that are not started. What runs may finish; a
// call that an executor has taken counts as running, though the dealer may be entered a moment later. Nothing happens
// if the queue is not held (H1).
func (p *Processor) Drain(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.held[id]; h != nil {
		p.drain(h, time.Now())
	}
}

// Resume withdraws Drain and Revoke, and ends that a queue is Lost: the caller vouches that the queue is still owned
// under its epoch. A batch that was running when it was revoked stays cancelled.
func (p *Processor) Resume(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.held[id]
	if h == nil || !h.draining {
		return
	}
	h.draining, h.lost = false, false
	p.enqueue(h.lane)
	p.repace()
	p.wake()
}

// Revoke drains a queue whose ownership is lost, and cancels the contexts of all its calls that run. A batch of a
// SetSelector is cancelled as a whole, and its select too; their other queues are then selected again. That the
// cancelled calls return an error is no failure.
func (p *Processor) Revoke(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.held[id]
	if h == nil {
		return
	}
	p.drain(h, time.Now())
	h.revoke()
	for c := range p.executors {
		if c.cancel != nil && slices.Contains(c.queues, h) {
			c.cancel()
		}
	}
	h.lost = false
}

// Forget ends the holding of a queue that is drained, and reports whether the queue is not held any more. It is
// false for a queue that was not drained or still has something in hand.
func (p *Processor) Forget(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.held[id]
	if h == nil {
		return true
	}
	if !h.draining || h.running > 0 {
		return false
	}
	h.revoke()
	delete(p.held, id)
	h.lane.queues = slices.DeleteFunc(h.lane.queues, func(other *held) bool { return other == h })
	return true
}

// Held returns all queues that are held, in the order of their indexes.
func (p *Processor) Held() []Holding {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Holding, 0, len(p.held))
	for _, h := range p.held {
		all = append(all, Holding{
			Queue: h.queue, Draining: h.draining, Lost: h.lost, InHand: h.running, Drained: h.draining && h.running == 0,
			EmptySince: h.empty, Sweep: h.sweepState(),
		})
	}
	slices.SortFunc(all, func(a, b Holding) int {
		return cmp.Or(cmp.Compare(a.Queue.Index, b.Queue.Index), cmp.Compare(a.Queue.ID, b.Queue.ID))
	})
	return all
}

// Drained is signalled whenever a queue has become drained, so that nobody needs to poll Held. Its capacity is 1:
// one signal may stand for several queues.
func (p *Processor) Drained() <-chan struct{} { return p.drained }

// Emptied is signalled whenever EmptySince of a queue, which was zero, is set, and when a sweep ends, be it that its
// queue is swept or that it has failed, so that nobody needs to poll Held. Its capacity is 1: one signal may stand for
// several queues.
func (p *Processor) Emptied() <-chan struct{} { return p.empties }

// Wake lets executors that stopped because Trusted said no ask again. It is to be called when trust is back; Grant
// and Resume do the same.
func (p *Processor) Wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wake()
}

func (p *Processor) wake() {
	p.wakes++
	p.asleep = false
	p.work.Signal()
}

// drain stops a queue and takes its unstarted items out of the page that they are in.
func (p *Processor) drain(h *held, now time.Time) {
	if h.draining {
		return
	}
	h.draining = true
	l := h.lane
	if !l.live() {
		p.due.remove(l)
	}
	if l.page != nil {
		p.skip(l.page.dropDraining())
		p.settle(l, now)
	}
	p.repace()
	p.rouse(now)
	if h.running == 0 {
		notify(p.drained)
	}
}
