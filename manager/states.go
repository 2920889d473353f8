package manager

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/center"
)

// The states of a server, as Ready tells them. See the package comment for the picture.
const (
	stateJoining = "joining"
	stateServing = "serving"
	stateFenced  = "fenced"
	stateLeaving = "leaving"
)

// stateFunc is a state: it runs until the server leaves it and returns the next, nil at the end.
type stateFunc func(context.Context) stateFunc

func (s *server) live(ctx context.Context) {
	for state := s.joining; state != nil; {
		state = state(ctx)
	}
}

// joining registers, under a new uuid each time.
func (s *server) joining(ctx context.Context) stateFunc {
	s.now.Store(stateJoining)
	first := s.life == nil
	for ctx.Err() == nil {
		l, err := s.register(ctx, first)
		if err == nil {
			s.log = s.m.cfg.Logger.WithFields(map[string]any{"task_type": s.task.name, "own_sign": s.c.OwnSign(), "server": l.uuid})
			s.log.Info("joined")
			s.life = l
			s.cur.Store(l)
			s.m.heart.add(l)
			return s.serving
		}
		if first && !s.c.IsTransient(err) {
			s.fail(fmt.Errorf("task %s: %w", s.task.name, err))
			return nil
		}
		s.log.WithError(err).Warn("cannot join; trying again")
		sleep(ctx, s.settings.HeartbeatInterval)
	}
	return nil
}

// pollInterval is how often a server that waits for a requested queue looks whether it is there (S8).
const pollInterval = 200 * time.Millisecond

// serving follows the roster while the server trusts itself.
func (s *server) serving(ctx context.Context) stateFunc {
	s.now.Store(stateServing)
	s.proc.Wake()
	s.life.stale = true
	if err := s.plan(ctx, pulse{}, false); err != nil && !s.c.IsTransient(err) {
		s.log.WithError(err).Error("plan")
	}
	s.refresh(ctx, nil)
	for {
		switch s.wait(ctx) {
		case stopped:
			return s.leaving
		case lost:
			return s.fenced
		case settled:
		}
	}
}

// outcome is how a wait ended.
type outcome int

const (
	settled outcome = iota // something happened and was dealt with
	stopped                // the context is done
	lost                   // the row is gone, or the lease is over
)

// wait waits for the next thing to happen to a server that trusts itself, and deals with it.
func (s *server) wait(ctx context.Context) outcome {
	var poll <-chan time.Time
	if s.awaiting() {
		poll = time.After(time.Until(s.life.looked.Add(pollInterval)))
	}
	if !s.life.lease.valid() {
		return lost
	}
	expiry := time.NewTimer(s.life.lease.left())
	defer expiry.Stop()
	select {
	case <-ctx.Done():
		return stopped
	case <-s.life.gone:
		return lost
	case <-expiry.C:
		if !s.life.lease.valid() { // a heartbeat may have renewed it meanwhile
			return lost
		}
	case p := <-s.life.pulses:
		s.life.looked = time.Now()
		s.refresh(ctx, &p)
	case <-s.proc.Drained():
		s.noticeLost()
		s.refresh(ctx, nil)
	case <-s.proc.Emptied():
		s.refresh(ctx, nil)
	case <-s.tickTimer():
		s.tick(ctx)
	case <-s.life.windowTimer():
		s.refresh(ctx, nil)
	case <-poll:
		s.poll(ctx)
	}
	return settled
}

// poll looks whether a queue is there. Who leaves looks at all that it has: whether those that are to have it know.
func (s *server) poll(ctx context.Context) {
	defer func() { s.life.looked = time.Now() }() // when it has ended, so that a slow database has a rest
	if !s.life.giving() && !s.life.stale {
		bound, cancel := s.transaction(ctx)
		awaits, err := s.c.Awaits(bound, s.life.uuid)
		cancel()
		if err == nil && awaits == s.life.view.Awaits(s.life.uuid) {
			return
		}
	}
	s.life.stale = true
	s.refresh(ctx, nil)
}

// awaiting reports that it pays to look soon: another still has a queue that is to be ours, or we leave, and wait until
// those that are to have ours know of it. Who stays looks for that with each pulse, and works on meanwhile: when many
// join, everybody has to give a queue away, and a look of each every 200 ms would be most of what the database does.
func (s *server) awaiting() bool {
	if s.life.giving() && !s.life.late() {
		return true
	}
	for _, q := range s.life.view.Queues {
		if q.Cur != s.life.uuid {
			return true
		}
	}
	return false
}

// asksUnaware reports that somebody is to have a queue of ours and did not know it when we looked last.
func (l *life) asksUnaware() bool {
	return slices.ContainsFunc(l.view.Queues, func(q center.ViewQueue) bool { return q.Cur == l.uuid && q.Req != "" && !q.Known })
}

// noticeLost: where a dealer met the fence, the rows are no longer what the view says.
func (s *server) noticeLost() {
	for _, h := range s.proc.Held() {
		if h.Lost {
			s.life.stale = true
		}
	}
}

