package manager

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// key returns a text for a state. Two states with the same key have the same future. Times are relative to now, and
// only the order of versions counts.
type key struct {
	b []byte
	w *world

	plans ranks
	now   time.Time // by the database's clock
	here  time.Time // by the process's clock
}

func (w *world) key(b []byte) []byte {
	k := &key{b: b, w: w, now: w.dbNow()}
	k.rank()
	k.ints(int64(w.faults), int64(w.db.judgeDead), w.db.membership-w.db.planned, int64(min(k.now.Sub(w.db.audited), modelAudit+1)), int64(max(0, w.steady-w.now)))
	k.flags(!w.db.reservedUntil.IsZero() && !w.db.reservedUntil.After(k.now), !w.db.reservedUntil.IsZero(), w.outage, w.edited, w.db.halted, w.db.skipped != nil)
	if w.db.skipped != nil {
		k.text(strings.Join(w.db.skipped, " "))
		k.ints(int64(max(-1, min(k.now.Sub(w.db.assigned), modelSkipRetry+1))))
	}
	for _, s := range w.db.servers {
		k.text(s.uuid)
		k.ints(int64(s.token), int64(s.judgeDead), int64(s.rules))
		k.flags(s.draining, s.leaving, s.suspended, s.roundedUp, k.w.lockFree(s), s.readNumber == s.number, s.readSum == k.w.queueSum(s.uuid))
		k.text(strings.Join(s.hung, " "))
		k.times(k.now, s.heartbeat, s.watched)
	}
	for _, q := range w.db.rows {
		k.text(q.cur)
		k.text(q.req)
		k.text(q.pin)
		if k.text(w.reservation(q)); w.reservation(q) != "" {
			k.times(k.now, q.reservedUntil)
		}
		k.ints(q.epoch, q.edited, k.plans.of(q.plan))
		k.flags(q.removing, q.gone, q.busy, q.req != "" && k.w.known(q))
		k.ints(int64(q.total), int64(q.resize))
	}
	for i := range w.procs {
		k.process(&w.procs[i])
	}
	for i := range w.late {
		k.call(&w.late[i])
	}
	if w.loses {
		k.history()
	}
	return k.b
}

// ranks puts versions in order. Versions are only compared, and later ones are higher than all.
type ranks []int64

func (r *ranks) add(version int64) {
	if at, found := slices.BinarySearch(*r, version); !found {
		*r = slices.Insert(*r, at, version)
	}
}

func (r *ranks) of(version int64) int64 {
	at, _ := slices.BinarySearch(*r, version)
	return int64(at)
}

// rank collects all versions that are stored or under way.
func (k *key) rank() {
	for _, q := range k.w.db.rows {
		k.plans.add(q.plan)
	}
	for i := range k.w.procs {
		p := &k.w.procs[i]
		k.rankView(p.view)
		k.rankCall(p.heartbeat)
		k.rankCall(p.request)
		k.rankCall(p.job)
	}
	for i := range k.w.late {
		k.rankCall(&k.w.late[i])
	}
}

func (k *key) rankCall(c *call) {
	if c != nil {
		k.rankView(c.view)
	}
}

func (k *key) rankView(v roster.View) {
	for _, q := range v.Queues {
		k.plans.add(q.PlanVersion)
	}
}

func (k *key) text(s string) { k.b = append(append(k.b, s...), 0) }

func (k *key) ints(all ...int64) {
	for _, n := range all {
		k.b = binary.AppendVarint(k.b, n)
	}
}

func (k *key) flags(all ...bool) {
	for _, f := range all {
		n := int64(0)
		if f {
			n = 1
		}
		k.ints(n)
	}
}

// times writes times relative to now. All that are long ago are the same.
func (k *key) times(now time.Time, all ...time.Time) {
	for _, t := range all {
		k.ints(int64(min(now.Sub(t), 3*modelLonger)))
	}
}

