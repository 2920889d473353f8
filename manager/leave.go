package manager

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// leaving announces that the server leaves, and works on for up to 1.25 heartbeats until the requesters know of it, so
// that no queue is idle for a heartbeat. With a reservation nobody is to request the queues (P13), so it does not wait. Then
// it drains everything while the heartbeats go on. It releases the queues that are requested, and hands over the rest in
// one transaction (H4).
func (s *session) leaving(stop context.Context) stateFunc {
	s.server.state.Store(stateLeaving)
	ctx := context.WithoutCancel(stop)
	if s.reg.ended() {
		return nil // there is nothing left to hand over
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "leaving: draining")
	s.halt.leaving = true
	s.halt.unannounced = true
	if s.halt.handOver(); s.reservation().Within > 0 {
		s.halt.handOverBy = time.Now()
	}
	notDrained := s.drainAll(ctx)
	s.jobs.wait(ctx)
	if s.sweeper != nil {
		s.endSweeps(ctx, notDrained)
	}
	s.heartbeater.remove(s.reg) // so that the lease expires, and with it the attempts to leave
	s.handOverAll(ctx, notDrained)
	s.reg.lease.stop()
	return nil
}

// reservation keeps the queues for the next process of this name (P13).
func (s *session) reservation() roster.Reservation {
	return roster.Reservation{Name: s.cfg.Name, Within: s.cfg.ReturnWithin}
}

// announcement returns the job that says to the roster that the server leaves, so that it is assigned no queue and its
// queues are requested, or not (P13); nil if the server does not leave, or has announced it. If the database does not
// answer soon, requesters are not waited for: handOverAll hands everything over.
func (s *session) announcement() *job {
	if !s.halt.unannounced {
		return nil
	}
	by := s.halt.handOverBy
	if s.reservation().Within > 0 {
		by = time.Now().Add(s.settings.JudgeDeadInterval) // without it handOverAll reserves nothing
	}
	return &job{
		name: "announce the drain",
		call: func(ctx context.Context) error {
			ctx, cancel := context.WithDeadline(ctx, by)
			defer cancel()
			return s.roster.Roster().Server(s.taskType, s.uuid).Drain(ctx, s.reservation())
		},
		then: func(_ context.Context, err error) (more bool) {
			s.halt.unannounced = false
			if err != nil {
				s.halt.handOverBy = time.Now()
			}
			s.view.invalidate()
			return true
		},
	}
}

// drainAll waits until nothing is in flight, and a server that reserves its queues has announced that: an idle one has
// drained at once. If this takes longer than drain_timeout, or the lease expires, drainAll
// cancels the calls and returns the queues that do not drain within the grace.
func (s *session) drainAll(ctx context.Context) (notDrained []string) {
	deadline, cancel := context.WithTimeout(ctx, s.settings.DrainTimeout)
	defer cancel()
	s.reconcile(deadline, true)
	for s.reservation().Within > 0 && s.halt.unannounced || !drainedAll(s.proc.Queues()) {
		switch s.wait(deadline) {
		case stopped:
			s.log.LogAttrs(ctx, slog.LevelWarn, fmt.Sprintf("not drained within drain_timeout (%s): cancelling", s.settings.DrainTimeout))
			return cancelDrain(s.proc, s.cfg.Grace)
		case leaseLost:
			s.log.LogAttrs(ctx, slog.LevelWarn, "lease expired before everything was drained: cancelling")
			return cancelDrain(s.proc, s.cfg.Grace)
		case handled:
		}
	}
	return nil
}

// endSweeps saves how far the sweeps have come, except those of queues that did not drain, before other servers
// continue them.
func (s *session) endSweeps(ctx context.Context, notDrained []string) {
	s.sweeper.checkEnds()
	if j := s.sweeper.saveEnds(); j != nil {
		s.jobs.start(ctx, j)
		s.jobs.wait(ctx)
	}
	s.sweeper.suspendAll(ctx, notDrained)
}

// handOverAll removes the server from the roster and hands over what it still owns. It repeats that while the database
// does not answer, until the lease expires: after that the other servers take over anyway.
func (s *session) handOverAll(ctx context.Context, notDrained []string) {
	for {
		call, cancel := s.withTimeout(ctx)
		err := s.roster.Roster().Server(s.taskType, s.uuid).Leave(call, notDrained, s.reservation())
		cancel()
		if err == nil {
			s.log.LogAttrs(ctx, slog.LevelInfo, "left")
			for _, h := range s.proc.Queues() {
				s.moved(MoveReleased, s.reconciler.drainedFor(h.Queue.ID))
			}
			return
		}
		if !s.roster.IsTransient(err) || !s.reg.lease.valid() {
			s.log.LogAttrs(ctx, slog.LevelWarn, "leaving failed; the other servers take over after judge_dead_interval", slog.Any("error", err))
			return
		}
		sleep(ctx, s.settings.HeartbeatInterval/4)
	}
}
