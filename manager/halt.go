package manager

import (
	"context"
	"log/slog"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// halt knows whether the server must stop work on all its queues: the task type is paused, or the server hands
// everything over because it leaves or is paused (H4).
type halt struct {
	*base
	confirmed int64 // the lapses of the registration that a reply has followed (S11)
	paused    bool  // the task type is paused: queues are owned, but not worked

	leaving     bool
	unannounced bool      // the server leaves, and the roster does not know it yet: no queue has a requester
	handOverBy  time.Time // when it stops waiting for requesters to know of requests; zero if it hands nothing over
}

// halted reports whether the queues are owned, but not worked.
func (h *halt) halted() bool { return h.paused || !h.isConfirmed() }

// isConfirmed reports whether a reply has been read to a heartbeat that was sent after the server joined, and after its
// lease last expired.
func (h *halt) isConfirmed() bool { return h.confirmed == h.reg.lapses.Load() }

// follow notes what a heartbeat's reply says about pauses.
func (h *halt) follow(ctx context.Context, p heartbeatReply) {
	h.confirmed = p.lapses
	if p.Paused != h.paused {
		text := "the worker works its queues again"
		if p.Paused {
			text = "the task type is paused: the worker finishes what is in flight, and keeps its queues"
		}
		h.log.LogAttrs(ctx, slog.LevelInfo, text)
		if p.Unreadable != nil {
			names := ops.New(h.roster).CommandLines("rota doctor names it")
			text := "halted, because a value of the task type cannot be read; " + names
			h.log.LogAttrs(ctx, slog.LevelError, text, slog.Any("error", p.Unreadable))
		}
	}
	switch paused := p.State == ops.StatePaused; {
	case paused && !h.handingOver():
		h.log.LogAttrs(ctx, slog.LevelInfo, "worker paused by an operator; the other workers take over")
		h.handOver()
	case !paused && h.handingOver() && !h.leaving:
		h.log.LogAttrs(ctx, slog.LevelInfo, "worker resumed by an operator")
		h.handOverBy = time.Time{}
	case h.leaving && !h.unannounced && roster.MayOwn(p.State): // an operator has resumed it: plans give it queues
		h.agenda.add(time.Now(), announceDrain)
	}
	h.paused = p.Paused
}

// handOver starts to hand everything over. For at most 1.25 heartbeats the server works a queue until its requester
// knows of the request.
func (h *halt) handOver() { h.handOverBy = time.Now().Add(h.settings.HeartbeatInterval * 5 / 4) }

func (h *halt) handingOver() bool { return !h.handOverBy.IsZero() }

// overdue reports whether the server hands everything over and no longer waits for requesters.
func (h *halt) overdue() bool { return reached(h.handOverBy, time.Now()) }

// awaitsRequesters reports whether the server hands everything over and waits until the requesters know of it.
func (h *halt) awaitsRequesters() bool { return h.handingOver() && !h.overdue() }

// stage returns how far the server is that hands everything over.
func (h *halt) stage() handOverStage {
	switch {
	case !h.handingOver():
		return noHandOver
	case h.overdue():
		return waitsNoLonger
	case h.unannounced:
		return notAnnounced
	}
	return awaitsNews
}

// leave starts to hand everything over because the server leaves. With a reservation no server is to request the queues
// (P13), so it waits for no requester.
func (h *halt) leave() {
	h.leaving, h.unannounced = true, true
	if h.handOver(); h.cfg.reservation().Within > 0 {
		h.handOverBy = time.Now()
	}
	h.agenda.add(time.Now(), announceDrain)
}

// announce returns the job that says to the roster that the server leaves, so that it is assigned no queue and its
// queues are requested, or reserved (P13). If the database does not answer soon, requesters are not waited for:
// handOverAll hands everything over.
func (h *halt) announce() *job {
	by, reservation := h.handOverBy, h.cfg.reservation()
	if reservation.Within > 0 || h.overdue() {
		by = time.Now().Add(h.settings.JudgeDeadInterval) // without it handOverAll reserves nothing
	}
	return &job{
		name: "announce the drain",
		call: func(ctx context.Context) error {
			ctx, cancel := context.WithDeadline(ctx, by)
			defer cancel()
			return h.own().Drain(ctx, reservation)
		},
		then: func(_ context.Context, err error) (more bool) {
			h.unannounced = false
			if err != nil {
				h.handOverBy = time.Now()
			}
			h.view.invalidate()
			return true
		},
	}
}
