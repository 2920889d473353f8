package manager

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/dutyrota/rota/center"
)

// life is one registration of a server: from its row's insertion to its end. A server whose row is
// gone forgets everything and begins another, under a new uuid (S6).
type life struct {
	uuid     string
	lease    *lease
	interval time.Duration // between heartbeats
	report   func() center.ServerBeat

	pulses chan center.Pulse // capacity 1, the newest; sent by the heart alone
	gone   chan struct{}     // closed by the heart when the row is no longer ours
	token  string            // the heart's: the last that was confirmed
	clock  atomic.Pointer[clockPair]

	watching atomic.Pointer[time.Time] // what the heart tells of watch and barrier
	drained  atomic.Int64

	// The server's own goroutine alone uses what follows.

	watch    watch
	view     center.View
	stale    bool             // the view must be read again
	spent    map[string]int64 // epochs under which a release was sent: never worked again (H3)
	settings int64            // version of the settings that are in force
	halted   bool             // nothing may be worked
	barrier  int64            // the partition version that everybody drains for; 0 if none
}

// unknownVersion makes the first pulse read the settings again.
const unknownVersion = -1

// clockPair is the database's clock and ours at one moment.
type clockPair struct{ db, local time.Time }

// newUUID returns an id that a bare SELECT can read: host, process, and eight random digits.
func newUUID(host string) string {
	id := uuid.New()
	return fmt.Sprintf("%.100s:%d:%x", host, os.Getpid(), id[12:])
}

func newLife(host string, s Settings) *life {
	return &life{
		uuid:     newUUID(host),
		lease:    newLease(s.JudgeDeadInterval, s.HeartbeatInterval, time.Now()),
		interval: s.HeartbeatInterval,
		pulses:   make(chan center.Pulse, 1),
		gone:     make(chan struct{}),
		token:    newToken(),
		watch:    watch{judgeDead: s.JudgeDeadInterval, margin: margin(s.JudgeDeadInterval, s.HeartbeatInterval)},
		stale:    true,
		spent:    map[string]int64{},
		settings: unknownVersion,
	}
}

// ended reports that the row is gone.
func (l *life) ended() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// dbTime translates a moment of ours into the database's time, for people to read.
func (l *life) dbTime(t time.Time) time.Time {
	pair := l.clock.Load()
	if pair == nil || t.IsZero() {
		return time.Time{}
	}
	return pair.db.Add(t.Sub(pair.local))
}

// matches reports that the view is what the pulse saw: the same version of the plan, and the
// same number of queues, requests and sum of epochs, which an edit by hand changes too (S2).
func (l *life) matches(p center.Pulse) bool {
	var owned, requested, epochs, awaited int64
	for _, q := range l.view.Queues {
		if q.Cur != l.uuid {
			awaited++
			continue
		}
		owned, epochs = owned+1, epochs+q.Epoch
		if q.Req != "" {
			requested++
		}
	}
	return l.view.PlanVersion == p.PlanVersion && owned == p.Owned && epochs == p.EpochSum &&
		requested == p.Requested && awaited == p.Awaited
}
