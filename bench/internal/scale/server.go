package scale

import (
	"context"
	"crypto/rand"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// server calls internal/roster as package manager does: a heartbeat per interval, a plan when one is due, its queues when they
// have changed, and releases. It works no items, so its queues are always drained.
type server struct {
	h       *heartbeater
	uuid    string
	replies chan roster.HeartbeatReply // capacity 1: the newest reply
	dead    atomic.Bool                // it sends no more heartbeats
	owned   atomic.Int64               // its queues that it knows
	read    atomic.Int64               // the plan up to which it has read its queues

	// The goroutine of the heartbeater uses these.
	due        time.Time // the next heartbeat; guarded by the mu of the heartbeater
	token      string
	watchRange roster.WatchRange

	joined time.Time
	since  time.Time // when it began to watch

	// The goroutine of act uses these.
	view  roster.View
	stale bool // the view must be read again
	busy  int  // how often in succession the lock row was busy
}

// beat sends a heartbeat and passes the reply to act. The goroutine of the server's heartbeater calls it.
func (s *server) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.h.f.settings.JudgeDeadInterval/2)
	defer cancel()
	token := rand.Text()
	replies, err := s.h.c.Roster().SendHeartbeat(ctx, roster.Heartbeat{
		Token: token,
		Servers: []roster.ServerReport{{
			UUID: s.uuid, OldToken: s.token, TaskType: taskType, State: ops.StateServing, WatchingSince: s.since,
			WatchRange: s.watchRange, ReadPlanVersion: s.read.Load(),
		}},
	})
	p, ok := replies[s.uuid]
	if err != nil || !ok {
		s.h.f.fails.Add(1)
		return
	}
	s.token, s.watchRange = token, p.Watch.Range
	s.h.f.beats.Add(1)
	select { // the newest reply replaces an unread one
	case <-s.replies:
	default:
	}
	s.replies <- p
}

// pollInterval is the pause between two polls of a worker that waits for a queue.
const pollInterval = 100 * time.Millisecond

// act follows the roster until ctx is done or the server dies.
func (s *server) act(ctx context.Context) {
	s.try(ctx, func(ctx context.Context) error {
		_, err := s.rebalance(ctx, roster.HeartbeatReply{})
		return err
	})
	s.try(ctx, s.refresh)
	for !s.dead.Load() {
		var poll <-chan time.Time
		if s.awaiting() {
			poll = time.After(pollInterval)
		}
		select {
		case <-ctx.Done():
			return
		case p := <-s.replies:
			s.try(ctx, func(ctx context.Context) error { return s.follow(ctx, p) })
		case <-poll:
			s.try(ctx, s.poll)
		}
	}
}

// try runs a step with a time limit. After a failure the view is stale, so that the next reply repeats the step.
func (s *server) try(ctx context.Context, step func(context.Context) error) {
	bound, cancel := context.WithTimeout(ctx, s.h.f.settings.JudgeDeadInterval)
	defer cancel()
	if err := step(bound); err != nil && ctx.Err() == nil {
		s.h.f.fails.Add(1)
		s.stale = true
	}
}

func (s *server) follow(ctx context.Context, p roster.HeartbeatReply) error {
	stale := s.stale || !s.matches(p) || s.hasUninformedRequester()
	if p.Watch.AnyDead || p.PlanDue {
		busy, err := s.rebalance(ctx, p)
		if err != nil {
			return err
		}
		stale = stale || !busy
	}
	if !stale {
		return nil
	}
	return s.refresh(ctx)
}

// rebalance plans, and evicts expired servers if this server has watched for long enough. It waits for the lock row when
// manager does.
func (s *server) rebalance(ctx context.Context, p roster.HeartbeatReply) (busy bool, err error) {
	a := roster.RebalanceOptions{MaxHeartbeatAge: 2 * s.h.f.settings.HeartbeatInterval, RepliedAt: p.Now}
	a.NoWait = !p.Watch.AnyDead || s.busy < 3
	if watched := p.Now.Sub(s.since); !p.Now.IsZero() && watched >= s.h.f.settings.JudgeDeadInterval {
		a.Watched = watched
		a.Inherited = s.since.Before(s.joined) && p.Now.Sub(s.joined) < s.h.f.settings.JudgeDeadInterval
	}
	done, err := s.h.c.Roster().Planner(taskType, s.uuid).Rebalance(ctx, a)
	if s.busy++; !done.Busy {
		s.busy = 0
	}
	return done.Busy, err
}

// poll reads the queues if they have changed.
func (s *server) poll(ctx context.Context) error {
	version, err := s.h.c.Roster().Server(taskType, s.uuid).QueueVersion(ctx)
	if err != nil || version == s.view.Version {
		return err
	}
	return s.refresh(ctx)
}

// refresh reads the queues and hands over the requested queues.
func (s *server) refresh(ctx context.Context) (err error) {
	s.stale = true
	for {
		if s.stale {
			if s.view, err = s.h.c.Roster().Server(taskType, s.uuid).View(ctx); err != nil {
				return err
			}
			s.stale = false
			s.hasRead()
		}
		var handovers []roster.Handover
		var owned int64
		for _, q := range s.view.Queues {
			if q.Owner == s.uuid {
				owned++
			}
			if q.Owner == s.uuid && q.Requester != "" && q.RequesterInformed {
				handovers = append(handovers, roster.Handover{QueueID: q.ID, Epoch: q.Epoch, Requester: q.Requester})
			}
		}
		s.owned.Store(owned)
		if len(handovers) == 0 {
			return nil
		}
		s.stale = true
		released, err := s.h.c.Roster().Server(taskType, s.uuid).Release(ctx, handovers)
		if err != nil || len(released) == 0 {
			return err
		}
		if len(released) == len(handovers) {
			s.view, s.stale = s.view.Without(released), false
		}
	}
}

// hasRead notes what the next heartbeat reports of the view. If the view has new requests, it makes the heartbeat due,
// because their owners wait for it.
func (s *server) hasRead() {
	isNew := s.view.NewestRequest(s.uuid) > s.read.Swap(s.view.NewestPlan())
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if now := time.Now(); isNew && now.Before(s.due) {
		s.due = now
	}
}

// awaiting reports whether the server waits for queues.
func (s *server) awaiting() bool {
	return slices.ContainsFunc(s.view.Queues, func(q roster.ViewQueue) bool { return q.Owner != s.uuid })
}

// hasUninformedRequester reports whether a requester of one of its queues did not know of the
// request at the last refresh.
func (s *server) hasUninformedRequester() bool {
	return slices.ContainsFunc(s.view.Queues, func(q roster.ViewQueue) bool { return q.Owner == s.uuid && q.Requester != "" && !q.RequesterInformed })
}

// matches reports whether the view agrees with the reply.
func (s *server) matches(p roster.HeartbeatReply) bool { return s.view.Version == p.QueueVersion }
