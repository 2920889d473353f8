package manager

import (
	"context"
	"log/slog"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/processor"
)

// perform takes the steps that need only the processor. It notes the steps that call the database, for nextJob. It
// reports whether more steps are possible at once.
func (r *reconciler) perform(ctx context.Context, actions []action) (again bool) {
	r.steps = nil
	for _, a := range actions {
		switch a.verb {
		case grant:
			r.grant(ctx, a.row)
		case drain:
			r.drain(ctx, a.row)
		case resume:
			r.log.LogAttrs(ctx, slog.LevelDebug, "queue resumed", slog.String("queue", a.id), slog.Int64("epoch", a.row.Epoch))
			r.proc.Resume(a.id)
		case revoke:
			r.revoke(ctx, a.id)
		case forget:
			again = r.forget(a.id) || again
		case replan:
			if !r.planner.retried[a.id] {
				r.steps = append(r.steps, a)
			}
		case release, retake, remove:
			r.steps = append(r.steps, a)
		}
	}
	return again
}

func (r *reconciler) grant(ctx context.Context, row roster.ViewQueue) {
	q := processor.Queue{
		ID: row.ID, Index: row.Index, Parameter: row.Parameter, Cursor: row.Cursor, Epoch: row.Epoch, Crashes: row.Crashes,
		Partition: r.view.PartitionVersion, FailingSince: r.halt.reg.localTime(row.FailingSince),
	}
	r.log.LogAttrs(ctx, slog.LevelInfo, "queue granted", slog.String("queue", row.ID), slog.Int64("epoch", row.Epoch))
	r.logInternal(ctx, r.proc.Grant(q, r.view.QueueTotal))
	r.moved(MoveGranted, 0)
}

func (r *reconciler) drain(ctx context.Context, row roster.ViewQueue) {
	r.drains[row.ID] = time.Now()
	r.proc.Drain(row.ID)
	r.log.LogAttrs(ctx, slog.LevelDebug, "queue draining", slog.String("queue", row.ID), slog.Int64("epoch", row.Epoch))
}

// drainedFor returns how long ago the drain of a queue began. It returns 0 if the processor never had the queue.
func (r *reconciler) drainedFor(id string) time.Duration {
	if begin, ok := r.drains[id]; ok {
		return time.Since(begin)
	}
	return 0
}

// revoke cancels what is in flight of a lost queue. Each reconciliation repeats it until the dealer returns. It logs
// the loss once.
func (r *reconciler) revoke(ctx context.Context, id string) {
	if !r.lost[id] {
		r.lost[id] = true
		r.log.LogAttrs(ctx, slog.LevelWarn, "queue lost", slog.String("queue", id))
		r.moved(MoveLost, 0)
	}
	r.proc.Revoke(id, center.ErrFenced)
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
