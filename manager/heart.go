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
)

// heart beats for all servers of the process at once (S1), in a goroutine of its own that does
// nothing else: no plan, no release and no dealer can hold it up.
type heart struct {
	c        *center.Center
	log      logrus.FieldLogger
	observer Observer

	mu    sync.Mutex
	lives map[string]*life

	next   string // the token of the beat that is due or under way; kept until one has succeeded
	silent bool   // the last beat failed
}

func newHeart(c *center.Center, cfg Config) *heart {
	return &heart{c: c, log: cfg.Logger, observer: cfg.Observer, lives: map[string]*life{}, next: newToken()}
}

// newToken returns 16 random hexadecimal digits.
func newToken() string {
	id := uuid.New()
	return hex.EncodeToString(id[8:])
}

func (h *heart) add(l *life) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lives[l.uuid] = l
}

func (h *heart) remove(l *life) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.lives, l.uuid)
}

// idleInterval is how often the heart looks for lives while there is none.
const idleInterval = 100 * time.Millisecond

func (h *heart) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(h.beat(ctx))
		}
	}
}

// beat sends one heartbeat and returns the pause until the next: a quarter after a failure, so
// that a passing trouble costs little of the lease.
func (h *heart) beat(ctx context.Context) time.Duration {
	lives, interval := h.snapshot()
	if len(lives) == 0 {
		return idleInterval
	}
	b := center.Beat{Token: h.next}
	for _, l := range lives {
		b.Servers = append(b.Servers, l.report())
		if !slices.Contains(b.Was, l.token) {
			b.Was = append(b.Was, l.token)
		}
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, statementTimeout(interval))
	defer cancel()
	pulses, err := h.c.Beat(ctx, b)
	h.tell(ctx, err)
	if h.observer != nil {
		h.observer.Beat(time.Since(start), err)
	}
	if err != nil {
		return interval / 4
	}
	h.next = newToken()
	for _, l := range lives {
		h.deliver(l, b.Token, start, pulses)
	}
	return max(0, interval-time.Since(start))
}

// statementTimeout bounds every statement below the heartbeat interval, so that a database that
// does not answer is noticed before the lease is over.
func statementTimeout(heartbeat time.Duration) time.Duration { return heartbeat * 3 / 4 }

func (h *heart) snapshot() (lives []*life, interval time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lives {
		lives = append(lives, l)
		if interval == 0 || l.interval < interval {
			interval = l.interval
		}
	}
	return lives, interval
}

// tell logs the first failure and the end of the trouble, not what is between.
func (h *heart) tell(ctx context.Context, err error) {
	switch {
	case err != nil && !h.silent && ctx.Err() != context.Canceled:
		h.log.WithError(err).Warn("no heartbeat; trying again")
	case err == nil && h.silent:
		h.log.Info("heartbeats are back")
	}
	h.silent = err != nil
}

func (h *heart) deliver(l *life, token string, start time.Time, pulses map[string]center.Pulse) {
	p, ok := pulses[l.uuid]
	if !ok {
		h.remove(l)
		l.lease.end()
		close(l.gone)
		return
	}
	now := time.Now()
	l.token = token
	l.lease.renew(start)
	l.clock.Store(&clockPair{db: p.Now, local: now})
	l.watch.observe(p.Now, now)
	l.ring = p.Ring
	seen := pulse{Pulse: p}
	if l.watch.mayExpire() {
		seen.watched = l.watch.watched()
		seen.inherited = l.watch.since.Before(l.joined) && p.Now.Sub(l.joined) < l.watch.judgeDead
	}
	select { // the newest pulse replaces one that nobody has read
	case <-l.pulses:
	default:
	}
	l.pulses <- seen
}
