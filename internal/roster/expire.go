package roster

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// expire removes the servers that have been silent for their judge_dead_interval, by the clock that was read after
// the lock, if the actor may expire servers. It also removes the servers whose processes have ended (S15). It returns the
// others, and how long the removed ones had been silent. A server with a new heartbeat survives: its heartbeat is no
// longer the one that was read.
func expire(ctx context.Context, l *LockTx, servers []ServerRow, p rebalancing) (alive []ServerRow, silences []time.Duration, err error) {
	current := p.Watched > 0 && p.actorIsCurrent(servers, l.Now)
	dead := slices.DeleteFunc(slices.Clone(servers), func(s ServerRow) bool { return !p.ended(s) && (!current || !p.expired(s, l.Now)) })
	if len(dead) == 0 {
		return servers, nil, nil
	}
	moved, err := MoveToHistory(ctx, l, ReasonExpired, dead)
	if err != nil || len(moved) == 0 {
		return servers, nil, err
	}
	var events []Event
	for _, s := range servers {
		if !moved[s.UUID] {
			alive = append(alive, s)
			continue
		}
		silent := l.Now.Sub(s.Heartbeat).Round(time.Millisecond)
		reason := fmt.Sprintf("silent for %s, judge_dead_interval %s", silent, s.JudgeDeadInterval)
		if silent < 0 { // the clock was set back: the true time is unknown
			silent = s.JudgeDeadInterval
			reason = fmt.Sprintf("silent since the clock was set back, from %s or later; judge_dead_interval %s", s.Heartbeat.UTC().Format(time.RFC3339), s.JudgeDeadInterval)
		}
		if p.ended(s) {
			reason = "its process has ended: nobody holds its lock " + s.Witness
		}
		silences = append(silences, silent)
		events = append(events, Event{Kind: EventExpired, from: s.UUID, Actor: p.actor, Reason: reason})
	}
	if err := l.Record(ctx, events...); err != nil {
		return nil, nil, err
	}
	return alive, silences, l.membershipChanged(ctx)
}

// actorIsCurrent reports whether the actor may expire servers: whether its own heartbeat is fresh by the clock that
// was read after the lock, and close to the time of the heartbeat reply. If they are apart, the clock was set
// meanwhile, or the call was delayed.
func (p rebalancing) actorIsCurrent(servers []ServerRow, now time.Time) bool {
	own := slices.IndexFunc(servers, func(s ServerRow) bool { return s.UUID == p.actor })
	if own < 0 {
		return false
	}
	heartbeat := servers[own].Heartbeat
	return now.Sub(heartbeat).Abs() <= p.MaxHeartbeatAge && (p.RepliedAt.IsZero() || heartbeat.Sub(p.RepliedAt).Abs() <= p.MaxHeartbeatAge)
}

// expired reports whether the actor may expire a server. It may if the server has been silent for long enough, both
// now and at the heartbeat reply. It also may if the server's last heartbeat lies in a future from which the clock
// was set back.
func (o RebalanceOptions) expired(s ServerRow, now time.Time) bool {
	if o.Watched < s.JudgeDeadInterval {
		return false
	}
	first, last := now, now
	if !o.RepliedAt.IsZero() {
		first, last = minTime(now, o.RepliedAt), maxTime(now, o.RepliedAt)
	}
	limit := s.JudgeDeadInterval
	if o.Inherited {
		limit += s.JudgeDeadInterval / 2
	}
	return first.Sub(s.Heartbeat) > limit || s.Heartbeat.Sub(last) > s.JudgeDeadInterval
}

// ended reports whether a witness has proved that the process of a server has ended (S15).
func (o RebalanceOptions) ended(s ServerRow) bool {
	return s.Witness != "" && slices.Contains(o.Ended, s.Witness)
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func maxTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
