package manager

import (
	"time"

	"github.com/dutyrota/rota/processor"
)

// drainedAll reports whether nothing of the queues is in flight.
func drainedAll(holdings []processor.QueueState) bool {
	for _, h := range holdings {
		if !h.Drained {
			return false
		}
	}
	return true
}

// lostByFence reports whether the fence rejected a batch. The rows then differ from the view of the server.
func lostByFence(holdings []processor.QueueState) bool {
	for _, h := range holdings {
		if h.Lost {
			return true
		}
	}
	return false
}

// forgetDrained makes the processor forget its drained queues. It returns the number of queues that are left.
func forgetDrained(p *processor.Processor) (left int) {
	for _, h := range p.Queues() {
		if !p.Forget(h.Queue.ID) {
			left++
		}
	}
	return left
}

// notDrained returns the queues that still have a select or a batch in flight.
func notDrained(p *processor.Processor) (queues []string) {
	for _, h := range p.Queues() {
		if !h.Drained {
			queues = append(queues, h.Queue.ID)
		}
	}
	return queues
}

// cancelDrain cancels what is in flight, and returns the queues that do not drain within the grace (H5).
func cancelDrain(p *processor.Processor, grace time.Duration) (left []string) {
	for _, h := range p.Queues() {
		p.Revoke(h.Queue.ID, nil)
	}
	timeout := time.After(grace)
	for !drainedAll(p.Queues()) {
		select {
		case <-p.Drained():
		case <-timeout:
			return notDrained(p)
		}
	}
	return nil
}
