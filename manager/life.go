package manager

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/cron"
)

// life is one registration of a server: from its row's insertion to its end. A server whose row is
// gone forgets everything and begins another, under a new uuid (S6).
type life struct {
	uuid     string
	lease    *lease
	interval time.Duration // between heartbeats
	inRuns   bool          // mode RUN
	report   func() center.ServerBeat

	pulses  chan pulse    // capacity 1, the newest; sent by the heart alone
	gone    chan struct{} // closed by the heart when the row is no longer ours
	clock   atomic.Pointer[clockPair]
	drained atomic.Int64 // what the heart tells of barrier
	window  atomic.Pointer[cron.WindowState]
	owned   atomic.Int64                  // queues, as of the last look
	ticked  atomic.Pointer[center.Ticked] // in mode RUN
	lapsed  atomic.Bool                   // the lease was over: what is in hand was cancelled, and the rows must be read again

	// The heart's, once it has the life.

	token  string // the last that was confirmed
	joined time.Time
	watch  watch
	ring   center.Ring

	// The server's own goroutine alone uses what follows.

	view         center.View
	stale        bool                 // the view must be read again
	looked       time.Time            // when we last looked for what we await
	busyRow      int                  // how often in succession we would have had to wait for the lock row to plan
	drains       map[string]time.Time // when the drain of a queue began
	lost         map[string]bool      // queues that were taken away, of which something is still in hand
	sweeps       map[string]*sweep    // by queue, in mode RUN
	open         string               // the run that is RUNNING, as of the last tick
	openPaused   bool                 // that run is
	nextTick     time.Time
	ticking      bool             // some run has not ended, as of the last pulse
	spent        map[string]int64 // epochs under which a release was sent: never worked again (H3)
	blocked      map[string]bool  // queues that shall move while our own transactions hold their rows
	settings     int64            // version of the settings that are in force
	waitTold     time.Time        // when we last said for whom we wait; zero: we do not
	permit       *cron.Window     // nil: read it from the settings
	windowChange time.Time        // when the window opens or closes, by the database's clock; zero: never
	busy         time.Time        // when we last had a queue, or none was to be had
	progress     int64            // selects and items that have ended,
	progressAt   time.Time        // and when the last did
	giveBy       time.Time        // leaving, or paused: how long requesters are waited for; zero: neither
	halted       bool             // nothing may be worked
	barrier      int64            // the partition version that everybody drains for; 0 if none
}

// pulse is what a heartbeat has brought.
type pulse struct {
	center.Pulse
	watched   time.Duration // for how long we have watched; 0: not long enough to judge anybody
	inherited bool          // part of it was others'
}

// unknownVersion makes the first pulse read the settings again.
const unknownVersion = -2

// clockPair is the database's clock and ours at one moment.
type clockPair struct{ db, local time.Time }

// newUUID returns an id that a bare SELECT can read: host, process, and eight random digits.
func newUUID(host string) string {
	id := uuid.New()
	return fmt.Sprintf("%.100s:%d:%x", host, os.Getpid(), id[12:])
}

// newLife begins the lease now, before the row is there. over is called when the lease runs out.
func newLife(host string, s Settings, over func(*life)) *life {
	l := &life{
		uuid:       newUUID(host),
		interval:   s.HeartbeatInterval,
		inRuns:     s.Mode == center.ModeRun,
		pulses:     make(chan pulse, 1),
		gone:       make(chan struct{}),
		token:      newToken(),
		watch:      watch{judgeDead: s.JudgeDeadInterval, margin: margin(s.JudgeDeadInterval, s.HeartbeatInterval)},
		stale:      true,
		spent:      map[string]int64{},
		sweeps:     map[string]*sweep{},
		drains:     map[string]time.Time{},
		lost:       map[string]bool{},
		busy:       time.Now(),
		progressAt: time.Now(),
		settings:   unknownVersion,
	}
	l.lease = newLease(s.JudgeDeadInterval, s.HeartbeatInterval, time.Now(), func() { over(l) })
	return l
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

// see takes over a view.
func (l *life) see(v center.View) {
	owned := int64(0)
	for _, q := range v.Queues {
		if q.Cur == l.uuid {
			owned++
		}
	}
	l.view = v
	l.owned.Store(owned)
}

// matches reports that the view is what the pulse saw (S2). All that changes a queue's owner or requester gives its
// row a higher plan_version; that the plan of others has changed does not count, for in a large roster that happens
// with each heartbeat. The number of queues and requests and the sum of epochs tell of edits by hand, too.
func (l *life) matches(p center.Pulse) bool {
	var owned, requested, epochs, newest, awaited int64
	for _, q := range l.view.Queues {
		if q.Cur != l.uuid {
			awaited++
			continue
		}
		owned, epochs, newest = owned+1, epochs+q.Epoch, max(newest, q.PlanVersion)
		if q.Req != "" {
			requested++
		}
	}
	return l.view.QueueTotal == p.QueueTotal && slices.Equal(l.view.Removing, p.Removing) && newest == p.OwnedPlan && owned == p.Owned && epochs == p.EpochSum &&
		requested == p.Requested && awaited == p.Awaited
}

// give makes everything go to others: for a heartbeat, and a little more, queues are worked on until their
// requesters know that they are.
func (l *life) give(heartbeat time.Duration) { l.giveBy = time.Now().Add(heartbeat * 5 / 4) }

func (l *life) giving() bool { return !l.giveBy.IsZero() }

// late: no requester is waited for any more.
func (l *life) late() bool { return l.giving() && !time.Now().Before(l.giveBy) }
