package manager

import (
	"context"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// heartbeater sends the heartbeats of all servers of the process in one statement (S1). It has a goroutine of its own, so no
// plan, release or dealer can delay it.
type heartbeater struct {
	roster   *center.Center
	log      logrus.FieldLogger
	observer Observer

	mu            sync.Mutex
	registrations map[string]*registration
	early         chan struct{} // capacity 1: send a heartbeat at once

	token   string // of the next heartbeat; it stays the same until a heartbeat succeeds
	failing bool   // the last heartbeat failed
}

func newHeartbeater(c *center.Center, cfg Config) *heartbeater {
	return &heartbeater{roster: c, log: cfg.Logger, observer: cfg.Observer, registrations: map[string]*registration{}, early: make(chan struct{}, 1), token: newToken()}
}

// newToken returns 16 random hexadecimal digits.
func newToken() string {
	id := uuid.New()
	return hex.EncodeToString(id[8:])
}

// add makes the heartbeater keep a registration alive. It sends a heartbeat at once: the server works nothing before the
// reply (S11), and the servers that were there may have a longer interval.
func (h *heartbeater) add(r *registration) {
	h.mu.Lock()
	h.registrations[r.uuid] = r
	h.mu.Unlock()
	h.soon()
}

// soon makes the heartbeater send a heartbeat at once.
func (h *heartbeater) soon() {
	select {
	case h.early <- struct{}{}:
	default:
	}
}

func (h *heartbeater) remove(r *registration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.registrations, r.uuid)
}

func (h *heartbeater) run(ctx context.Context) {
	var next <-chan time.Time // nil while there is no registration
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.early:
		case <-next:
		}
		next = nil
		if pause, some := h.sendHeartbeat(ctx); some {
			next = time.After(pause)
		}
	}
}

// sendHeartbeat sends one heartbeat, unless there is no registration, and returns the pause until the next. After a failure the
// pause is a quarter of the interval, so that a short outage costs little of the lease.
func (h *heartbeater) sendHeartbeat(ctx context.Context) (pause time.Duration, some bool) {
	registrations, interval := h.snapshot()
	if len(registrations) == 0 {
		return 0, false
	}
	b := roster.Heartbeat{Token: h.token}
	for _, r := range registrations {
		b.Servers = append(b.Servers, r.report())
		if !slices.Contains(b.OldTokens, r.token) {
			b.OldTokens = append(b.OldTokens, r.token)
		}
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, statementTimeout(interval))
	defer cancel()
	replies, err := h.roster.Roster().SendHeartbeat(ctx, b)
	h.logChange(ctx, err)
	if h.observer != nil {
		h.observer.Heartbeat(time.Since(start), err)
	}
	if err != nil {
		return interval / 4, true
	}
	h.token = newToken()
	for _, r := range registrations {
		if reply, ok := replies[r.uuid]; ok {
			r.renew(b.Token, start, reply)
		} else {
			h.expire(r)
		}
	}
	return max(0, interval-time.Since(start)), true
}

func (h *heartbeater) snapshot() (all []*registration, interval time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.registrations {
		all = append(all, r)
		if interval == 0 || r.interval < interval {
			interval = r.interval
		}
	}
	return all, interval
}

// statementTimeout returns the time limit of one heartbeat. It is below the interval, so that the heartbeater notices a
// database that does not answer before the lease expires.
func statementTimeout(heartbeat time.Duration) time.Duration { return heartbeat * 3 / 4 }

// logChange logs the first failure, and the first success after it.
func (h *heartbeater) logChange(ctx context.Context, err error) {
	switch {
	case err != nil && !h.failing && ctx.Err() != context.Canceled:
		h.log.WithError(err).Warn("heartbeat failed; trying again")
	case err == nil && h.failing:
		h.log.Info("heartbeats succeed again")
	}
	h.failing = err != nil
}

// renew renews the lease after a heartbeat and passes the reply to the session. It replaces a reply that the session has
// not received yet.
func (r *registration) renew(token string, start time.Time, p roster.HeartbeatReply) {
	now := time.Now()
	r.token, r.watchRange = token, p.WatchRange
	r.lease.renew(start)
	r.clock.Store(&clockPair{db: p.Now, local: now})
	r.watch.observe(p.Now, now)
	reply := heartbeatReply{HeartbeatReply: p, lapses: r.lapses.Load()} // after the renewal: a lapse that follows waits for the next reply
	if r.watch.mayExpire() {
		reply.watched = r.watch.watched()
		reply.inherited = r.watch.since.Before(r.joined) && p.Now.Sub(r.joined) < r.watch.judgeDead
	}
	select {
	case <-r.replies:
	default:
	}
	r.replies <- reply
}

// expire ends a registration whose row is gone.
func (h *heartbeater) expire(r *registration) {
	h.remove(r)
	r.lease.end()
	close(r.gone)
}
