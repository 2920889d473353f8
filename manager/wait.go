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

// wait waits for the next event and handles it. It returns leaseLost as soon as the lease is not valid.
func (s *session) wait(ctx context.Context) outcome {
	var poll, tick <-chan time.Time
	if s.mustPoll() {
		poll = time.After(time.Until(s.view.checked.Add(pollInterval)))
	}
	if s.ticker != nil {
		tick = s.ticker.timer()
	}
	if !s.reg.lease.valid() {
		return leaseLost
	}
	expiry := time.NewTimer(s.reg.lease.left())
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
	case <-s.proc.Drained():
		s.reconcile(ctx, lostByFence(s.proc.Queues()))
	case <-s.proc.Emptied():
		s.reconcile(ctx, false)
	case <-s.window.timer():
		s.reconcile(ctx, false)
	case <-tick:
		s.tick(ctx)
	case <-poll:
		s.poll(ctx)
	}
	return handled
}

// mustPoll reports whether to poll before the next heartbeat: the server waits for a queue of another server, or it hands
// everything over and waits until the requesters know. An owner that stays in the roster reads its requesters only after
// its heartbeats. When many servers join, every other server has a queue to hand over, and a poll by each of them every
// 200 ms would be most of what the database does.
func (s *session) mustPoll() bool {
	return s.halt.handingOver() && !s.halt.overdue() || s.view.hasIncoming()
}

// follow applies a heartbeat's reply, and reconciles.
func (s *session) follow(ctx context.Context, r heartbeatReply) {
	s.view.checked = time.Now()
	s.proc.Wake() // the lease was renewed, and executors that saw it expired must ask again
	mustRead := s.lapsed.Swap(false) || s.view.mustRead(r.HeartbeatReply)
	if err := s.apply(ctx, r); err != nil {
		s.window.update()
		s.retry(err)
		return
	}
	s.reconcile(ctx, mustRead)
}

// apply does what the reply asks of the server as a whole. reconcile does the rest, for each queue.
func (s *session) apply(ctx context.Context, r heartbeatReply) error {
	s.halt.follow(r.HeartbeatReply)
	if s.ticker != nil {
		s.ticker.follow(r.HeartbeatReply)
	}
	if err := s.config.follow(ctx, r.HeartbeatReply); err != nil {
		return err
	}
	if err := s.planner.follow(ctx, r, s.halt.barrierPassed(r.HeartbeatReply)); err != nil {
		return err
	}
	s.alerter.follow(ctx, r.HeartbeatReply, s.reconciler.restricted())
	s.config.followItems(r.HeartbeatReply)
	if r.AuditDue {
		return s.planner.audit(ctx, r)
	}
	return nil
}

// tick does what is due for the runs, and claims queues of the open run.
func (s *session) tick(ctx context.Context) {
	if !s.ticker.tick(ctx) {
		return
	}
	s.sweeper.saveProgress(ctx)
	s.reconcile(ctx, false)
	if open, paused := s.ticker.open(); open == "" || paused || s.halt.halted || s.halt.handingOver() {
		return
	}
	if err := s.sweeper.claim(ctx, s.reconciler.claimable()); err != nil {
		s.log.WithError(err).Debug("claiming queues of the run failed; trying again")
	}
}

// poll finds out whether a queue has arrived. A server that hands everything over reads all its queues, because it waits
// until their requesters know.
func (s *session) poll(ctx context.Context) {
	defer func() { s.view.checked = time.Now() }() // at the end, so that a slow database has a pause between two polls
	if !s.halt.handingOver() && s.view.fresh && s.view.incomingUnchanged(ctx) {
		return
	}
	s.reconcile(ctx, true)
}
