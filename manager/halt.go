package manager

import (
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// halt is what keeps all queues of a server from being worked: the task type is paused, the number of queues is about to
// change (N1), or everything is to be handed over because the server leaves or is paused (H4).
type halt struct {
	*base

	halted  bool         // the task type is paused, or a barrier is up: queues are owned, but not worked
	barrier int64        // the partition version that all servers drain for; 0 if none
	drained atomic.Int64 // the barrier for which nothing is in flight, as the heartbeat reports it

	leaving    bool
	handOverBy time.Time // zero, or everything is to be handed over, and requesters are waited for until then
}

// follow notes what a heartbeat's reply says about pauses and the barrier.
func (h *halt) follow(p roster.HeartbeatReply) {
	halted := p.Paused || p.RequestedTotal > 0
	if halted != h.halted {
		h.log.WithFields(logrus.Fields{"paused": p.Paused, "repartition": p.RequestedTotal > 0}).Infof("halted: %t", halted)
	}
	switch paused := p.State == center.StatePaused; {
	case paused && !h.handingOver():
		h.log.Info("server paused by an operator; the other servers take over")
		h.handOver()
	case !paused && h.handingOver() && !h.leaving:
		h.log.Info("server resumed by an operator")
		h.handOverBy = time.Time{}
	}
	h.halted, h.barrier = halted, 0
	if p.RequestedTotal > 0 {
		h.barrier = p.PartitionVersion
	}
	if h.drained.Load() != h.barrier {
		h.drained.Store(0) // a drain for an earlier barrier does not count
	}
}

// acknowledge makes the next heartbeat report that nothing is in flight, and that nothing starts before the number of
// queues has changed or the request for that is withdrawn (N1).
func (h *halt) acknowledge() {
	if h.barrier != 0 && drainedAll(h.proc.Queues()) {
		h.drained.Store(h.barrier)
	}
}

// barrierPassed reports whether all servers have drained for the barrier that this server drained for.
func (h *halt) barrierPassed(p roster.HeartbeatReply) bool {
	return p.AllDrained && h.drained.Load() == p.PartitionVersion
}

// handOver starts to hand everything over. For a heartbeat and a little more, queues are worked until their requesters
// know that they are requesters.
func (h *halt) handOver() { h.handOverBy = time.Now().Add(h.settings.HeartbeatInterval * 5 / 4) }

func (h *halt) handingOver() bool { return !h.handOverBy.IsZero() }

// overdue reports whether everything is to be handed over and requesters are not waited for any more.
func (h *halt) overdue() bool { return h.handingOver() && !time.Now().Before(h.handOverBy) }
