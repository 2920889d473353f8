package manager

import (
	"slices"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/processor"
)

// heldQueue is a queue that was granted to a processor.
type heldQueue struct {
	id             string
	epoch          int64
	index, total   int
	draining, lost bool
}

// execution is a call of the dealer, from the check of the lease to its end.
type execution struct {
	queue, uuid string
	epoch       int64
	index       int
	total       int  // of the grant: the items with mod(id, total) = index
	locked      bool // in a transaction that has passed the fence
	cancelled   bool
	overdue     bool // its process was stopped for longer than its lease
	hangs       bool // it ignores its context
}

func (p *process) holding(id string) *heldQueue {
	for i := range p.queues {
		if p.queues[i].id == id {
			return &p.queues[i]
		}
	}
	return nil
}

func (p *process) inFlight(id string) (n int) {
	for _, e := range p.calls {
		if e.queue == id {
			n++
		}
	}
	return n
}

// holdings returns what the processor would tell decide.
func (w *world) holdings(p *process) (all []processor.QueueState) {
	for _, h := range p.queues {
		n := p.inFlight(h.id)
		all = append(all, processor.QueueState{
			Queue: processor.Queue{ID: h.id, Epoch: h.epoch}, Draining: h.draining, Lost: h.lost,
			InFlight: n, Drained: h.draining && (n == 0 || w.without.drainWait),
		})
	}
	return all
}

func (w *world) grant(p *process, row roster.ViewQueue) {
	if p.holding(row.ID) != nil {
		w.fail("%s is granted queue %s, which it still has", p.uuid, row.ID)
		return
	}
	p.queues = append(p.queues, heldQueue{id: row.ID, epoch: row.Epoch, index: row.Index, total: row.Total})
}

func (w *world) drain(p *process, id string) {
	if h := p.holding(id); h != nil && !h.draining {
		h.draining = true
		p.drained = p.drained || p.inFlight(id) == 0
	}
}

func (w *world) resume(p *process, id string) {
	if h := p.holding(id); h != nil {
		h.draining, h.lost = false, false
	}
}

func (w *world) revoke(p *process, id string) {
	w.drain(p, id)
	if h := p.holding(id); h != nil {
		h.lost = false
	}
	for i := range p.calls {
		if p.calls[i].queue == id {
			p.calls[i].cancelled = true
		}
	}
}

func (w *world) revokeAll(p *process) {
	for _, h := range p.queues {
		w.revoke(p, h.id)
	}
}

func (w *world) forget(p *process, id string) bool {
	h := p.holding(id)
	if h == nil {
		return true
	}
	if !h.draining || p.inFlight(id) > 0 && !w.without.drainWait {
		return false
	}
	p.queues = slices.DeleteFunc(p.queues, func(h heldQueue) bool { return h.id == id })
	return true
}

// begin starts a call of the dealer.
func (w *world) begin(p *process, id string) {
	h := p.holding(id)
	e := execution{queue: id, uuid: p.uuid, epoch: h.epoch, index: h.index, total: h.total}
	w.checkStart(p, e)
	p.calls = append(p.calls, e)
}

// pass is the fence, the first statement of the dealer's transaction (F1).
func (w *world) pass(p *process, i int) {
	e := &p.calls[i]
	q := w.db.row(e.queue)
	ok := (q.cur == e.uuid || w.without.fenceOwner) && q.epoch == e.epoch
	if ok || w.without.fence {
		e.locked = true
		return
	}
	if h := p.holding(e.queue); h != nil && h.epoch == e.epoch {
		h.draining, h.lost = true, true
	}
	w.finish(p, i)
}

// locked reports whether a fenced transaction holds the row.
func (w *world) locked(id string) bool {
	if w.without.fence || w.without.fenceLock {
		return false
	}
	for i := range w.procs {
		for _, e := range w.procs[i].calls {
			if e.locked && e.queue == id {
				return true
			}
		}
	}
	return false
}

// finish ends a call, committed or not.
func (w *world) finish(p *process, i int) {
	id := p.calls[i].queue
	p.calls = slices.Delete(p.calls, i, i+1)
	if h := p.holding(id); h != nil && h.draining && p.inFlight(id) == 0 {
		p.drained = true
	}
}

// drainedAll reports whether nothing is in flight.
func (p *process) drainedAll() bool {
	return !slices.ContainsFunc(p.queues, func(h heldQueue) bool { return !h.draining || p.inFlight(h.id) > 0 })
}
