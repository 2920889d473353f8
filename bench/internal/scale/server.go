package scale

import (
	"context"
	"crypto/rand"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/center"
)

// server asks the center what package manager would: a beat per interval, a plan when one is due, its queues when they
// have changed, and releases. What it owns is drained at once, for it works nothing.
type server struct {
	h      *heart
	uuid   string
	pulses chan center.Pulse // capacity 1, the newest
	dead   atomic.Bool       // it beats no more
	owned  atomic.Int64      // queues that it knows to be its own

	// The heart's.
	due   time.Time // the next beat; guarded by the heart's mu
	token string
	ring  center.Ring

	joined time.Time
	since  time.Time // it has watched

	// Of the goroutine that acts.
	view  center.View
	stale bool // the view must be read again
	busy  int  // how often in succession another had the lock row when it was to plan
}

// beat beats, and hands the pulse on. The hearts' goroutines call it, each for its own servers.
func (s *server) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.h.f.settings.JudgeDeadInterval/2)
	defer cancel()
	token := rand.Text()
	pulses, err := s.h.c.Beat(ctx, center.Beat{
		Token: token, Was: []string{s.token},
		Servers: []center.ServerBeat{{UUID: s.uuid, TaskType: taskType, State: center.StateServing, WatchingSince: s.since, Ring: s.ring}},
	})
	p, ok := pulses[s.uuid]
	if err != nil || !ok {
		s.h.f.fails.Add(1)
		return
	}
	s.token, s.ring = token, p.Ring
	s.h.f.beats.Add(1)
	select { // the newest replaces one that nobody has read
	case <-s.pulses:
	default:
	}
	s.pulses <- p
}

// pollInterval is how often a server that waits for a queue looks whether it is there.
const pollInterval = 200 * time.Millisecond

// act follows the roster, until ctx is done or the server dies.
func (s *server) act(ctx context.Context) {
	s.try(ctx, func(ctx context.Context) error {
		_, err := s.assign(ctx, center.Pulse{})
		return err
	})
	s.try(ctx, s.look)
	for !s.dead.Load() {
		var poll <-chan time.Time
		if s.awaiting() {
			poll = time.After(pollInterval)
		}
		select {
		case <-ctx.Done():
			return
		case p := <-s.pulses:
			s.try(ctx, func(ctx context.Context) error { return s.follow(ctx, p) })
		case <-poll:
			s.try(ctx, s.poll)
		}
	}
}

// try bounds a step. One that fails is done again after the next pulse, for the view is then not what that says.
func (s *server) try(ctx context.Context, step func(context.Context) error) {
	bound, cancel := context.WithTimeout(ctx, s.h.f.settings.JudgeDeadInterval)
	defer cancel()
	if err := step(bound); err != nil && ctx.Err() == nil {
		s.h.f.fails.Add(1)
		s.stale = true
	}
}

func (s *server) follow(ctx context.Context, p center.Pulse) error {
	stale := s.stale || !s.matches(p) || s.asksUnaware()
	if p.AnyDead || p.MembershipVersion != p.PlannedVersion {
		busy, err := s.assign(ctx, p)
		if err != nil {
			return err
		}
		stale = stale || !busy
	}
	if !stale {
		return nil
	}
	return s.look(ctx)
}

// assign plans, and buries the dead if the server has watched for long enough. It waits for the lock row when manager does.
func (s *server) assign(ctx context.Context, p center.Pulse) (busy bool, err error) {
	a := center.Assignment{Actor: s.uuid, BeatWithin: 2 * s.h.f.settings.HeartbeatInterval, Seen: p.Now}
	a.NoWait = !p.AnyDead || s.busy < 3
	if watched := p.Now.Sub(s.since); !p.Now.IsZero() && watched >= s.h.f.settings.JudgeDeadInterval {
		a.Watched = watched
		a.Inherited = s.since.Before(s.joined) && p.Now.Sub(s.joined) < s.h.f.settings.JudgeDeadInterval
	}
	done, err := s.h.c.Assign(ctx, taskType, a)
	if s.busy++; !done.Busy {
		s.busy = 0
	}
	return done.Busy, err
}

// poll looks whether a queue is there.
func (s *server) poll(ctx context.Context) error {
	awaits, err := s.h.c.Awaits(ctx, s.uuid)
	if err != nil || awaits == s.view.Awaits(s.uuid) {
		return err
	}
	return s.look(ctx)
}

// look reads the queues and hands over what is asked for.
func (s *server) look(ctx context.Context) (err error) {
	s.stale = true
	for {
		if s.stale {
			if s.view, err = s.h.c.View(ctx, taskType, s.uuid); err != nil {
				return err
			}
			s.stale = false
		}
		var handovers []center.Handover
		var owned int64
		for _, q := range s.view.Queues {
			if q.Cur == s.uuid {
				owned++
			}
			if q.Cur == s.uuid && q.Req != "" && q.Known {
				handovers = append(handovers, center.Handover{QueueID: q.ID, Epoch: q.Epoch, To: q.Req})
			}
		}
		s.owned.Store(owned)
		if len(handovers) == 0 {
			return nil
		}
		s.stale = true
		released, err := s.h.c.Release(ctx, taskType, s.uuid, handovers)
		if err != nil || len(released) == 0 {
			return err
		}
		if len(released) == len(handovers) {
			s.view, s.stale = s.view.Without(released), false
		}
	}
}

// awaiting reports that the server waits for queues.
func (s *server) awaiting() bool {
	return slices.ContainsFunc(s.view.Queues, func(q center.ViewQueue) bool { return q.Cur != s.uuid })
}

// asksUnaware reports that somebody is to have a queue of this server and did not know it at the last look.
func (s *server) asksUnaware() bool {
	return slices.ContainsFunc(s.view.Queues, func(q center.ViewQueue) bool { return q.Cur == s.uuid && q.Req != "" && !q.Known })
}

// matches reports that the view is what the pulse saw.
func (s *server) matches(p center.Pulse) bool {
	var owned, requested, awaited, epochs, newest int64
	for _, q := range s.view.Queues {
		switch {
		case q.Cur != s.uuid:
			awaited++
			continue
		case q.Req != "":
			requested++
		}
		owned, epochs, newest = owned+1, epochs+q.Epoch, max(newest, q.PlanVersion)
	}
	return newest == p.OwnedPlan && owned == p.Owned && epochs == p.EpochSum && requested == p.Requested && awaited == p.Awaited
}