func (k *key) process(p *process) {
	k.here = k.w.local(p)
	k.text(p.uuid)
	k.ints(int64(p.token), int64(p.state), int64(p.sessions), int64(p.endedSessions), int64(p.judgeDead), int64(p.wanted), int64(p.next.intervals.judgeDead), int64(p.next.judgeDead))
	k.flags(p.paused, p.stop, p.cutShort, p.upgraded, p.noHeartbeat, p.noRoster, p.registered, p.gone, p.mustRead, p.drained, !p.handOverBy.IsZero(), k.w.overdue(p),
		p.unconfirmed, p.replyStale, p.halted, p.unannounced, k.w.db.haltedAt < p.lapsedAt)
	k.times(k.here, p.start, p.tried, p.watch.lastLocal)
	k.times(k.now, p.watch.since, p.watch.lastDB, p.joined)
	k.heartbeatReply(p.reply)
	k.ints(int64(p.watched))
	k.view(p.view, p.uuid)
	for _, q := range k.w.db.rows {
		k.ints(p.retired[q.id])
		k.flags(p.blocked[q.id], p.retried[q.id])
		k.ints(p.listed[q.id])
	}
	for _, a := range p.steps {
		k.ints(int64(a.verb), a.row.Epoch)
		k.text(a.id + a.row.Requester)
	}
	for _, at := range p.agenda {
		k.flags(!at.IsZero())
	}
	k.call(p.asked)
	for _, h := range p.queues {
		k.text(h.id)
		k.ints(h.epoch, int64(h.total))
		k.flags(h.draining, h.lost)
	}
	for _, e := range p.calls {
		k.text(e.queue + e.uuid)
		k.ints(e.epoch, int64(e.total))
		k.flags(e.locked, e.cancelled, e.overdue, e.hangs)
	}
	k.call(p.heartbeat)
	k.call(p.request)
	k.call(p.job)
}

// history writes what tells whether history was lost. Versions count beside those of the backup, too.
func (k *key) history() {
	db := &k.w.db
	k.ints(db.floor, db.adopted, db.membership, db.plan)
	k.flags(k.w.restored, k.w.unnoticed)
	k.b = fmt.Appendf(k.b, "%v", db.past)
	for i := range k.w.procs {
		p := &k.w.procs[i]
		k.ints(p.membership, p.plan, p.floor)
		k.text(p.lost)
		k.b = fmt.Appendf(k.b, "%v", p.memory)
	}
}

func (k *key) handovers(all []roster.Handover) {
	for _, h := range all {
		k.text(h.QueueID + h.Requester)
		k.ints(h.Epoch)
	}
	k.ints(-1)
}

func (k *key) heartbeatReply(p *roster.HeartbeatReply) {
	if p == nil {
		k.ints(-1)
		return
	}
	k.times(k.now, p.Now)
	k.ints(k.w.db.partition-p.PartitionVersion, k.w.number(p.UUID)-p.QueueVersion)
	k.flags(p.AnyDead, p.AuditDue, p.PlanDue, p.Paused, p.State == ops.StatePaused)
	k.text(strings.Join(p.Skipped, " "))
}

func (k *key) view(v roster.View, uuid string) {
	k.ints(k.w.number(uuid) - v.Version)
	k.text(strings.Join(v.Removing, " "))
	k.ints(k.w.db.partition - v.PartitionVersion)
	for _, q := range v.Queues {
		k.text(q.ID + q.Owner + ">" + q.Requester)
		k.ints(q.Epoch, int64(q.Total), k.plans.of(q.PlanVersion))
		k.flags(q.Changing, q.RequesterInformed)
	}
}

func (k *key) call(c *call) {
	if c == nil {
		k.ints(-2)
		return
	}
	k.ints(int64(c.kind), int64(c.session), int64(c.token), int64(c.within), int64(c.watched), int64(c.judgeDead), c.epoch)
	k.text(c.uuid + c.queue)
	k.text(strings.Join(c.released, " "))
	k.text(c.given)
	k.text(strings.Join(c.hung, " "))
	k.flags(c.inherited, c.applied, c.done, c.mustRead, c.reread, c.replan, c.stale)
	k.times(k.here, c.sent)
	k.times(k.now, c.seen, c.at, c.since)
	k.handovers(c.handover)
	k.heartbeatReply(c.reply)
	k.view(c.view, c.uuid)
	k.ints(k.w.number(c.uuid) - c.readNumber)
	k.flags(c.readSum == k.w.queueSum(c.uuid))
}
