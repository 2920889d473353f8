package manager

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/processor"
)

// reconciler brings the processor and the roster in line: it reads the server's rows, decides, and performs the steps.
type reconciler struct {
	*base
	session *session

	limited int // view.reads when the processor last got the limits of the queues

	steps []action // the steps decided on last that call the database, and are not taken yet

	stages  stages           // how far the hand-overs of queues have come
	lost    map[string]bool  // queues that were taken away and have not drained yet
	retired map[string]int64 // epochs under which a release was sent: the server never works them again (H3)
}

// newReconciler returns the reconciler of a session. hung are the queues that calls of former sessions still work.
func newReconciler(s *session, hung map[string]int64) *reconciler {
	r := &reconciler{
		base: s.base, session: s, stages: stages{}, lost: map[string]bool{}, retired: map[string]int64{},
	}
	for id := range hung {
		r.lost[id] = true // the former session has logged it
	}
	return r
}

// reconcile takes the steps that the processor takes at once, and puts the others on the agenda. A step that waits for
// something is decided on again by a later call: there is one after each heartbeat, each drain, each job, and each
// change of the permit window.
func (r *reconciler) reconcile(ctx context.Context) error {
	err := r.view.read(ctx)
	r.adoptLimits()
	r.stages.noteRequests(r.uuid, r.view.Queues)
	for _, p := range r.session.parts {
		if r.agenda.add(time.Now(), p.often...); p.update != nil {
			p.update(ctx)
		}
	}
	for again := true; again; {
		actions := decide(r.facts())
		if err != nil {
			actions = stopping(actions)
		}
		again = r.perform(ctx, actions)
	}
	r.agenda.add(time.Now(), moveQueues)
	return err
}

// facts are what decide needs.
func (r *reconciler) facts() facts {
	halt := r.session.halt
	return facts{
		uuid: r.uuid, rows: r.view.Queues, holdings: r.proc.Queues(),
		retired: r.retired, blocked: r.session.planner.blocked, closed: r.closed(),
		halted: halt.halted(), handsOver: halt.stage(), inRuns: r.inRuns(),
	}
}

// adoptLimits gives the processor the limits of the queues as they were last read (X11).
func (r *reconciler) adoptLimits() {
	if r.limited == r.view.reads {
		return
	}
	r.limited = r.view.reads
	for _, row := range r.view.Queues {
		r.proc.SetLimits(row.ID, limitsOf(row))
	}
}

// limitsOf returns the limits of a queue for the processor.
func limitsOf(row roster.ViewQueue) processor.QueueLimits {
	var l processor.QueueLimits
	if n := row.RatePerSecond; n != nil {
		l.RatePerSecond = cmp.Or(*n, -1)
	}
	if n := row.MaxInFlight; n != nil {
		l.MaxInFlight = cmp.Or(*n, -1)
	}
	if n := row.Weight; n != nil {
		l.Weight = *n
	}
	return l
}

// closed returns the queues that the server must not work now.
func (r *reconciler) closed() map[string]bool {
	closed := map[string]bool{}
	for _, p := range r.session.parts {
		if p.closed == nil {
			continue
		}
		for id, is := range p.closed(r.view.Queues) {
			closed[id] = closed[id] || is
		}
	}
	return closed
}

// restricted reports whether the server must leave some queues idle now. In mode RUN idle queues are the rule.
func (r *reconciler) restricted() bool {
	halt := r.session.halt
	return halt.halted() || halt.handingOver() || r.view.Changes.Queues() > 0 || !r.inRuns() && len(r.closed()) > 0
}

// claimable returns the queues that a sweep may begin with: own ones that are to stay, unless the server works nothing.
func (r *reconciler) claimable() (free []roster.ViewQueue) {
	if halt := r.session.halt; halt.halted() || halt.handingOver() {
		return nil
	}
	for _, row := range r.view.Queues {
		stays := row.Owner == r.uuid && row.Requester == "" && !row.Changing
		if stays && !r.session.planner.blocked[row.ID] && r.retired[row.ID] != row.Epoch {
			free = append(free, row)
		}
	}
	return free
}

// perform takes the steps that need only the processor. It notes the steps that call the database, for moveQueues. It
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
			delete(r.stages, a.id)
			r.log.LogAttrs(ctx, slog.LevelDebug, "queue resumed", slog.String("queue", a.id), slog.Int64("epoch", a.row.Epoch))
			r.proc.Resume(a.id)
		case revoke:
			r.revoke(ctx, a.id, a.row.Epoch)
		case forget:
			again = r.forget(a.id) || again
		case replan:
			if !r.session.planner.retried[a.id] {
				r.steps = append(r.steps, a)
			}
		case release, retake, giveUp:
			r.steps = append(r.steps, a)
		}
	}
	return again
}

func (r *reconciler) grant(ctx context.Context, row roster.ViewQueue) {
	q := processor.Queue{
		ID: row.ID, Index: row.Index, Parameter: row.Parameter, Cursor: row.Cursor, Epoch: row.Epoch, Crashes: row.Crashes,
		Partition: r.view.PartitionVersion, FailingSince: r.reg.localTime(row.FailingSince),
		Limits: limitsOf(row),
	}
	r.log.LogAttrs(ctx, slog.LevelInfo, "queue granted", slog.String("queue", row.ID), slog.Int64("epoch", row.Epoch))
	r.logInternal(ctx, r.proc.Grant(r.view.placed(ctx, q, row), cmp.Or(row.Total, r.view.QueueTotal)))
	delete(r.stages, row.ID)
	r.moved(MoveGranted, row.ID, row.Epoch)
}

