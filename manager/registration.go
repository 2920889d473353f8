package manager

import (
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// registration is a server's row in schedule_server, as the heartbeater keeps it alive. It belongs to one session.
type registration struct {
	uuid     string
	interval time.Duration // between heartbeats
	lease    *lease
	report   func() roster.ServerReport // called from the heartbeater's goroutine
	joined   time.Time                  // by the database's clock

	replies chan heartbeatReply // capacity 1, the newest; only the heartbeater sends
	gone    chan struct{}       // closed by the heartbeater when the row is gone
	clock   atomic.Pointer[clockPair]

	// The heartbeater alone uses what follows, once it has the registration.

	token string // the last that was confirmed
	watch watch
	ring  roster.WatchRange // the servers that this one watches
}

// heartbeatReply is what a heartbeat has brought.
type heartbeatReply struct {
	roster.HeartbeatReply
	watched   time.Duration // for how long the server has watched the others; 0: too short to expire one
	inherited bool          // other servers watched for a part of that time
}

// clockPair is the database's clock and the local clock at one moment.
type clockPair struct{ db, local time.Time }

// newRegistration returns a registration under a new uuid. Its lease begins now, before the row is there; expired is
// called when the lease runs out.
func newRegistration(host string, s *Settings, expired func()) *registration {
	return &registration{
		uuid:     newUUID(host),
		interval: s.HeartbeatInterval,
		lease:    newLease(s.JudgeDeadInterval, s.HeartbeatInterval, time.Now(), expired),
		replies:  make(chan heartbeatReply, 1),
		gone:     make(chan struct{}),
		token:    newToken(),
		watch:    watch{judgeDead: s.JudgeDeadInterval, margin: margin(s.JudgeDeadInterval, s.HeartbeatInterval)},
	}
}

// confirm notes the reply of the database to the registration.
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
