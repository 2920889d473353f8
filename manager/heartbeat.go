package manager

import (
	"cmp"
	"context"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// heartbeater sends the heartbeats of all servers of the process in one statement (S1). It has a goroutine of its own,
// so no plan, release or dealer can delay it.
type heartbeater struct {
	roster    *center.Center
	log       *slog.Logger
	observers []Observer

	mu            sync.Mutex
	registrations map[string]*registration
	early         chan struct{} // capacity 1: send a heartbeat at once

	token   string // of the next heartbeat; it stays the same until a heartbeat succeeds
	failing bool   // the last heartbeat failed

	failure atomic.Pointer[error] // why the last heartbeat failed, for Ready; nil: it has not

	statistics *statisticsWriter
	took       time.Duration // the last heartbeat that succeeded; 0 before the first
}

func newHeartbeater(c *center.Center, cfg Config) *heartbeater {
	h := &heartbeater{
		roster: c, log: cfg.Logger, observers: cfg.Observers, registrations: map[string]*registration{},
		early: make(chan struct{}, 1), token: newToken(),
	}
	h.statistics = newStatisticsWriter(h)
	return h
}

// newToken returns 16 random hexadecimal digits.
func newToken() string {
	id := uuid.New()
	return hex.EncodeToString(id[8:])
}

// add makes the heartbeater keep a registration alive. It sends a heartbeat at once, because the server works nothing
// before the reply (S11), and the next heartbeat of the other servers of the process may be far off.
func (h *heartbeater) add(r *registration) {
	h.mu.Lock()
	h.registrations[r.uuid] = r
	h.mu.Unlock()
	h.soon()
}

// soon makes the heartbeater send a heartbeat at once.
func (h *heartbeater) soon() { offer(h.early, struct{}{}) }

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
			next = time.After(max(atOnce, pause))
		}
	}
}

// sendHeartbeat sends one heartbeat, unless there is no registration, and returns the pause until the next. After a
// failure the pause is a quarter of the interval, so that a short outage costs little of the lease.
func (h *heartbeater) sendHeartbeat(ctx context.Context) (pause time.Duration, some bool) {
	registrations, interval, lease := h.snapshot()
	if len(registrations) == 0 {
		return 0, false
	}
	b := roster.Heartbeat{Token: h.token}
	for _, r := range registrations {
		report := r.report()
		r.readBefore = report.ReadPlanVersion
		report.OldToken, report.JudgeDeadInterval = r.token, r.announce(b.Token)
		b.Servers = append(b.Servers, report)
	}
	start := time.Now()
	replies, err := h.send(ctx, b, heartbeatTimeout(lease, interval, h.took))
	h.logChange(ctx, err)
	if h.failure.Store(nil); err != nil {
		h.failure.Store(&err)
	}
	for _, o := range h.observers {
		o.Heartbeat(time.Since(start), err)
	}
	if err != nil {
		h.took = 0
		return interval / 4, true
	}
	h.took = time.Since(start)
	h.token = newToken()
	for _, r := range registrations {
		if reply, ok := replies[r.uuid]; ok {
			r.renew(b.Token, start, reply)
		} else {
			h.expire(r)
		}
	}
	offer(h.statistics.beaten, struct{}{})
	_, interval, _ = h.snapshot() // a lease that has become shorter needs the next heartbeat sooner
	return max(0, interval-time.Since(start)), true
}

