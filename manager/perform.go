package manager

import (
	"context"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/processor"
)

// perform takes the steps, and reports whether decide may find more at once. Releases come last, in one transaction.
func (r *reconciler) perform(ctx context.Context, actions []action) (again bool, err error) {
	var handovers []roster.Handover
	replanNeeded := false
	for _, a := range actions {
		switch a.verb {
		case release:
			handovers = append(handovers, roster.Handover{QueueID: a.id, Epoch: a.row.Epoch, Requester: a.row.Requester})
		case replan:
			replanNeeded = true
		default:
			changed, err := r.step(ctx, a)
			if again = again || changed; err != nil {
				return again, err
			}
		}
	}
	if replanNeeded {
		fewer, err := r.planner.replan(ctx)
		if again = again || fewer; err != nil {
			return again, err
		}
	}
	if len(handovers) > 0 {
		released, err := r.release(ctx, handovers)
		return again || released, err
	}
	return again, nil
}

// step takes one step of a single queue, and reports whether it makes another step possible.
func (r *reconciler) step(ctx context.Context, a action) (changed bool, err error) {
	switch a.verb {
	case grant:
		r.grant(a.row)
	case drain:
		r.drain(a.id)
	case resume:
		r.proc.Resume(a.id)
	case revoke:
		r.revoke(a.id)
	case forget:
		return r.forget(a.id), nil
	case retake:
		return r.retake(ctx, a.row)
	case remove:
		return r.remove(ctx, a.row)
	}
	return false, nil
}

func (r *reconciler) grant(row roster.ViewQueue) {
	q := processor.Queue{ID: row.ID, Index: row.Index, Parameter: row.Parameter, Cursor: row.Cursor, Epoch: row.Epoch}
	r.queueLog(row.ID).WithField("epoch", row.Epoch).Info("queue granted")
	r.logInternal(r.proc.Grant(q, r.view.QueueTotal))
	r.moved(MoveGranted, 0)
}

func (r *reconciler) drain(id string) {
	r.drains[id] = time.Now()
	r.proc.Drain(id)
}

// drainedFor returns how long ago the drain of a queue began. It returns 0 if the processor never had the queue.
func (r *reconciler) drainedFor(id string) time.Duration {
	if begin, ok := r.drains[id]; ok {
		return time.Since(begin)
	}
	return 0
}

// revoke cancels what is in flight of a lost queue. Each reconciliation repeats it until the dealer returns. It logs the
// loss once.
func (r *reconciler) revoke(id string) {
	if !r.lost[id] {
		r.lost[id] = true
		r.queueLog(id).Warn("queue lost")
		r.moved(MoveLost, 0)
	}
	r.proc.Revoke(id)
}

// forget reports whether the processor has forgotten the queue, so that it may be granted again under another epoch.
func (r *reconciler) forget(id string) bool {
	delete(r.lost, id)
	return r.proc.Forget(id)
}

// retire makes the processor forget a queue, and keeps the server from working it again under this epoch (H3).
func (r *reconciler) retire(id string, epoch int64) {
	r.proc.Forget(id)
	r.retired[id] = epoch
}

// release hands drained queues over, and reports whether it handed over any. Once it is sent, the server must not work the
// queues again under these epochs, whatever the reply (H3). So the processor forgets them first.
func (r *reconciler) release(ctx context.Context, handovers []roster.Handover) (some bool, err error) {
	if r.sweeper != nil {
		for _, h := range handovers {
			r.sweeper.suspend(ctx, h.QueueID)
		}
	}
	for _, h := range handovers {
		r.retire(h.QueueID, h.Epoch)
	}
	fresh := r.view.fresh
	var released []string
	err = r.view.change(ctx, func(ctx context.Context) error {
		released, err = r.roster.Roster().Server(r.taskType, r.uuid).Release(ctx, handovers)
		return err
	})
	if len(released) == len(handovers) { // the rows are known without a read; when many servers join, this saves half of all reads
		r.view.replace(r.view.Without(released))
		r.view.fresh = fresh
	}
	for _, h := range handovers {
		if slices.Contains(released, h.QueueID) {
			r.queueLog(h.QueueID).WithField("to", h.Requester).Info("queue handed over")
			r.moved(MoveReleased, r.drainedFor(h.QueueID))
		}
	}
	return len(released) > 0, err
}

// remove gives up a drained queue that an operator removes (N2). It retires the epoch as release does.
func (r *reconciler) remove(ctx context.Context, row roster.ViewQueue) (removed bool, err error) {
	r.retire(row.ID, row.Epoch)
	err = r.view.change(ctx, func(ctx context.Context) error {
		removed, err = r.roster.Roster().Server(r.taskType, r.uuid).FinishRemoval(ctx, row.ID, row.Epoch)
		return err
	})
	if removed {
		r.queueLog(row.ID).Info("queue removed")
		r.moved(MoveRemoved, 0)
	}
	return removed, err
}

// retake takes a queue back under a new epoch, after a release that was sent and had no effect (H3).
func (r *reconciler) retake(ctx context.Context, row roster.ViewQueue) (kept bool, err error) {
	err = r.view.change(ctx, func(ctx context.Context) error {
		kept, err = r.roster.Roster().Server(r.taskType, r.uuid).Retake(ctx, row.ID, row.Epoch)
		return err
	})
	if kept && err == nil {
		r.moved(MoveRetaken, 0)
	}
	return kept, err
}
