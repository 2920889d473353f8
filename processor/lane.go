package processor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// held is one queue under one grant: the unit of ownership and of draining.
type held struct {
	queue    Queue
	total    int
	lane     *lane
	running  int // calls of the dealer that concern it
	draining bool
	lost     bool      // draining because the dealer met the loss of ownership
	empty    time.Time // when the last select began that found nothing; zero if the last one found something

	book   book
	loaded uint64 // the Reload after which book was loaded; only its lane's select touches it

	// For a Cursored dealer.
	stale bool // the cursor may have moved without our knowing
	alone int  // how many of the next items are suspects
	group int  // the most of them that are executed together

	// The context of the calls that concern this queue alone, made when it is first needed; Revoke cancels it.
	ctx    context.Context
	cancel context.CancelFunc
}

func (h *held) context(parent context.Context) context.Context {
	if h.ctx == nil {
		h.ctx, h.cancel = context.WithCancel(parent)
	}
	return h.ctx
}

func (h *held) revoke() {
	if h.ctx != nil {
		h.cancel()
		h.ctx, h.cancel = nil, nil
	}
}

// lane is what one select covers: one queue, or all of them if the dealer is a SetSelector. It is idle if it is
// neither selected nor has something in hand that the next select waits for.
type lane struct {
	queues    []*held
	selecting bool      // one executor is in Select
	page      *page     // with unstarted items
	running   int       // batches being executed, of this page and in NOTSLEEP of older ones
	at        time.Time // when it is to be selected, once it is idle
	turn      uint64    // order among lanes of the same instant
	place     int       // in the heap; -1 outside
	inVain    bool      // the last select succeeded and found nothing to execute
	sweep     *sweep    // of a queue with a Run; nil in CONTINUOUS. It stays the same

	// What the next rest depends on.
	backoff backoff.ExponentialBackOff
	trouble bool          // there was a failure that makes the lane pause
	wish    time.Duration // how long, if the failure said it
	hurry   bool          // there are suspects
	until   time.Time     // the first item of a cursored lane is not tried before

	alerted bool // that the limit is reached (X2); only its select touches it

	// Executors take these without the processor's lock, and never while they hold it. storing keeps a Load apart
	// from what changes the store, books guards the books of the queues for moments.
	storing *gate
	books   sync.Mutex
}

func newLane() *lane {
	return &lane{place: -1, storing: newGate(), backoff: backoff.ExponentialBackOff{RandomizationFactor: 0.5, Multiplier: 2}}
}

// live reports whether one of its queues may be selected.
func (l *lane) live() bool {
	return !l.over() && slices.ContainsFunc(l.queues, func(h *held) bool { return !h.draining })
}

// over reports that it is swept, or cannot be.
func (l *lane) over() bool { return l.sweep != nil && (l.sweep.Swept || l.sweep.Failed) }

// idle reports whether it may be selected, as far as its items are concerned. A sweep that found nothing beside what
// is in hand waits for that even in NOTSLEEP: only then does an empty select say anything.
func (l *lane) idle(notSleep bool) bool {
	return !l.selecting && l.page == nil && (l.running == 0 || notSleep && (l.sweep == nil || !l.inVain))
}

// pause is how long the lane rests after one more failure; wish is what the failure said.
func (l *lane) pause(s *Settings, wish time.Duration) time.Duration {
	if wish > 0 {
		return wish
	}
	l.backoff.InitialInterval, l.backoff.MaxInterval = s.Retry, s.RetryMax
	return min(l.backoff.NextBackOff(), s.RetryMax)
}

// recovered ends the growth of the pauses.
func (l *lane) recovered(s *Settings) {
	l.backoff.InitialInterval = s.Retry
	l.backoff.Reset()
}

// rest says until when an idle lane rests after a page, and forgets why.
func (l *lane) rest(s *Settings, now time.Time) time.Time {
	d := s.SleepTimeInterval
	switch {
	case l.trouble:
		d = l.pause(s, l.wish)
	case l.until.After(now):
		d = l.until.Sub(now)
	case l.hurry:
		d = 0
	default:
		l.recovered(s)
	}
	l.trouble, l.wish, l.hurry, l.until = false, 0, false, time.Time{}
	return now.Add(d)
}
