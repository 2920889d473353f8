package manager

import (
	"context"
	"log/slog"
	"slices"

	"github.com/dutyrota/rota/internal/roster"
)

// nextJob returns a job for the most urgent of the steps that were decided on last and take a call, or nil if there are
// none. As soon as a release or a removal is sent the queue is not worked again under its epoch, whatever the reply
// (H3), so the processor forgets the queue first.
func (r *reconciler) nextJob() *job {
	if j := r.window.closeEmpty(r.view); j != nil {
		return j
	}
	if j := r.crashes.nextJob(r.view); j != nil {
		return j
	}
	if handovers := r.takeReleases(); len(handovers) > 0 {
		return r.release(handovers)
	}
	if len(r.steps) == 0 {
		return nil
	}
	a := r.steps[0]
	r.steps = r.steps[1:]
	switch a.verb {
	case remove:
		return r.remove(a.row)
	case retake:
		return r.retake(a.row)
	}
	drained := []string{a.id} // one plan serves all drained queues
	r.steps = slices.DeleteFunc(r.steps, func(a action) bool {
		if a.verb == replan {
			drained = append(drained, a.id)
		}
		return a.verb == replan
	})
	return r.planner.replan(drained)
}

// takeReleases takes the releases out of the steps: one transaction is for all.
func (r *reconciler) takeReleases() (handovers []roster.Handover) {
	r.steps = slices.DeleteFunc(r.steps, func(a action) bool {
		if a.verb == release {
			handovers = append(handovers, roster.Handover{QueueID: a.id, Epoch: a.row.Epoch, Requester: a.row.Requester})
		}
		return a.verb == release
	})
	return handovers
}

// release returns the job that hands drained queues over. If all were handed over, the outcome is known and the rows
// need not be read again: when many servers join, this saves half of all reads.
func (r *reconciler) release(handovers []roster.Handover) *job {
	var suspended []*sweep
	for _, h := range handovers {
		if r.sweeper != nil {
			suspended = append(suspended, r.sweeper.take(h.QueueID)...)
		}
		r.retire(h.QueueID, h.Epoch)
	}
	fresh, reads := r.view.fresh, r.view.reads
	var released []string
	return &job{
		name: "release queues",
		call: func(ctx context.Context) (err error) {
			for _, sw := range suspended {
				r.sweeper.suspend(ctx, sw)
			}
			released, err = r.roster.Roster().Server(r.taskType, r.uuid).Release(ctx, handovers)
			return err
		},
		then: func(ctx context.Context, _ error) (more bool) {
			if r.view.invalidate(); len(released) == len(handovers) && r.view.reads == reads {
				r.view.replace(r.view.Without(released))
				r.view.fresh = fresh
			}
			for _, h := range handovers {
				if slices.Contains(released, h.QueueID) {
					r.log.LogAttrs(ctx, slog.LevelInfo, "queue handed over", slog.String("queue", h.QueueID), slog.String("to", h.Requester))
					r.moved(MoveReleased, r.drainedFor(h.QueueID))
				}
			}
			return len(released) > 0
		},
	}
}

// remove returns the job that gives up a drained queue that is to be removed (N2).
func (r *reconciler) remove(row roster.ViewQueue) *job {
	r.retire(row.ID, row.Epoch)
	var removed bool
	return &job{
		name: "remove queue " + row.ID,
		call: func(ctx context.Context) (err error) {
			removed, err = r.roster.Roster().Server(r.taskType, r.uuid).FinishRemoval(ctx, row.ID, row.Epoch)
			return err
		},
		then: func(ctx context.Context, _ error) (more bool) {
			r.view.invalidate()
			if removed {
				r.log.LogAttrs(ctx, slog.LevelInfo, "queue removed", slog.String("queue", row.ID))
				r.moved(MoveRemoved, 0)
			}
			return removed
		},
	}
}

// retake returns the job that takes a queue back whose release was sent and did not happen, under a new epoch (H3).
func (r *reconciler) retake(row roster.ViewQueue) *job {
	var kept bool
	return &job{
		name: "retake queue " + row.ID,
		call: func(ctx context.Context) (err error) {
			kept, err = r.roster.Roster().Server(r.taskType, r.uuid).Retake(ctx, row.ID, row.Epoch)
			return err
		},
		then: func(_ context.Context, err error) (more bool) {
			r.view.invalidate()
			if kept && err == nil {
				r.moved(MoveRetaken, 0)
			}
			return kept
		},
	}
}
