package manager

import (
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// registration is a server's row in schedule_server, and what the heartbeater needs to renew it. It belongs to one session.
type registration struct {
	uuid     string
	interval time.Duration // between heartbeats
	lease    *lease
	report   func() roster.ServerReport // the heartbeater calls it, in its own goroutine
	joined   time.Time                  // by the database's clock

	replies chan heartbeatReply // capacity 1, the newest; only the heartbeater sends
	gone    chan struct{}       // closed by the heartbeater when the row is gone
	clock   atomic.Pointer[clockPair]
	// lapses counts the times after which the server works nothing before it has read a new reply (S11): its join, and
	// each end of its lease.
	lapses atomic.Int64

	// From heartbeater.add on, only the heartbeater uses these fields.

	token      string // of the last successful heartbeat
	watch      watch
	watchRange roster.WatchRange // the servers that this one watches
}

// heartbeatReply is the reply to a heartbeat, with what the server's own watch says about it.
type heartbeatReply struct {
	roster.HeartbeatReply
	lapses    int64         // registration.lapses when it came
	watched   time.Duration // for how long the server has watched the others; 0: too short to expire one
	inherited bool          // other servers watched for a part of that time
}

// clockPair is the database's clock and the local clock at one moment.
type clockPair struct{ db, local time.Time }

// newRegistration returns a registration under a new uuid. Its lease begins now, before the row is there. The lease calls
// expired when it runs out.
func newRegistration(host string, s *Settings, expired func()) *registration {
	r := &registration{
		uuid:     newUUID(host),
		interval: s.HeartbeatInterval,
		lease:    newLease(s.JudgeDeadInterval, s.HeartbeatInterval, time.Now(), expired),
		replies:  make(chan heartbeatReply, 1),
		gone:     make(chan struct{}),
		token:    newToken(),
		watch:    watch{judgeDead: s.JudgeDeadInterval, margin: margin(s.JudgeDeadInterval, s.HeartbeatInterval)},
	}
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

// dbTime translates a local moment into the database's time. It returns the zero time for the zero time.
func (r *registration) dbTime(t time.Time) time.Time {
	pair := r.clock.Load()
	if pair == nil || t.IsZero() {
		return time.Time{}
	}
	return pair.db.Add(t.Sub(pair.local))
}
