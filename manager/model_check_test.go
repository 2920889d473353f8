package manager

import (
	"fmt"

	"github.com/dutyrota/rota/internal/plan/plantest"
)

// fail notes a violation. The first one counts.
func (w *world) fail(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

// own changes the owner of a row. Each change but an edit by hand must raise the epoch (invariant 1).
func (w *world) own(q *queueRow, cur string, epoch int64, why string) {
	if cur != q.cur && epoch <= q.top && !w.inLost(q.epoch) || epoch < q.epoch {
		w.fail("queue %s goes from %s, epoch %d, to %s, epoch %d: %s", q.id, q.cur, q.epoch, cur, epoch, why)
	}
	if cur != "" && epoch != q.epoch && epoch <= w.db.adopted {
		w.fail("queue %s goes to %s under epoch %d, which a lost history may have used: %s", q.id, cur, epoch, why)
	}
	if to := w.db.server(cur); cur != "" && cur != q.cur && (to == nil || !to.eligible()) {
		w.fail("queue %s goes to %s, which is not eligible: %s", q.id, cur, why)
	}
	if cur != q.cur {
		w.checkHung(cur, q, why)
		w.checkReserved(q, cur, why)
	}
	if cur != "" {
		q.reservedFor = ""
	}
	q.cur, q.epoch, q.top = cur, epoch, max(q.top, epoch)
}

// checkHung fails if a server gets a queue for which a call of a former session of its process is in flight (P9).
func (w *world) checkHung(uuid string, q *queueRow, why string) {
	for i := range w.procs {
		for _, e := range w.procs[i].calls {
			if w.procs[i].uuid == uuid && e.uuid != uuid && e.queue == q.id {
				w.fail("queue %s goes to %s, while a call of %s is in flight for it: %s", q.id, uuid, e.uuid, why)
			}
		}
	}
}

// checkExpiry fails if the lease of an expired server is still valid (invariant 10).
func (w *world) checkExpiry(uuid string) {
	for i := range w.procs {
		p := &w.procs[i]
		if p.state != away && p.uuid == uuid && p.registered && w.trusted(p) && p.lost == "" {
			w.fail("%s is expired while its lease is valid", uuid)
		}
	}
}

// checkMove fails if a server hands over a queue that is not drained (invariant 4).
func (w *world) checkMove(uuid string, q *queueRow) {
	for i := range w.procs {
		for _, e := range w.procs[i].calls {
			if e.uuid == uuid && e.queue == q.id && e.epoch == q.epoch {
				w.fail("%s hands over queue %s, epoch %d, while something of it is in flight", uuid, q.id, q.epoch)
			}
		}
	}
}

// checkStart fails if a server starts to work a queue that it does not own, or that another server works (invariants 3
// and 9).
func (w *world) checkStart(p *process, e execution) {
	if !w.trusted(p) {
		w.fail("%s starts queue %s after its lease", e.uuid, e.queue)
	}
	if p.holding(e.queue).draining {
		w.fail("%s starts queue %s, which it has begun to drain", e.uuid, e.queue)
	}
	if w.db.halted && w.db.haltedAt < p.lapsedAt {
		w.fail("%s starts queue %s, although the task type was paused before the server joined or its lease expired", e.uuid, e.queue)
	}
	q := w.db.row(e.queue)
	if q.edited >= e.epoch {
		return // after an edit by hand, or a loss of history, only the fence is promised
	}
	if q.cur != e.uuid || q.epoch != e.epoch || q.total != e.total {
		w.fail("%s starts %s, which belongs to %s, epoch %d, total %d", e.uuid, e, q.cur, q.epoch, q.total)
	}
	for i := range w.procs {
		other := &w.procs[i]
		stopped := other.paused && !w.trusted(other)
		for _, o := range other.calls {
			if o.hangs && o.cancelled {
				continue // the fence rejects what it still writes
			}
			same := o.queue == e.queue && o.epoch == e.epoch
			if o.overlaps(e) && !same && !o.overdue && !stopped && o.epoch > w.db.row(o.queue).edited {
				w.fail("%s starts %s, while %s works items of it as %s", e.uuid, e, o.uuid, o)
			}
		}
	}
}

// checkCommit fails if a server that does not own the queue at that moment commits (invariant 2). It holds under every
// fault.
func (w *world) checkCommit(e execution) {
	q := w.db.row(e.queue)
	if q.cur != e.uuid || q.epoch != e.epoch {
		w.fail("%s commits for %s, which belongs to %s, epoch %d", e.uuid, e, q.cur, q.epoch)
	}
	if q.total != e.total && !w.inLost(e.epoch) {
		w.fail("%s commits for %s, whose total is %d", e.uuid, e, q.total)
	}
}

// stable reports whether nothing is left that a plan or a hand-over would still change: no plan is due, so that no server
// has joined, left or changed since the last one, no row was skipped, no queue has a requester, and none waits for those
// that it merges with. What an operator edits by hand waits for an audit.
func (w *world) stable() bool {
	if w.edited || w.db.skipped != nil || w.planDue() {
		return false
	}
	for _, q := range w.db.rows {
		if q.req != "" || w.waitsToMerge(q) {
			return false
		}
	}
	return true
}

// checkSettled fails if a stable roster has a queue whose server may not own it although another may, or if its servers are
// less even than their rules allow (P8, P14). It shares no code with the planner.
func (w *world) checkSettled() {
	if !w.stable() {
		return
	}
	if why := plantest.Unsettled(w.planInput()); why != "" {
		w.fail("no plan is due and no queue is requested, and yet %s", why)
	}
}
