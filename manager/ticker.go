package manager

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/runs"
)

// Engine.Tick of internal/runs decides what becomes of the runs of a task type. Every server calls it: there is no leader.

const (
	// tickInterval is the pause between two ticks while a run has not ended.
	tickInterval = time.Second
	// idleTickInterval is the pause while every run has ended and no heartbeat's reply asks for a tick.
	idleTickInterval = time.Minute
)

// runTicker decides when the server ticks, and keeps what the last tick found. The heartbeat tells of new runs and of
// triggers, so that no server asks while there is nothing to do.
type runTicker struct {
	*base
	next   time.Time                       // when to tick
	active bool                            // a run has not ended, as of the last heartbeat
	last   atomic.Pointer[runs.TickResult] // what the last tick found; nil before the first
}

// timer fires when it is time to tick.
func (t *runTicker) timer() <-chan time.Time { return time.After(max(0, time.Until(t.next))) }

// soon makes the server tick at once.
func (t *runTicker) soon() { t.next = time.Now() }

// follow takes from a heartbeat's reply when to tick.
func (t *runTicker) follow(p roster.HeartbeatReply) {
	if p.OpenRuns && !t.active {
		t.soon()
	}
	t.active = p.OpenRuns
	t.at(p.Now, p.NextFire)
}

// at makes the server tick when a trigger is due, both by the database's clock.
func (t *runTicker) at(now, due time.Time) {
	if due.IsZero() {
		return
	}
	if at := time.Now().Add(max(0, due.Sub(now))); at.Before(t.next) {
		t.next = at
	}
}

// tick does what is due for the runs and reports whether it succeeded.
func (t *runTicker) tick(ctx context.Context) bool {
	t.next = time.Now().Add(tickInterval)
	ctx, cancel := t.withTimeout(ctx)
	defer cancel()
	found, err := t.runs.Engine().Scheduler.Tick(ctx, t.taskType)
	if err != nil {
		t.log.WithError(err).Debug("tick failed; trying again")
		return false
	}
	switch {
	case found.More:
		t.soon()
	case !t.active && found.Open == "":
		t.next = time.Now().Add(idleTickInterval)
	}
	t.at(found.Now, found.NextFire)
	t.last.Store(&found)
	return true
}

// open returns the id of the run that was RUNNING at the last tick, "" if there was none, and whether it was paused.
func (t *runTicker) open() (runID string, paused bool) {
	found := t.last.Load()
	if found == nil {
		return "", false
	}
	return found.Open, found.Paused
}
