package manager

import (
	"context"
	"fmt"
	"log/slog"
)

// leaving announces that the server leaves, and works on for up to 1.25 heartbeats until the requesters know of it, so
// that no queue is idle for a heartbeat. Then it drains everything while the heartbeats go on. It releases the queues
// that are requested, and hands over the rest in one transaction (H4).
func (s *session) leaving(stop context.Context) stateFunc {
	s.server.state.Store(stateLeaving)
	ctx := context.WithoutCancel(stop)
	if s.reg.ended() {
		return nil // there is nothing left to hand over
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "leaving: draining")
	s.halt.leave()
	notDrained := s.drainAll(ctx)
	s.jobs.wait(ctx)
	if s.sweeper != nil {
		s.sweeper.leave(ctx, s.jobs, notDrained)
	}
	s.heartbeater.remove(s.reg) // so that the lease expires, and with it the attempts to leave
	s.handOverAll(ctx, notDrained)
	s.reg.lease.stop()
	return nil
}

// drainAll waits until nothing is in flight. If the server reserves its queues, it also waits until that is announced,
// because an idle server has nothing in flight from the beginning. If this takes longer than drain_timeout, or the
// lease expires, drainAll cancels the calls and returns the queues that do not drain within the grace.
func (s *session) drainAll(ctx context.Context) (notDrained []string) {
	deadline, cancel := context.WithTimeout(ctx, s.settings.DrainTimeout)
	defer cancel()
	s.reconcile(deadline, true)
	for s.cfg.reservation().Within > 0 && s.halt.unannounced || !drainedAll(s.proc) {
		switch s.wait(deadline) {
		case stopped:
			s.log.LogAttrs(ctx, slog.LevelWarn,
				fmt.Sprintf("not drained within drain_timeout (%s): cancelling", s.settings.DrainTimeout))
			return cancelDrain(s.proc, s.cfg.Grace)
		case leaseLost:
			s.log.LogAttrs(ctx, slog.LevelWarn, "lease expired before everything was drained: cancelling")
			return cancelDrain(s.proc, s.cfg.Grace)
		case handled:
		}
	}
	return nil
}

// handOverAll removes the server from the roster and hands over what it still owns. It repeats that while the database
// does not answer, until the lease expires: after that the other servers take over anyway.
func (s *session) handOverAll(ctx context.Context, notDrained []string) {
	for _, h := range s.proc.Queues() {
		if h.Drained {
			s.reconciler.stages.noteDrained(h.Queue.ID)
		}
	}
	for {
		call, cancel := s.withTimeout(ctx)
		err := s.own().Leave(call, notDrained, s.cfg.reservation())
		cancel()
		if err == nil {
			s.log.LogAttrs(ctx, slog.LevelInfo, "left")
			for _, h := range s.proc.Queues() {
				s.observeMove(s.reconciler.stages.end(h.Queue.ID, h.Queue.Epoch, ""))
			}
			return
		}
		if !s.roster.IsTransient(err) || !s.reg.lease.valid() {
			s.log.LogAttrs(ctx, slog.LevelWarn, "leaving failed; the other servers take over after judge_dead_interval",
				slog.Any("error", err))
			return
		}
		sleep(ctx, s.settings.HeartbeatInterval/4)
	}
}
