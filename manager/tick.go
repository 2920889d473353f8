package manager

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

const (
	// tickInterval is the pause between two ticks while a run is open.
	tickInterval = time.Second
	// idleTickInterval is the pause between two ticks while every run has ended and no heartbeat asks for a tick.
	idleTickInterval = time.Minute
)

// runTicker ticks, and keeps what the last tick found. A tick fires the triggers of a task type that are due, and opens
// and ends its runs. Every server ticks: there is no leader. The heartbeat's reply reports new runs and triggers, so
// that no server ticks while there is nothing to do.
type runTicker struct {
	*base
	active bool                            // a run has not ended, as of the last heartbeat
	last   atomic.Pointer[runs.TickResult] // what the last tick found; nil before the first
}

// follow ticks because a heartbeat's reply says that a run has come, and when the next trigger is due or the next run
// may begin.
func (t *runTicker) follow(r heartbeatReply) {
	now := time.Now()
	if r.Runs.Open && !t.active {
		t.agenda.add(now, tick)
	}
	t.active = r.Runs.Open
	t.tickWhen(r.Now, now, r.Runs.NextFire, r.Runs.NextBegin)
}

// tickWhen makes the server tick at moments of the database's clock. Both clocks' present is given.
func (t *runTicker) tickWhen(db, local time.Time, moments ...time.Time) {
	for _, at := range moments {
		if !at.IsZero() {
			t.agenda.add(local.Add(max(0, at.Sub(db))), tick)
		}
	}
}

// status adds what the last tick has found.
func (t *runTicker) status(st *Status) {
	if found := t.last.Load(); found != nil {
		st.InRuns, st.Sweeps, st.Runs = true, len(t.proc.Queues()), *found
	}
}

// tick returns the job that does what is due for the runs.
//
// It also sets the part of rate_per_second that the server may use (X4): its part of the queues that the open run has
// not finished. The processor cannot compute it, because the server claims only some of its queues at a time. While
// the counts of the servers differ, for a second at most, their parts may sum to more than 1.
func (t *runTicker) tick() *job {
	next := time.Now().Add(tickInterval)
	var found runs.TickResult
	var own, all int
	limited := t.settings.RatePerSecond > 0 // without a rate a tick is one statement
	return &job{
		name: "tick",
		call: func(ctx context.Context) (err error) {
			found, err = t.roster.Engine().Scheduler.Tick(ctx, t.taskType)
			if err == nil && limited && found.Open != "" {
				own, all, err = t.roster.Engine().Sweeps.Unfinished(ctx, found.Open, t.uuid)
			}
			return err
		},
		then: func(_ context.Context, err error) (more bool) {
			if err != nil {
				t.agenda.add(next, tick)
				return false
			}
			if all > 0 {
				t.proc.SetRateShare(float64(own) / float64(all))
			}
			t.ticked(found, next)
			return true
		},
	}
}

// ticked notes what a tick has found, and lets the sweeper claim queues of the open run. next is when the server ticks
// again while a run is open. What has asked for a tick meanwhile stays on the agenda: this one may have read before.
func (t *runTicker) ticked(found runs.TickResult, next time.Time) {
	now := time.Now()
	switch {
	case found.More:
		next = now
	case !t.active && found.Open == "":
		next = now.Add(idleTickInterval)
	}
	t.agenda.add(next, tick)
	t.tickWhen(found.Now, now, found.NextFire, found.NextBegin)
	t.agenda.add(now, claimQueues)
	t.last.Store(&found)
}

// open returns the id of the run that was RUNNING at the last tick, "" if there was none, and whether it was paused.
func (t *runTicker) open() (runID string, paused bool) {
	found := t.last.Load()
	if found == nil {
		return "", false
	}
	return found.Open, found.Paused
}

// problemInterval is the pause between two looks for problems of runs. It bounds the delay of the alert of a failed
// run. A failure whose problem ends between two looks raises its alert all the same: the row of the run says that it is
// still to be raised.
const problemInterval = 30 * time.Second

// findProblems returns the job that looks for problems of the runs and the triggers of the task type (R19). Every
// server looks, because the others may be gone.
func (t *runTicker) findProblems() *job {
	t.agenda.add(time.Now().Add(problemInterval), findProblems)
	var list []runs.Problem
	return &job{
		name: "look for problems of runs",
		call: func(ctx context.Context) (err error) {
			raised, err := t.roster.Engine().Runs.AlertFailures(ctx, t.taskType)
			for _, c := range raised {
				t.alerter.raise(ctx, c) // not after the job: the session may end before, and the runs count as alerted
			}
			if err != nil {
				return err
			}
			list, err = ops.New(t.roster).Runs().Problems(ctx, t.taskType)
			return err
		},
		then: func(_ context.Context, err error) (more bool) {
			if err != nil {
				return false
			}
			for _, p := range list {
				t.alerter.episodes.see(p.Condition(), runLooks)
			}
			t.alerter.episodes.checked(runLooks)
			t.agenda.add(time.Now(), tellAlerts)
			return len(list) > 0
		},
	}
}
