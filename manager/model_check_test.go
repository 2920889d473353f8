package manager

import "fmt"

// fail notes a violation; the first counts.
func (w *world) fail(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

// own changes the owner of a row: each change, and nothing but an edit by hand leaves the epoch as it
// is (invariant 1).
func (w *world) own(q *row, cur string, epoch int64, why string) {
	if cur != q.cur && epoch <= q.top || epoch < q.epoch {
		w.fail("queue %s goes from %s, epoch %d, to %s, epoch %d: %s", q.id, q.cur, q.epoch, cur, epoch, why)
	}
	if to := w.db.server(cur); cur != "" && cur != q.cur && (to == nil || !to.eligible()) {
		w.fail("queue %s goes to %s, who is not eligible: %s", q.id, cur, why)
	}
	q.cur, q.epoch, q.top = cur, epoch, max(q.top, epoch)
}

// checkExpiry: who is expired must have stopped to trust itself (invariant 10).
func (w *world) checkExpiry(uuid string) {
	for i := range w.procs {
		p := &w.procs[i]
		if p.state != away && p.uuid == uuid && p.beating && w.trusted(p) {
			w.fail("%s is expired while it trusts itself", uuid)
		}
	}
}

// checkMove: who gives a queue away has nothing of it in hand (invariant 4).
func (w *world) checkMove(uuid string, q *row) {
	for i := range w.procs {
		for _, e := range w.procs[i].calls {
			if e.uuid == uuid && e.queue == q.id && e.epoch == q.epoch {
				w.fail("%s gives queue %s, epoch %d, away while it has it in hand", uuid, q.id, q.epoch)
			}
		}
	}
}

// checkStart: what starts belongs to who starts it, and to nobody else (invariants 3 and 9).
func (w *world) checkStart(p *process, e execution) {
	if !w.trusted(p) {
		w.fail("%s starts queue %s after its lease", e.uuid, e.queue)
	}
	q := w.db.row(e.queue)
	if q.edited >= e.epoch {
		return // by hand: no more is promised than the fence
	}
	if q.cur != e.uuid || q.epoch != e.epoch {
		w.fail("%s starts queue %s under epoch %d, which is %s's, epoch %d", e.uuid, e.queue, e.epoch, q.cur, q.epoch)
	}
	for i := range w.procs {
		other := &w.procs[i]
		stopped := other.paused && !w.trusted(other)
		for _, o := range other.calls {
			if o.queue == e.queue && o.epoch != e.epoch && !o.overdue && !stopped && o.epoch > q.edited {
				w.fail("%s starts queue %s, epoch %d, while %s works it under epoch %d", e.uuid, e.queue, e.epoch, o.uuid, o.epoch)
			}
		}
	}
}

// checkCommit: an effect is that of the owner at that moment, under every fault (invariant 2).
func (w *world) checkCommit(e execution) {
	if q := w.db.row(e.queue); q.cur != e.uuid || q.epoch != e.epoch {
		w.fail("%s commits for queue %s under epoch %d, which is %s's, epoch %d", e.uuid, e.queue, e.epoch, q.cur, q.epoch)
	}
}
