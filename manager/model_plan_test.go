package manager

import (
	"slices"

	"github.com/dutyrota/rota/internal/plan"
)

// expire expires dead servers, if the actor may do so.
func (w *world) expire(c *call) {
	own := w.db.server(c.uuid)
	away := own == nil || w.dbNow().Sub(own.heartbeat).Abs() > c.within || own.heartbeat.Sub(c.seen).Abs() > c.within
	if c.within == 0 || away && !w.without.ownBeat {
		return
	}
	at, last := w.dbNow(), w.dbNow()
	if c.seen.After(last) {
		last = c.seen
	}
	if c.seen.Before(at) {
		at = c.seen
	}
	n := len(w.db.servers)
	w.db.servers = slices.DeleteFunc(w.db.servers, func(s serverRow) bool {
		limit := s.judgeDead
		if c.inherited {
			limit += s.judgeDead / 2
		}
		dead := c.watched >= s.judgeDead && (at.Sub(s.heartbeat) > limit || s.heartbeat.Sub(last) > s.judgeDead)
		if w.without.dbClock {
			dead = c.sent.Sub(s.heartbeat) > s.judgeDead
		}
		if dead {
			w.checkExpiry(s.uuid)
			w.db.toHistory(s)
		}
		return dead
	})
	if len(w.db.servers) < n {
		w.db.membership++
	}
}

// planDue is the planDue of internal/roster.
func (w *world) planDue() bool {
	since := w.dbNow().Sub(w.db.assigned)
	return w.db.adopted < w.db.floor || w.db.membership != w.db.planned || !w.db.reservedUntil.IsZero() && !w.db.reservedUntil.After(w.dbNow()) || w.db.skipped != nil && (since < 0 || since > modelSkipRetry)
}

// assign rebalances if a plan is due, or in any case. retry says that the caller has drained the queues that an earlier
// plan skipped.
func (w *world) assign(actor string, always, retry bool) {
	if !w.planDue() && !always && (!retry || w.db.skipped == nil) {
		return
	}
	held := w.raiseEpochs()
	if !w.mayPlan(actor) {
		w.giveUp(actor)
		return
	}
	w.checkRules(actor)
	changes := w.planned()
	skipped := held // nil if no row is held
	changed := false
	for _, c := range changes {
		q := w.db.row(c.QueueID)
		if w.locked(q.id) { // skipped, and waits for a while (L5)
			if skipped == nil {
				skipped = []string{}
			}
			if (c.ChangesOwner() || c.Requester != "") && !slices.Contains(held, c.QueueID) {
				skipped = append(skipped, c.QueueID)
			}
			continue
		}
		changed = true
		epoch := q.epoch
		if kept := w.without.grantEpoch || w.without.unassignEpoch && c.Owner == ""; c.ChangesOwner() && !kept {
			epoch++
		}
		w.own(q, c.Owner, epoch, "assigned by "+actor)
		w.stamp(q)
		if q.req != c.Requester {
			q.since = w.dbNow()
		}
		q.req = c.Requester
	}
	w.sweep()
	w.db.planned, w.db.skipped, w.db.assigned = w.db.membership, skipped, w.dbNow()
	w.noteReservations()
	if changed {
		w.db.plan++
	}
	w.resizeFree()
}

// planInput returns what a plan reads.
func (w *world) planInput() ([]plan.Queue, []plan.Server, plan.Limits) {
	var queues []plan.Queue
	for _, q := range w.db.rows {
		if !q.gone {
			queues = append(queues, plan.Queue{ID: q.id, Owner: q.cur, Requester: q.req, Epoch: q.epoch, Removing: q.removing || w.waitsToMerge(q), ReservedFor: w.reservation(q), Pin: w.pin(q)})
		}
	}
	servers := make([]plan.Server, len(w.db.servers))
	for i, s := range w.db.servers {
		servers[i] = plan.Server{UUID: s.uuid, Host: processName(s.uuid), Name: processName(s.uuid), RoundedUp: s.roundedUp, RegisterTime: s.registered, Eligible: s.eligible(), Leaving: s.leaving, Weight: s.weight(), HungQueues: s.hung}
	}
	if w.without.reserved {
		for i := range queues {
			queues[i].ReservedFor = ""
		}
	}
	return queues, w.byRules(servers), plan.Limits{Loads: w.loads(), QueuesPerServer: w.limit}
}

func (w *world) planned() []plan.Change {
	queues, servers, limits := w.planInput()
	if w.without.pins {
		for i := range queues {
			queues[i].Pin = plan.Selector{}
		}
	}
	if w.without.limit {
		limits.QueuesPerServer = 0
	}
	changes := plan.Plan(queues, servers, limits).Changes
	if w.without.balance {
		changes = slices.DeleteFunc(changes, func(c plan.Change) bool { return !c.ChangesOwner() && c.Requester != "" })
	}
	if w.without.consent {
		for i, c := range changes {
			if c.Requester != "" {
				changes[i].Owner, changes[i].Requester = c.Requester, ""
			}
		}
	}
	return changes
}

func (w *world) audit(c *call) {
	if since := w.dbNow().Sub(w.db.audited); since >= 0 && since <= modelAudit {
		return
	}
	w.db.audited, c.done = w.dbNow(), true
	w.findEdits()
	if len(w.planned()) > 0 {
		w.assign(c.uuid, true, false)
	}
}
