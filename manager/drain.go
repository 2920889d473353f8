package manager

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/roster"
)

// drainedAll reports whether no queue has a select or a batch in flight.
func drainedAll(p *engine.Processor) bool { return len(notDrained(p)) == 0 }

// lostByFence reports whether the fence rejected a batch. The rows then differ from the view of the server.
func lostByFence(p *engine.Processor) bool {
	return slices.ContainsFunc(p.Queues(), func(h engine.QueueState) bool { return h.Lost })
}

// forgetDrained makes the processor forget its drained queues. It returns the number of queues that are left.
func forgetDrained(p *engine.Processor) (left int) {
	for _, h := range p.Queues() {
		if !p.Forget(h.Queue.ID) {
			left++
		}
	}
	return left
}

// notDrained returns the queues that still have a select or a batch in flight.
func notDrained(p *engine.Processor) (queues []string) {
	for _, h := range p.Queues() {
		if !h.Drained {
			queues = append(queues, h.Queue.ID)
		}
	}
	return queues
}

// cancelDrain cancels what is in flight, and returns the queues that do not drain within the grace (H5).
func cancelDrain(p *engine.Processor, grace time.Duration) (left []string) {
	for _, h := range p.Queues() {
		p.Revoke(h.Queue.ID, nil)
	}
	timeout := time.After(grace)
	for !drainedAll(p) {
		select {
		case <-p.Drained():
		case <-timeout:
			return notDrained(p)
		}
	}
	return nil
}

// hungCalls knows the queues for which calls of former sessions are still in flight. The roster lists them in the
// server's row, so that no plan gives one to this server, which could not work it (P9).
type hungCalls struct {
	*base
	listed map[string]int64 // the queues in the row, with the epochs under which the calls began
}

func hungPart(b *base, listed map[string]int64) part {
	h := &hungCalls{base: b, listed: listed}
	return part{
		register: func(info *roster.ServerInfo) { info.HungQueues = slices.Sorted(maps.Keys(h.listed)) },
		jobs:     map[duty]func() *job{clearHung: h.clear}, often: []duty{clearHung},
	}
}

// hungQueues makes the processor forget its drained queues, and returns the others with their epochs.
func hungQueues(p *engine.Processor) map[string]int64 {
	forgetDrained(p)
	hung := map[string]int64{}
	for _, h := range p.Queues() {
		hung[h.Queue.ID] = h.Queue.Epoch
	}
	return hung
}

// ended returns the listed queues for which nothing of a former session is in flight any more.
func (h *hungCalls) ended() (queues []string) {
	if len(h.listed) == 0 {
		return nil
	}
	held := map[string]int64{}
	for _, q := range h.proc.Queues() {
		held[q.Queue.ID] = q.Queue.Epoch
	}
	for id, epoch := range h.listed {
		if of, ok := held[id]; !ok || of != epoch {
			queues = append(queues, id)
		}
	}
	slices.Sort(queues)
	return queues
}

// clear returns the job that takes queues off the list whose calls have ended, or nil if there are none.
func (h *hungCalls) clear() *job {
	queues := h.ended()
	if len(queues) == 0 {
		return nil
	}
	return &job{
		name: "clear hung queues",
		call: func(ctx context.Context) error {
			return h.own().ClearHungQueues(ctx, queues)
		},
		then: func(ctx context.Context, err error) (more bool) {
			if err != nil {
				return false
			}
			for _, id := range queues {
				delete(h.listed, id)
				h.log.LogAttrs(ctx, slog.LevelInfo, "the call of a former session has ended; the worker may get the queue again",
					slog.String("queue", id))
			}
			h.agenda.add(time.Now(), rebalance)
			return false
		},
	}
}
