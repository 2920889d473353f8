package manager

import (
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// registration is a server's row in schedule_server, and what the heartbeater needs to renew it. It belongs to one session.
type registration struct {
	uuid   string
	lease  *lease
	wanted atomic.Pointer[intervals]  // what the settings say; the lease follows with the next heartbeats
	report func() roster.ServerReport // the heartbeater calls it, in its own goroutine
	joined time.Time                  // by the database's clock

	replies chan heartbeatReply // capacity 1, the newest; only the heartbeater sends
	gone    chan struct{}       // closed by the heartbeater when the row is gone
	clock   atomic.Pointer[clockPair]
	// lapses counts the times after which the server works nothing before it has read a new reply (S11): its join, and
	// each end of its lease.
	lapses atomic.Int64

	// From heartbeater.add on, only the heartbeater uses these fields.

	token        string // of the last successful heartbeat
	next         announcement
	lapsesBefore int64 // lapses when the heartbeat under way was sent
	watch        watch
	watchRange   roster.WatchRange // the servers that this one watches
}

// announcement is what a heartbeat tells the other servers about the lease.
type announcement struct {
	token     string        // of the heartbeat
	intervals intervals     // that the lease follows when the heartbeat has succeeded
	judgeDead time.Duration // what the heartbeat writes into the row
}

// announce returns what the heartbeat with the token writes as judge_dead_interval: the longer one of that of the lease and
// the one that is wanted (S5). So the row follows the lease when the interval falls, and the lease the row when it rises. A
// heartbeat that is sent again writes the same, because the first one may arrive later.
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
	watched   time.Duration // for how long the server has watched the others; 0: too short to expire one
	inherited bool          // other servers watched for a part of that time
}

// clockPair is the database's clock and the local clock at one moment.
type clockPair struct{ db, local time.Time }

// newRegistration returns a registration under a new uuid. Its lease begins now, before the row is there. The lease calls
// expired when it runs out.
func newRegistration(host string, s *Settings, expired func()) *registration {
	i := intervalsOf(s)
	r := &registration{
		uuid:    newUUID(host),
		lease:   newLease(i, time.Now(), expired),
		replies: make(chan heartbeatReply, 1),
		gone:    make(chan struct{}),
		token:   newToken(),
		watch:   watch{judgeDead: i.judgeDead, margin: i.margin()},
	}
	r.wanted.Store(&i)
	r.lapses.Store(1)
	return r
}

// confirm takes the database's clock and the watch from the reply to the registration.
func (r *registration) confirm(reg roster.Registration) {
	now := time.Now()
	r.joined = reg.At
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