func (r *reconciler) drain(ctx context.Context, row roster.ViewQueue) {
	r.stages.noteDrain(row.ID)
	r.proc.Drain(row.ID)
	r.log.LogAttrs(ctx, slog.LevelDebug, "queue draining", slog.String("queue", row.ID), slog.Int64("epoch", row.Epoch))
}

// revoke cancels what is in flight of a lost queue. Each reconciliation repeats it until the dealer returns. It logs
// the loss once.
func (r *reconciler) revoke(ctx context.Context, id string, epoch int64) {
	if !r.lost[id] {
		r.lost[id] = true
		r.log.LogAttrs(ctx, slog.LevelWarn, "queue lost", slog.String("queue", id))
		r.moved(MoveLost, id, epoch)
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

// moveQueues returns a job for the most urgent of the steps that call the database, or nil if there are none. As soon
// as a queue is released or given up, the queue is not worked again under its epoch, whatever the reply (H3), so the
// processor forgets the queue first.
func (r *reconciler) moveQueues() *job {
	defer func() {
		if len(r.steps) > 0 {
			r.agenda.add(time.Now(), moveQueues)
		}
	}()
	if releases := r.take(release); len(releases) > 0 {
		return r.release(releases)
	}
	if drained := r.take(giveUp); len(drained) > 0 {
		return r.giveUp(drained)
	}
	if len(r.steps) == 0 {
		return nil
	}
	a := r.steps[0]
	if a.verb == replan {
		return r.session.planner.replan(r.take(replan)) // one plan serves all drained queues
	}
	r.steps = r.steps[1:]
	return r.retake(a)
}

// take takes the steps of a verb out of the steps.
func (r *reconciler) take(v verb) (taken []action) {
	r.steps = slices.DeleteFunc(r.steps, func(a action) bool {
		if a.verb == v {
			taken = append(taken, a)
		}
		return a.verb == v
	})
	return taken
}

// release returns the job that hands drained queues over in one transaction. If all were handed over, the outcome is
// known and the rows need not be read again: when many servers join, this saves half of all reads.
func (r *reconciler) release(releases []action) *job {
	var first []func(context.Context)
	var handovers []roster.Handover
	for _, a := range releases {
		handovers = append(handovers, roster.Handover{QueueID: a.id, Epoch: a.row.Epoch, Requester: a.row.Requester})
		first = append(first, r.yield(a.id)...)
		r.stages.noteDrained(a.id)
		r.retire(a.id, a.row.Epoch)
	}
	fresh, reads := r.view.fresh, r.view.reads
	var released []string
	return &job{
		name: "release queues",
		call: func(ctx context.Context) (err error) {
			for _, f := range first {
				f(ctx)
			}
			released, err = r.own().Release(ctx, handovers)
			return err
		},
		then: func(ctx context.Context, _ error) (more bool) {
			if r.view.invalidate(); len(released) == len(handovers) && r.view.reads == reads {
				r.view.replace(r.view.Without(released))
				r.view.fresh = fresh
			}
			for _, h := range handovers {
				if slices.Contains(released, h.QueueID) {
					r.yielded(h)
					r.log.LogAttrs(ctx, slog.LevelInfo, "queue handed over",
						slog.String("queue", h.QueueID), slog.String("to", h.Requester))
					r.observeMove(r.stages.end(h.QueueID, h.Epoch, h.Requester))
				}
			}
			return len(released) > 0
		},
	}
}

// yield returns what the parts do before a drained queue is handed over.
func (r *reconciler) yield(queue string) (first []func(context.Context)) {
	for _, p := range r.session.parts {
		if p.yield == nil {
			continue
		}
		if f := p.yield(queue); f != nil {
			first = append(first, f)
		}
	}
	return first
}

func (r *reconciler) yielded(h roster.Handover) {
	for _, p := range r.session.parts {
		if p.yielded != nil {
			p.yielded(h)
		}
	}
}

// giveUp returns the job that gives up drained queues that are to be removed (N2), split or merged (N3), or that get
// other items with another number of queues (N1), in one transaction.
func (r *reconciler) giveUp(steps []action) *job {
	var first []func(context.Context)
	var drained []roster.QueueEpoch
	moves := map[string]string{}
	for _, a := range steps {
		drained = append(drained, roster.QueueEpoch{ID: a.id, Epoch: a.row.Epoch})
		first = append(first, r.yield(a.id)...)
		r.retire(a.id, a.row.Epoch)
		if moves[a.id] = MoveResized; r.view.Changes.Removes(a.id) {
			moves[a.id] = MoveRemoved
		}
		if r.view.Changes.Total(a.id) > 0 {
			r.view.given = append(r.view.given, a.row)
		}
	}
	var given []roster.Handover
	return r.change("give up queues",
		func(ctx context.Context) (done bool, err error) {
			for _, f := range first {
				f(ctx)
			}
			given, err = r.own().GiveUp(ctx, drained...)
			return len(given) > 0, err
		},
		func(ctx context.Context) {
			for _, h := range given {
				r.yielded(h)
				move := moves[h.QueueID]
				r.log.LogAttrs(ctx, slog.LevelInfo, "queue "+move, slog.String("queue", h.QueueID))
				r.moved(move, h.QueueID, h.Epoch)
			}
		})
}

// retake returns the job that takes a queue back, under a new epoch, whose release was sent and did not happen (H3).
func (r *reconciler) retake(a action) *job {
	return r.change("retake queue "+a.id,
		func(ctx context.Context) (bool, error) { return r.own().Retake(ctx, a.id, a.row.Epoch) },
		func(ctx context.Context) {
			r.log.LogAttrs(ctx, slog.LevelInfo, "queue "+MoveRetaken, slog.String("queue", a.id))
			r.moved(MoveRetaken, a.id, a.row.Epoch)
		})
}