// fenced: the server no longer believes that it owns anything. What is in hand is cancelled, and
// nothing starts (S6). If the row is still there when the database answers again, work resumes
// under the same epochs after a fresh read; if it is gone, a new life begins when the old batches
// have ended, or the grace is over.
func (s *server) fenced(ctx context.Context) stateFunc {
	s.now.Store(stateFenced)
	s.cut(s.life)
	if !s.life.ended() {
		s.log.Warn("no heartbeat for too long: all work is stopped until the database answers")
		select {
		case <-ctx.Done():
			return s.leaving
		case <-s.life.pulses:
			s.log.Info("the database answers, the row is still there: work resumes")
			return s.serving
		case <-s.life.gone:
		}
	}
	s.log.Warn("expired by the others: all queues are theirs now; joining anew")
	grace := time.After(s.m.cfg.Grace)
	for s.forgetDrained() > 0 {
		select {
		case <-ctx.Done():
			return nil // there is nothing left to hand over
		case <-s.proc.Drained():
		case <-grace:
			s.log.Warn("a dealer goes on with a queue that was lost; that queue is not taken up again before it ends")
			return s.joining
		}
	}
	return s.joining
}

// forgetDrained forgets the queues that have nothing in hand and returns how many are left.
func (s *server) forgetDrained() (left int) {
	for _, h := range s.proc.Held() {
		if !s.proc.Forget(h.Queue.ID) {
			left++
		}
	}
	return left
}

// leaving asks the others to take over and works on until they know of it, so that no queue lies idle for a
// heartbeat, but not for long; then it drains everything while the heart still beats, hands over what is asked
// for, and the rest in one transaction (H4).
func (s *server) leaving(stop context.Context) stateFunc {
	s.now.Store(stateLeaving)
	ctx := context.WithoutCancel(stop)
	if s.life.ended() {
		return nil // there is nothing left to hand over
	}
	s.log.Info("leaving: draining")
	s.life.give(s.settings.HeartbeatInterval)
	s.announce(ctx)
	forced := s.drainAll(ctx)
	s.suspendAll(ctx, forced)
	s.m.heart.remove(s.life) // so that the lease ends, and with it the tries to leave in order
	s.bow(ctx, forced)
	s.life.lease.stop()
	return nil
}

// announce marks the server as draining, so that nobody deals it anything and its queues are asked for. If the
// database does not answer soon, nothing is waited for: Leave does it all.
func (s *server) announce(ctx context.Context) {
	ctx, cancel := context.WithDeadline(ctx, s.life.giveBy)
	defer cancel()
	if err := s.c.Drain(ctx, s.task.name, s.life.uuid); err != nil {
		s.log.WithError(err).Debug("announce the drain")
		s.life.giveBy = time.Now()
	}
}

// drainAll waits until nothing is in hand, for drain_timeout at most and only while the lease
// lasts; then it cancels. It returns the queues that did not let go even so.
func (s *server) drainAll(ctx context.Context) (forced []string) {
	deadline, cancel := context.WithTimeout(ctx, s.settings.DrainTimeout)
	defer cancel()
	s.life.stale = true
	s.refresh(deadline, nil)
	for !s.idle() {
		switch s.wait(deadline) {
		case stopped:
			s.log.Warnf("not drained within drain_timeout (%s): cancelling", s.settings.DrainTimeout)
			return s.cutShort()
		case lost:
			s.log.Warn("the lease is over before everything is drained: cancelling")
			return s.cutShort()
		case settled:
		}
	}
	return nil
}

func (s *server) idle() bool {
	for _, h := range s.proc.Held() {
		if !h.Drained {
			return false
		}
	}
	return true
}

// cutShort cancels what is in hand, waits a grace for it, and returns the queues that do not let
// go (H5).
func (s *server) cutShort() (forced []string) {
	for _, h := range s.proc.Held() {
		s.proc.Revoke(h.Queue.ID)
	}
	grace := time.After(s.m.cfg.Grace)
	for !s.idle() {
		select {
		case <-s.proc.Drained():
		case <-grace:
			for _, h := range s.proc.Held() {
				if !h.Drained {
					forced = append(forced, h.Queue.ID)
				}
			}
			return forced
		}
	}
	return nil
}

// bow leaves the roster. A database that does not answer is asked again until the lease is over:
// after that the others take everything over anyway.
func (s *server) bow(ctx context.Context, forced []string) {
	for {
		err := s.leave(ctx, forced)
		if err == nil {
			s.log.Info("left")
			for _, h := range s.proc.Held() {
				s.observe(MoveReleased, s.drainedFor(h.Queue.ID))
			}
			return
		}
		if !s.c.IsTransient(err) || !s.life.lease.valid() {
			s.log.WithError(err).Warn("could not leave in order; the others take over after judge_dead_interval")
			return
		}
		sleep(ctx, s.settings.HeartbeatInterval/4)
	}
}

func (s *server) leave(ctx context.Context, forced []string) error {
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	return s.c.Leave(ctx, s.task.name, s.life.uuid, forced)
}

// sleep waits, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
