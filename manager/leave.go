package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
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
	for _, p := range s.parts {
		if p.leave != nil && s.jobs.wait(ctx) {
			p.leave(ctx, s.jobs, notDrained)
		}
	}
	s.jobs.wait(ctx)
	s.heartbeater.remove(s.reg) // so that the lease expires, and with it the attempts to leave
	s.writeLastStatistics(ctx)
	s.handOverAll(ctx, notDrained)
	s.reg.lease.stop()
	return nil
}

// writeLastStatistics writes the statistics that the history of servers keeps. Without them the session ends all the
// same.
func (s *session) writeLastStatistics(ctx context.Context) {
	_ = s.heartbeater.statistics.write(ctx, s.settings.HeartbeatInterval/2, s.statistics()) // it has logged the error
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

// withLeaveLimit returns the context for calls of a server that leaves, which wait no longer than others may expire it.
func (b *base) withLeaveLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(b.reg.lease.left(), leaveLimit))
}

// leaveLimit is the least time that a server has for its attempts to leave: a database that is away, or swallows what
// it is sent, must not hold up the end of the process until a supervisor kills it.
const leaveLimit = 5 * time.Second

// handOverAll removes the server from the roster and hands over what it still owns. It repeats that while the database
// does not answer, until the lease expires, and for leaveLimit at least: after that the other servers take over anyway.
// A failure is an error of the server.
func (s *session) handOverAll(ctx context.Context, notDrained []string) {
	for _, h := range s.proc.Queues() {
		if h.Drained {
			s.reconciler.stages.noteDrained(h.Queue.ID)
		}
	}
	by := time.Now().Add(max(s.reg.lease.left(), leaveLimit))
	var cause error
	for {
		call, cancel := context.WithDeadline(ctx, by)
		err := s.own().Leave(call, notDrained, s.cfg.reservation())
		cancel()
		if err == nil {
			s.log.LogAttrs(ctx, slog.LevelInfo, "left")
			for _, h := range s.proc.Queues() {
				s.observeMove(s.reconciler.stages.end(h.Queue.ID, h.Queue.Epoch, ""))
			}
			return
		}
		if cause == nil || !errors.Is(err, context.DeadlineExceeded) {
			cause = err // the end of the time says less than what failed before
		}
		if !s.roster.IsTransient(err) || !time.Now().Before(by) {
			s.server.fail(s.server.notLeft(cause))
			return
		}
		sleep(ctx, s.settings.HeartbeatInterval/4)
	}
}

// NotLeftError says that servers of a process are still in the roster although the process has ended. Nothing is lost:
// after JudgeDeadInterval the servers of other processes take over what they own, or at once if a witness tells that
// the process has ended. Run returns it.
type NotLeftError struct {
	TaskTypes         []string
	JudgeDeadInterval time.Duration // the longest of the servers
	Err               error         // why the first of them has not left
}

// Error implements error.
func (e *NotLeftError) Error() string {
	return fmt.Sprintf("%v; the other workers take over the queues of %s after judge_dead_interval (%s)",
		e.Err, strings.Join(e.TaskTypes, ", "), e.JudgeDeadInterval)
}

// Unwrap returns the error of the first attempt.
func (e *NotLeftError) Unwrap() error { return e.Err }

// notLeft returns the error of a server that is still in the roster.
func (s *server) notLeft(err error) error {
	return &NotLeftError{TaskTypes: []string{s.taskType}, JudgeDeadInterval: s.settings.JudgeDeadInterval, Err: err}
}

// joinNotLeft makes one error of those of all servers that are still in the roster. err is the error that Run returns.
func (m *Manager) joinNotLeft(err error) error {
	first, ok := errors.AsType[*NotLeftError](err)
	if !ok {
		return err
	}
	for _, s := range m.servers {
		if e, ok := errors.AsType[*NotLeftError](s.err); ok && e != first {
			first.TaskTypes = append(first.TaskTypes, e.TaskTypes...)
			first.JudgeDeadInterval = max(first.JudgeDeadInterval, e.JudgeDeadInterval)
		}
	}
	return err
}
