package manager

import (
	"context"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// reconciler brings the processor and the roster in line: it reads the server's rows, decides, and performs the steps.
//
// It has 17 methods: ten are the verbs of decide, in perform.go and handover.go, which all change the same three maps.
type reconciler struct {
	*base
	view    *ownView
	planner *planner
	halt    *halt
	window  *permitWindow
	sweeper *sweeper // nil in mode CONTINUOUS
	crashes *crashCounts

	steps []action // that take a call, as they were decided on last

	drains  map[string]time.Time // when the drain of a queue began
	lost    map[string]bool      // queues that were taken away and have not drained yet
	retired map[string]int64     // epochs under which a release was sent: the server never works them again (H3)
}

// reconcile takes the steps that the processor takes at once, and notes the others for nextJob. A step that waits for
// something is decided on again by a later call: there is one after each heartbeat, each drain, each job, and each
// change of the permit window.
func (r *reconciler) reconcile(ctx context.Context) error {
	r.window.update(ctx)
	err := r.view.read(ctx)
	r.crashes.note()
	if r.sweeper != nil && err == nil {
		r.sweeper.checkEnds()
	}
	r.window.noteEmpty()
	for again := true; again; {
		actions := decide(r.facts())
		if err != nil {
			actions = stopping(actions)
		}
		again = r.perform(ctx, actions)
	}
	r.halt.acknowledge()
	return err
}

// facts are what decide needs.
func (r *reconciler) facts() facts {
	return facts{
		uuid: r.uuid, rows: r.view.Queues, holdings: r.proc.Queues(),
		retired: r.retired, blocked: r.planner.blocked, closed: r.closed(),
		halted: r.halt.halted(), handingOver: r.halt.handingOver(), unannounced: r.halt.unannounced, overdue: r.halt.overdue(), inRuns: r.inRuns(),
	}
}

// closed returns the queues that the server must not work now.
func (r *reconciler) closed() map[string]bool {
	if r.sweeper != nil {
		return r.sweeper.idle(r.view.Queues)
	}
	return r.window.closed(r.view.Queues)
}

// restricted reports whether the server must leave some queues idle now.
func (r *reconciler) restricted() bool {
	return r.halt.halted() || r.halt.handingOver() || len(r.window.closed(r.view.Queues)) > 0
}

// claimable returns the queues that a sweep may begin with: own ones that are to stay, unless the server works nothing.
func (r *reconciler) claimable() (free []roster.ViewQueue) {
	if r.halt.halted() || r.halt.handingOver() {
		return nil
	}
	for _, row := range r.view.Queues {
		if row.Owner == r.uuid && row.Requester == "" && !row.Removing && !r.planner.blocked[row.ID] && r.retired[row.ID] != row.Epoch {
			free = append(free, row)
		}
	}
	return free
}
