package manager

import (
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// database is the tables.
type database struct {
	step                      time.Duration // how far its clock was set
	judgeDead                 time.Duration // the setting
	membership, planned, plan int64         // versions
	partition                 int64         // another one
	audited, assigned         time.Time
	skipped                   []string      // as in the lock row; replaced, never changed
	reservedUntil             time.Time     // when the next reservation ends; zero: none
	halted                    bool          // an operator has paused the task type
	haltedAt                  time.Duration // when the operator paused it
	servers                   []serverRow   // in the order of their age
	rows                      []queueRow
	past                      map[string]int // the history of servers: the last token by uuid; replaced, never changed
	floor, adopted            int64          // epoch_floor of the environment and of the lock row
}

type serverRow struct {
	uuid                           string
	draining, leaving, suspended   bool
	token                          int
	registered, heartbeat, watched time.Time
	hung                           []string // replaced, never changed
	proc, session                  int
	judgeDead                      time.Duration
	roundedUp                      bool
	rules                          int   // that its program knows (P11)
	number                         int64 // rises with each change of its queues (S2)
	readNumber, readSum            int64 // what it has reported of its view
}

type queueRow struct {
	id, cur, req string
	epoch        int64
	edited       int64 // up to this epoch, an operator edited the row by hand, or history was lost

	pin           string // the name of the process that alone may own it
	busy          bool   // it has work, if the plan evens the loads
	reservedFor   string // the name of a process
	reservedUntil time.Time

	top            int64     // the highest epoch ever
	since          time.Time // when the request was made
	plan           int64     // the version of the plan that last changed cur or req
	removing, gone bool      // an operator removes the queue; its row is not there

	index, total int // it has the items with mod(id, total) = index
	resize       int // the total that an operator requests for it; 0: none
}

func (w *world) dbNow() time.Time { return startTime.Add(w.now + w.db.step) }

func (d *database) server(uuid string) *serverRow {
	for i := range d.servers {
		if d.servers[i].uuid == uuid {
			return &d.servers[i]
		}
	}
	return nil
}

func (d *database) row(id string) *queueRow {
	for i := range d.rows {
		if d.rows[i].id == id {
			return &d.rows[i]
		}
	}
	return nil
}

// eligible reports whether the server may be assigned queues.
func (s serverRow) eligible() bool { return !s.draining && !s.leaving && !s.suspended }

func (w *world) register(c *call) {
	now := w.dbNow()
	since := now // as in watchedSince of internal/roster
	for _, s := range w.db.servers {
		if now.Sub(s.heartbeat).Abs() < s.judgeDead/2 && s.watched.Before(since) {
			since = s.watched
		}
	}
	if slices.ContainsFunc(w.db.servers, func(s serverRow) bool { return s.heartbeat.Sub(now) >= s.judgeDead/2 }) {
		since = now
	}
	w.insert(c, since)
	c.done, c.at, c.since, c.floor = true, now, since, w.db.adopted
	w.db.membership++
}

func (w *world) insert(c *call, since time.Time) {
	hung := c.hung
	if w.without.hungQueues {
		hung = nil
	}
	if w.db.server(c.uuid) == nil {
		w.db.servers = append(w.db.servers, serverRow{uuid: c.uuid, proc: c.proc, session: c.session, judgeDead: c.judgeDead, registered: w.dbNow(), heartbeat: w.dbNow(), watched: since, hung: hung, rules: w.procs[c.proc].rules()})
	}
}

// weight differs between the sessions of a process, as if an operator changed it. Its first sessions are alike.
func (s *serverRow) weight() int {
	return [...]int{2, 1, 3, 0}[int(s.uuid[len(s.uuid)-1])%4]
}

// clearHung is ClearHungQueues.
func (w *world) clearHung(c *call) {
	s := w.db.server(c.uuid)
	if c.done = s != nil; !c.done {
		return
	}
	left := slices.DeleteFunc(slices.Clone(s.hung), func(id string) bool { return slices.Contains(c.hung, id) })
	if len(left) < len(s.hung) {
		s.hung = left
		w.db.membership++
	}
}

func (w *world) heartbeat(c *call) {
	s, now := w.db.server(c.uuid), w.dbNow()
	if c.done = s != nil; !c.done {
		return
	}
	if s.token != c.token && s.token != c.token-1 {
		c.done = false // another process's row, or an older heartbeat
		return
	}
	s.token = c.token
	if c.since.After(s.watched) {
		s.watched = c.since
	}
	if now.Sub(s.heartbeat) > s.judgeDead/2 {
		s.watched = now
	}
	s.heartbeat, s.judgeDead = now, c.judgeDead
	c.reply = &roster.HeartbeatReply{
		UUID: c.uuid, Now: now, Paused: w.db.halted, PlanVersion: w.db.plan, MembershipVersion: w.db.membership, PlanDue: w.planDue(), Skipped: w.db.skipped,
		AuditDue: now.Sub(w.db.audited) > modelAudit || w.db.audited.After(now), AnyDead: slices.ContainsFunc(w.db.servers, w.dead),
		SettingsVersion: int64(w.db.judgeDead), // the session reads them in a job of its own
		EpochFloor:      w.db.adopted,
	}
	if s.suspended && !s.draining {
		c.reply.State = ops.StatePaused
	}
	c.reply.QueueVersion, c.reply.PartitionVersion = s.number, w.db.partition
	s.readNumber, s.readSum = c.readNumber, c.readSum
}

func (w *world) dead(s serverRow) bool { return w.dbNow().Sub(s.heartbeat).Abs() > s.judgeDead }

func (w *world) read(c *call) {
	v := roster.View{Version: w.number(c.uuid), PlanVersion: w.db.plan, PartitionVersion: w.db.partition, Removing: w.removing(), Resizing: w.resizing()}
	for _, q := range w.db.rows {
		if q.cur == c.uuid || q.req == c.uuid {
			v.Queues = append(v.Queues, roster.ViewQueue{ID: q.id, Index: q.index, Total: w.readTotal(c, q), Owner: q.cur, Requester: q.req, Epoch: q.epoch, PlanVersion: q.plan, RequesterInformed: w.known(q)})
		}
	}
	v.MarkChanging(c.uuid, nil)
	c.view, c.done = v, true
}

// poll is what a poll reads. It is one statement without an effect, so its reply arrives at once.
func (w *world) poll(p *process) (version int64) {
	if !w.reachable(p, false) {
		return -1 // the poll fails, and all queues are read again
	}
	return w.number(p.uuid)
}

func (w *world) release(c *call) {
	for _, h := range c.handover {
		q, to := w.db.row(h.QueueID), w.db.server(h.Requester)
		if w.locked(q.id) || q.cur != c.uuid || q.epoch != h.Epoch && !w.without.releaseEpoch || w.low(q.epoch) {
			continue
		}
		if !w.without.requester && (q.req != h.Requester || !w.without.eligibleCheck && (to == nil || !to.eligible()) || to != nil && slices.Contains(to.hung, q.id)) {
			continue
		}
		w.checkMove(c.uuid, q)
		w.own(q, q.req, q.epoch+1, "released by "+c.uuid)
		w.stamp(q)
		q.req, c.released = "", append(c.released, q.id)
	}
	w.db.plan++
}

// stamp notes the version that the plan gets with this transaction.
func (w *world) stamp(q *queueRow) { q.plan = w.db.plan + 1 }

func (w *world) retake(c *call) {
	q := w.db.row(c.queue)
	if w.locked(q.id) || q.cur != c.uuid || q.epoch != c.epoch || w.low(q.epoch) {
		return
	}
	epoch := q.epoch + 1
	if w.without.retakeEpoch {
		epoch--
	}
	w.own(q, q.cur, epoch, "retaken")
	w.stamp(q)
	c.done = true
	w.db.plan++
}

// known reports whether the requester has sent a heartbeat since it was named, by the database's present clock.
func (w *world) known(q queueRow) bool {
	to := w.db.server(q.req)
	return q.since.After(w.dbNow()) || to != nil && to.heartbeat.After(q.since)
}

func (w *world) announce(c *call) {
	if s := w.db.server(c.uuid); s != nil {
		s.leaving = w.returns > 0 && s.eligible()
		s.draining = !s.leaving
		w.db.membership++
		w.assign("", false, false)
	}
}

func (w *world) leave(c *call) {
	if w.db.server(c.uuid) == nil {
		return
	}
	for i := range w.db.rows {
		if q := &w.db.rows[i]; q.cur == c.uuid {
			w.checkMove(c.uuid, q)
		}
	}
	w.reserve(c.uuid)
	w.db.toHistory(*w.db.server(c.uuid))
	w.db.servers = slices.DeleteFunc(w.db.servers, func(s serverRow) bool { return s.uuid == c.uuid })
	w.db.membership++
	w.assign(c.uuid, false, false)
}