// send sends a heartbeat within a time limit. After a failure it connects first, for which it takes longer: over a slow
// link a new connection alone takes longer than the limit, and no heartbeat would ever succeed again.
func (h *heartbeater) send(
	ctx context.Context, b roster.Heartbeat, limit time.Duration,
) (map[string]roster.HeartbeatReply, error) {
	if h.failing {
		ctx, cancel := context.WithTimeout(ctx, reconnectTimeout)
		defer cancel()
		if err := h.roster.Roster().Reconnect(ctx); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return h.roster.Roster().SendHeartbeat(ctx, b)
}

// reconnectTimeout bounds a new connection for heartbeats.
const reconnectTimeout = 15 * time.Second

// snapshot returns the registrations, the shortest of their heartbeat intervals, and the lease that the time limit of a
// heartbeat follows (S12): the shortest one that is valid, or the longest one if none is. A task type whose intervals
// are too short for the database does not end the leases of the others: when its own lease has expired, the heartbeat
// may take as long as they allow.
//
// The registrations are in the order of their uuids. Heartbeats and statistics then lock the rows of the process in one
// order: one that is sent early, because a server joins, may meet a write of the statistics. In two orders they end in
// a deadlock, which PostgreSQL finds after a second.
func (h *heartbeater) snapshot() (all []*registration, interval, lease time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var shortest, longest time.Duration
	for _, uuid := range slices.Sorted(maps.Keys(h.registrations)) {
		r := h.registrations[uuid]
		i := r.lease.intervals()
		if len(all) == 0 || i.heartbeat < interval {
			interval = i.heartbeat
		}
		if length := i.lease(); r.lease.valid() && (shortest == 0 || length < shortest) {
			shortest = length
		}
		all, longest = append(all, r), max(longest, i.lease())
	}
	return all, interval, cmp.Or(shortest, longest)
}

// heartbeatTimeout returns the time limit of a heartbeat that renews a lease of that length. A heartbeat may take half
// of the lease, so that a second one is possible before the lease expires (S5). While heartbeats succeed, the limit is
// a few times what the last one took, so that a database that does not answer is noticed early. took is 0 after a
// failure.
func heartbeatTimeout(lease, interval, took time.Duration) time.Duration {
	if took == 0 {
		return lease / 2
	}
	return min(lease/2, max(interval*3/4, 4*took))
}

// logChange logs the first failure, and the first success after it.
func (h *heartbeater) logChange(ctx context.Context, err error) {
	switch {
	case err != nil && !h.failing && ctx.Err() != context.Canceled:
		h.log.LogAttrs(ctx, slog.LevelWarn, "heartbeat failed; trying again", slog.Any("error", err))
	case err == nil && h.failing:
		h.log.LogAttrs(ctx, slog.LevelInfo, "heartbeats succeed again")
	}
	h.failing = err != nil
}

// renew renews the lease after a heartbeat and passes the reply to the session. It replaces a reply that the session
// has not received yet.
func (r *registration) renew(token string, start time.Time, p roster.HeartbeatReply) {
	now := time.Now()
	r.token, r.watchRange = token, p.Watch.Range
	r.beats.Add(token, p.Now, p.History.EpochFloor)
	r.lease.renew(r.next.intervals, start)
	r.clock.Store(&clockPair{db: p.Now, local: now})
	r.watch.observe(p.Now, now)
	r.watch.intervals = r.next.intervals
	reply := heartbeatReply{HeartbeatReply: p, lapses: r.lapsesBefore, read: r.readBefore}
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
	close(r.gone) // first: the end of the lease cancels what is in flight, and says why
	r.lease.end()
}

// registration is a server's row in schedule_server, and what the heartbeater needs to renew it. It belongs to one
// session.
type registration struct {
	uuid       string
	lease      *lease
	wanted     atomic.Pointer[intervals]  // what the settings say; the lease follows with the next heartbeats
	report     func() roster.ServerReport // the heartbeater calls it, in its own goroutine
	statistics func() roster.Statistics   // the statisticsWriter calls it, in its own goroutine
	joined     time.Time                  // by the database's clock

	replies chan heartbeatReply // capacity 1, the newest; only the heartbeater sends
	gone    chan struct{}       // closed by the heartbeater when the row is gone
	clock   atomic.Pointer[clockPair]
	// lapses counts the times after which the server works nothing before it has read a new reply (S11): its join, and
	// each end of its lease.
	lapses atomic.Int64

	// From heartbeater.add on until gone is closed, only the heartbeater uses these fields.

	token        string // of the last successful heartbeat
	beats        roster.Beats
	next         announcement
	lapsesBefore int64 // lapses when the heartbeat under way was sent
	readBefore   int64 // ReadPlanVersion of that heartbeat
	watch        watch
	watchRange   roster.WatchRange // the servers that this one watches
}

// announcement is what a heartbeat tells the other servers about the lease.
type announcement struct {
	token     string        // of the heartbeat
	intervals intervals     // that the lease follows when the heartbeat has succeeded
	judgeDead time.Duration // what the heartbeat writes into the row
}

// announce returns what the heartbeat with the token writes as judge_dead_interval: the longer of the interval that the
// lease follows and the interval that is wanted (S5). So the row never says less than the lease: when the interval
// falls, first the lease becomes shorter and then the row, and when it rises, first the row becomes longer. A heartbeat
// that is sent again writes the same, because the first one may arrive later.
func (r *registration) announce(token string) time.Duration {
	r.lapsesBefore = r.lapses.Load()
	if r.next.token != token {
		wanted := *r.wanted.Load()
		r.next = announcement{token, wanted, max(wanted.judgeDead, r.lease.intervals().judgeDead)}
	}
	return r.next.judgeDead
}

// heartbeatReply is the reply to a heartbeat, with what the server's own watch says about it.
type heartbeatReply struct {
	roster.HeartbeatReply
	lapses    int64         // registration.lapses when the heartbeat was sent: the reply may tell nothing later
	read      int64         // the plan_version up to which the server had read its queues when the heartbeat was sent
	watched   time.Duration // for how long the server has watched the others; 0: too short to expire one
	inherited bool          // other servers watched for a part of that time
}

// clockPair is the database's clock and the local clock at one moment.
type clockPair struct{ db, local time.Time }

// newRegistration returns a registration under a new uuid. Its lease begins now, before the row is there. The lease
// calls expired when it runs out.
func newRegistration(host string, s *Settings, expired func()) *registration {
	i := intervalsOf(s)
	r := &registration{
		uuid:    newUUID(host),
		lease:   newLease(i, time.Now(), expired),
		replies: make(chan heartbeatReply, 1),
		gone:    make(chan struct{}),
		token:   newToken(),
		watch:   watch{intervals: i},
	}
	r.wanted.Store(&i)
	r.lapses.Store(1)
	return r
}

// confirm takes the database's clock and the watch from the reply to the registration.
func (r *registration) confirm(reg roster.Registration) {
	now := time.Now()
	r.joined = reg.At
	r.beats.UUID = r.uuid
	r.beats.Add(r.token, reg.At, reg.EpochFloor)
	r.clock.Store(&clockPair{db: reg.At, local: now})
	r.watch.begin(reg.WatchingSince, reg.At, now)
}

// ended reports whether the row is gone.
func (r *registration) ended() bool {
	select {
	case <-r.gone:
		return true
	default:
		return false
	}
}

// localTime translates a moment of the database's time into the local clock's. It returns the zero time for the zero
// time.
func (r *registration) localTime(t time.Time) time.Time {
	pair := r.clock.Load()
	if pair == nil || t.IsZero() {
		return time.Time{}
	}
	return pair.local.Add(t.Sub(pair.db))
}

// dbTime translates a local moment into the database's time. It returns the zero time for the zero time.
func (r *registration) dbTime(t time.Time) time.Time {
	pair := r.clock.Load()
	if pair == nil || t.IsZero() {
		return time.Time{}
	}
	return pair.db.Add(t.Sub(pair.local))
}
