package manager

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/runs"
)

const (
	// tickInterval is the pause between two ticks while a run is open.
	tickInterval = time.Second
	// idleTickInterval is the pause between two ticks while every run has ended and no heartbeat asks for a tick.
	idleTickInterval = time.Minute
)

// runTicker decides when the server ticks, and keeps what the last tick found. A tick opens, ends and fires what is due
// in the runs of a task type. Every server ticks: there is no leader. The heartbeat's reply reports new runs and
// triggers, so that no server ticks while there is nothing to do.
type runTicker struct {
	*base
	next   time.Time                       // when to tick
	active bool                            // a run has not ended, as of the last heartbeat
	fresh  bool                            // nothing was claimed since the last tick
	last   atomic.Pointer[runs.TickResult] // what the last tick found; nil before the first
}

// timer returns a channel that fires at the time of the next tick.
func (t *runTicker) timer() <-chan time.Time { return time.After(max(atOnce, time.Until(t.next))) }

// soon makes the server tick at once.
func (t *runTicker) soon() { t.next = time.Now() }

// follow takes the time of the next tick from a heartbeat's reply.
func (t *runTicker) follow(p roster.HeartbeatReply) {
	if p.OpenRuns && !t.active {
		t.soon()
	}
	t.active = p.OpenRuns
	t.at(p.Now, p.NextFire)
	t.at(p.Now, p.NextBegin)
}

// at makes the server tick when something is due. Both times are by the database's clock.
func (t *runTicker) at(now, due time.Time) {
	if due.IsZero() {
		return
	}
	if at := time.Now().Add(max(0, due.Sub(now))); at.Before(t.next) {
		t.next = at
	}
}

// nextJob returns the job that does what is due for the runs, or nil if it is not time for it.
func (t *runTicker) nextJob() *job {
	if time.Now().Before(t.next) {
		return nil
	}
	t.next = time.Now().Add(tickInterval)
	var found runs.TickResult
	share, rate := rateShare{base: t.base}, t.settings.RatePerSecond
	return &job{
		name: "tick",
		call: func(ctx context.Context) (err error) {
			found, err = t.runs.Engine().Scheduler.Tick(ctx, t.taskType)
			if err == nil {
				err = share.count(ctx, found.Open, rate)
			}
			return err
		},
		then: func(_ context.Context, err error) (more bool) {
			if err == nil {
				share.apply()
				t.ticked(found)
			}
			return err == nil
		},
	}
}

// ticked notes what a tick has found, and lets the sweeper claim queues of the open run.
func (t *runTicker) ticked(found runs.TickResult) {
	switch {
	case found.More:
		t.soon()
	case !t.active && found.Open == "":
		t.next = time.Now().Add(idleTickInterval)
	}
	t.at(found.Now, found.NextFire)
	t.at(found.Now, found.NextBegin)
	t.last.Store(&found)
	t.fresh = true
}

// open returns the id of the run that was RUNNING at the last tick, "" if there was none, and whether it was paused.
func (t *runTicker) open() (runID string, paused bool) {
	found := t.last.Load()
	if found == nil {
		return "", false
	}
	return found.Open, found.Paused
}
