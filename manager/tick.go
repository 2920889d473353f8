package manager

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

const (
	// tickInterval is the pause between two ticks while a run is open.
	tickInterval = time.Second
	// idleTickInterval is the pause between two ticks while every run has ended and no heartbeat asks for a tick.
	idleTickInterval = time.Minute
)

// runTicker ticks, and keeps what the last tick found. A tick opens, ends and fires what is due
// in the runs of a task type. Every server ticks: there is no leader. The heartbeat's reply reports new runs and
// triggers, so that no server ticks while there is nothing to do.
type runTicker struct {
	*base
	active bool                            // a run has not ended, as of the last heartbeat
	last   atomic.Pointer[runs.TickResult] // what the last tick found; nil before the first
}

// tick returns the job that does what is due for the runs.
func (t *runTicker) tick() *job {
	t.agenda.add(time.Now().Add(tickInterval), tick)
	var found runs.TickResult
	share, rate := rateShare{base: t.base}, t.settings.RatePerSecond
	return &job{
		name: "tick",
		call: func(ctx context.Context) (err error) {
			found, err = t.roster.Engine().Scheduler.Tick(ctx, t.taskType)
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
	now := time.Now()
	switch {
	case found.More:
		t.agenda.add(now, tick)
	case !t.active && found.Open == "":
		t.agenda[tick] = now.Add(idleTickInterval)
	}
	t.agenda.tickWhen(found.Now, now, found.NextFire, found.NextBegin)
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

// rateShare is the part of rate_per_second that a server in mode RUN may use (X4): its part of the queues that the open
// run has not finished. The processor cannot compute it, because the server claims only some of its queues at a time.
// Each server counts the queues with each of its ticks. While the counts of the servers differ, for a second at most,
// their parts may sum to more than 1.
type rateShare struct {
	*base
	own, all int
}

// count counts the queues of the open run. It does nothing without a rate, so that a tick remains one statement.
func (r *rateShare) count(ctx context.Context, open string, rate float64) (err error) {
	if rate > 0 && open != "" {
		r.own, r.all, err = r.roster.Engine().Sweeps.Unfinished(ctx, open, r.uuid)
	}
	return err
}

// apply passes the part to the processor.
func (r *rateShare) apply() {
	if r.all > 0 {
		r.proc.SetRateShare(float64(r.own) / float64(r.all))
	}
}

// problemInterval is the pause between two looks for problems of runs. It bounds the delay of the alert of a failed
// run. A failure whose problem ends between two looks raises its alert all the same: the row of the run says that it is
// still to be raised.
const problemInterval = 30 * time.Second

// runProblems looks for problems of the runs and the triggers of the task type (R19). Every
// server looks, because the others may be gone.
type runProblems struct {
	*base
	alerter *alerter
}

// find returns the job that looks for problems.
func (r *runProblems) find() *job {
	r.agenda.add(time.Now().Add(problemInterval), findProblems)
	var raised []condition.Condition
	var list []runs.Problem
	return &job{
		name: "look for problems of runs",
		call: func(ctx context.Context) (err error) {
			if raised, err = r.roster.Engine().Runs.AlertFailures(ctx, r.taskType); err != nil {
				return err
			}
			list, err = ops.New(r.roster).Runs().Problems(ctx, r.taskType)
			return err
		},
		then: func(ctx context.Context, err error) (more bool) {
			for _, a := range raised {
				r.alerter.told(ctx, a, true, nil)
			}
			if err != nil {
				return false
			}
			for _, p := range list {
				r.alerter.episodes.see(p.Condition(), runLooks)
			}
			r.alerter.episodes.checked(runLooks)
			r.agenda.add(time.Now(), tellAlerts)
			return len(list) > 0
		},
	}
}
