package processor

import (
	"container/heap"
	"context"
	"slices"
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
	lost     bool // draining because the dealer met the loss of ownership

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

// phase is where a lane is in its cycle.
type phase int

const (
	idle      phase = iota // resting or due; in the heap if one of its queues may be selected
	selecting              // one executor is in Select
	executing              // its page has items that are not started, or batches that are running
)

// lane is what one select covers: one queue, or all of them if the dealer is a SetSelector.
type lane struct {
	phase   phase
	queues  []*held
	page    *page     // while executing
	at      time.Time // when it is to be selected, while idle
	turn    uint64    // order among lanes of the same instant
	place   int       // in the heap; -1 outside
	backoff backoff.ExponentialBackOff
}

func newLane() *lane {
	return &lane{place: -1, backoff: backoff.ExponentialBackOff{RandomizationFactor: 0.5, Multiplier: 2}}
}

// live reports whether one of its queues may be selected.
func (l *lane) live() bool {
	return slices.ContainsFunc(l.queues, func(h *held) bool { return !h.draining })
}

// pause is how long the lane rests after one more failure.
func (l *lane) pause(s Settings) time.Duration {
	l.backoff.InitialInterval, l.backoff.MaxInterval = s.Retry, s.RetryMax
	return min(l.backoff.NextBackOff(), s.RetryMax)
}

// recovered ends the growth of the pauses.
func (l *lane) recovered(s Settings) {
	l.backoff.InitialInterval = s.Retry
	l.backoff.Reset()
}

// dueLanes is a heap of idle lanes, the one that is due first on top. It is what makes the turns fair: a lane that
// is worked without pause comes back behind all that became due meanwhile.
type dueLanes struct {
	lanes []*lane
	turns uint64
}

func (d *dueLanes) first() *lane {
	if len(d.lanes) == 0 {
		return nil
	}
	return d.lanes[0]
}

func (d *dueLanes) add(l *lane) {
	d.turns++
	l.turn = d.turns
	heap.Push(d, l)
}

func (d *dueLanes) remove(l *lane) {
	if l.place >= 0 {
		heap.Remove(d, l.place)
	}
}

// hasten makes every lane due by the given time at the latest.
func (d *dueLanes) hasten(by time.Time) {
	for _, l := range d.lanes {
		if l.at.After(by) {
			l.at = by
		}
	}
	heap.Init(d)
}

func (d *dueLanes) Len() int { return len(d.lanes) }

func (d *dueLanes) Less(i, j int) bool {
	a, b := d.lanes[i], d.lanes[j]
	if !a.at.Equal(b.at) {
		return a.at.Before(b.at)
	}
	return a.turn < b.turn
}

func (d *dueLanes) Swap(i, j int) {
	d.lanes[i], d.lanes[j] = d.lanes[j], d.lanes[i]
	d.lanes[i].place, d.lanes[j].place = i, j
}

// Push is for package heap.
func (d *dueLanes) Push(x any) {
	l := x.(*lane)
	l.place = len(d.lanes)
	d.lanes = append(d.lanes, l)
}

// Pop is for package heap.
func (d *dueLanes) Pop() any {
	last := len(d.lanes) - 1
	l := d.lanes[last]
	d.lanes[last] = nil
	d.lanes = d.lanes[:last]
	l.place = -1
	return l
}
