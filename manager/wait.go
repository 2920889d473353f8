package manager

import (
	"context"
	"time"
)

// pollInterval is the pause between two polls of a server that waits for a requested queue (S8).
const pollInterval = 200 * time.Millisecond

// outcome says how a wait ended.
type outcome int

const (
	handled   outcome = iota // the session has handled an event
	stopped                  // the context is done
	leaseLost                // the row is gone, or the lease has expired
)

// wait starts the job that is due, waits for the next event of a session whose lease is valid, and deals with it.
func (s *session) wait(ctx context.Context) outcome {
	if !s.reg.lease.valid() {
		return leaseLost
	}
	s.startJob(ctx)
	var poll, tick <-chan time.Time
	if s.mustPoll() {
		poll = time.After(max(atOnce, time.Until(s.view.checked.Add(pollInterval))))
	}
	if s.ticker != nil && s.jobs.idle() {
		tick = s.ticker.timer()
	}
	expiry := time.NewTimer(max(atOnce, s.reg.lease.left()))
	defer expiry.Stop()
	select {
	case <-ctx.Done():
		return stopped
	case <-s.reg.gone:
		return leaseLost
	case <-expiry.C:
		if !s.reg.lease.valid() { // a heartbeat may have renewed it meanwhile
			return leaseLost
		}
	case r := <-s.reg.replies:
		s.follow(ctx, r)
	case <-s.server.ended:
		s.planner.endedDue = true // startJob starts it
	case err := <-s.jobs.ended:
		s.jobEnded(ctx, err)
	case <-s.proc.Drained():
		s.reconcile(ctx, lostByFence(s.proc.Queues()))
	case <-s.proc.Emptied():
		s.reconcile(ctx, false)
	case <-s.window.timer():
		s.reconcile(ctx, false)
	case <-tick: // startJob starts it
	case <-poll:
		s.poll(ctx)
	}
	return handled
}

// follow notes what a heartbeat's reply asks for, and reconciles. A step that needs a call of the database becomes a
// job. The read of the rows does not.
func (s *session) follow(ctx context.Context, r heartbeatReply) {
	s.view.checked = time.Now()
	s.proc.Wake() // the lease was renewed; executors that met its end ask again
	mustRead := !s.halt.isConfirmed() || s.view.mustRead(r.HeartbeatReply)
	if s.halt.follow(ctx, r); s.halt.isConfirmed() {
		s.server.unheard = 0
	}
	if s.ticker != nil {
		s.ticker.follow(r.HeartbeatReply)
	}
	s.share.follow(r.Share)
	s.config.follow(r.HeartbeatReply)
	s.planner.follow(r, s.halt.barrierPassed(r.HeartbeatReply))
	failing := s.failing(s.proc.Stats())
	s.failures.follow(failing)
	s.reconcile(ctx, mustRead)
	s.alerter.follow(ctx, r.HeartbeatReply, failing, s.reconciler.restricted())
}

// mustPoll reports whether to poll early: another server still owns a queue that this server requests, or this server
// hands everything over and waits until the requesters know of it. A server that keeps working reads its requests with
// each heartbeat only. When many servers join, every other server has to hand a queue over, and polls by all of them
// would be most of the load of the database.
func (s *session) mustPoll() bool {
	return s.halt.handingOver() && !s.halt.overdue() || s.view.hasIncoming()
}

// poll reads whether a queue has arrived. A server that hands everything over reads all its queues, because it waits
// until their requesters know of it.
func (s *session) poll(ctx context.Context) {
	defer func() { s.view.checked = time.Now() }() // at the end: the pause begins when a slow database has answered
	if !s.halt.handingOver() && s.view.fresh && s.view.incomingUnchanged(ctx) {
		return
	}
	s.reconcile(ctx, true)
}
