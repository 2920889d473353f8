package manager

import (
	"strconv"
	"time"

	"github.com/dutyrota/rota/center"
)

// What follows are the states of states.go and the steps of server.go, cut at each call.

// join begins a life.
func (w *world) join(p *process) {
	p.lives++
	p.uuid = p.name + strconv.Itoa(p.lives)
	if w.without.newUUID {
		p.uuid = p.name + "1"
	}
	p.state, p.start, p.spent = joining, w.local(p), map[string]int64{}
	p.watch = watch{judgeDead: modelJudgeDead, margin: margin(modelJudgeDead, modelHeartbeat)}
	p.view, p.pulse, p.gone, p.giveBy, p.token = center.View{}, nil, false, time.Time{}, 0
	p.blocked, p.lapsed = nil, false
	w.send(p, call{kind: callRegister})
}

func (w *world) registered(p *process, c call, err bool) {
	if err {
		return // joining: the next attempt has another uuid
	}
	p.watch.begin(c.since, c.at, w.local(p))
	p.beating, p.joined = true, c.at
	w.enter(p)
}

// enter is the beginning of serving.
func (w *world) enter(p *process) {
	p.state, p.stale, p.entering = serving, true, true
	if w.without.resumeView && p.view.Queues != nil {
		p.stale, p.entering = false, false
		w.look(p)
		return
	}
	w.send(p, call{kind: callAssign})
}

// refresh is what a pulse (or nil: something else) starts.
func (w *world) refresh(p *process, pulse *center.Pulse) {
	if pulse == nil {
		w.look(p)
		return
	}
	v := ownView{base: &base{uuid: p.uuid}, View: p.view}
	if p.lapsed || !v.matches(*pulse) && !w.without.compare || v.requesterUnaware() {
		p.stale, p.lapsed = true, false
	}
	if pulse.MembershipVersion == pulse.PlannedVersion {
		p.blocked = nil // the plan is written: nothing waits any more
	}
	p.auditDue = pulse.AuditDue
	switch paused := pulse.State == center.StatePaused; {
	case paused && p.giveBy.IsZero():
		p.give(w)
	case !paused && p.state != leaving:
		p.giveBy = time.Time{}
	}
	if dead := pulse.AnyDead && p.watched > 0; dead || pulse.MembershipVersion != pulse.PlannedVersion {
		c := call{kind: callAssign}
		if dead || w.without.dbClock {
			c.within, c.seen = 2*modelHeartbeat, pulse.Now
			if p.watch.since.Before(p.joined) && pulse.Now.Sub(p.joined) < modelJudgeDead {
				c.patience = modelJudgeDead / 2
			}
		}
		p.stale = true
		w.send(p, c)
		return
	}
	w.auditOrLook(p)
}

func (w *world) auditOrLook(p *process) {
	if p.auditDue {
		p.auditDue = false
		w.send(p, call{kind: callAudit})
		return
	}
	w.look(p)
}

func (w *world) look(p *process) {
	if p.stale {
		w.send(p, call{kind: callView})
		return
	}
	w.decide(p)
}

func (w *world) decide(p *process) {
	f := facts{uuid: p.uuid, rows: p.view.Queues, holdings: w.holdings(p), retired: p.spent, blocked: p.blocked, handingOver: !p.giveBy.IsZero(), overdue: w.isLate(p)}
	if w.without.spent {
		f.retired = nil
	}
	p.todo, p.handover, p.changed, p.replan = decide(f), nil, false, false
	w.perform(p)
}

// perform takes the steps up to the next call.
func (w *world) perform(p *process) {
	for len(p.todo) > 0 {
		a := p.todo[0]
		p.todo = p.todo[1:]
		switch a.verb {
		case grant:
			w.grant(p, a.id, a.row.Epoch)
		case drain:
			w.drain(p, a.id)
		case resume:
			w.resume(p, a.id)
		case revoke:
			w.revoke(p, a.id)
		case forget:
			p.changed = w.forget(p, a.id) || p.changed
		case release:
			p.handover = append(p.handover, center.Handover{QueueID: a.id, Epoch: a.row.Epoch, To: a.row.Req})
		case retake:
			p.stale = true
			w.send(p, call{kind: callRetake, queue: a.id, epoch: a.row.Epoch})
			return
		case remove:
			w.forget(p, a.id)
			p.spent[a.id] = a.row.Epoch
			p.stale = true
			w.send(p, call{kind: callRemove, queue: a.id, epoch: a.row.Epoch})
			return
		case replan:
			p.replan = true
		}
	}
	if p.replan {
		p.stale = true
		w.send(p, call{kind: callAssign})
		return
	}
	w.handOver(p)
}

// handOver is the end of perform.
func (w *world) handOver(p *process) {
	if len(p.handover) > 0 {
		w.sendRelease(p)
		return
	}
	if p.changed {
		w.look(p)
	}
}

func (w *world) sendRelease(p *process) {
	for _, h := range p.handover {
		w.forget(p, h.QueueID)
		p.spent[h.QueueID] = h.Epoch
	}
	w.send(p, call{kind: callRelease, handover: p.handover, stale: p.stale})
	p.stale = true
	p.handover = nil
}

// refreshed goes on with a refresh after one of its calls.
func (w *world) refreshed(p *process, c call, err bool) {
	switch {
	case p.entering:
		p.entering = false
		w.look(p)
	case err:
		p.replan = false
		p.stale, p.todo, p.handover, p.auditDue = true, nil, nil, false
	case c.kind == callAssign:
		before := len(p.blocked)
		p.blocked = map[string]bool{}
		for _, id := range c.blocked {
			p.blocked[id] = true
		}
		if p.replan {
			p.replan, p.changed = false, p.changed || len(p.blocked) < before
			w.handOver(p)
			return
		}
		w.auditOrLook(p)
	case c.kind == callAudit:
		p.stale = p.stale || c.done
		w.look(p)
	case c.kind == callView:
		p.view, p.stale = c.view, false
		if w.without.freshView {
			p.view.Removing = w.removing() // as if the lock row were read after the queues
		}
		w.decide(p)
	case c.kind == callRetake, c.kind == callRemove:
		p.changed = p.changed || c.done
		w.perform(p)
	case c.kind == callRelease:
		if len(c.released) == len(c.handover) {
			p.view, p.stale = p.view.Without(c.released), c.stale
		}
		if p.changed = p.changed || len(c.released) > 0; p.changed {
			w.look(p)
		}
	}
}

// lost: the row is gone, or the lease is over.
func (w *world) lost(p *process) {
	if p.state == leaving {
		p.cutShort = true
		w.revokeAll(p)
		return
	}
	if p.state == serving {
		p.state = fenced
		w.revokeAll(p)
	}
	if p.gone {
		p.state = forgetting
	}
}

// quit is the end of the context: drain, hand over, leave.
func (w *world) quit(p *process) {
	p.stop = true
	switch p.state {
	case joining, forgetting:
		w.end(p)
		return
	}
	p.state, p.entering, p.todo, p.handover = leaving, false, nil, nil
	p.give(w)
	w.send(p, call{kind: callAnnounce})
}

// give is that of life.
func (p *process) give(w *world) { p.giveBy = w.local(p).Add(modelHeartbeat * 5 / 4) }

func (w *world) isLate(p *process) bool { return !p.giveBy.IsZero() && !w.local(p).Before(p.giveBy) }

func (w *world) announced(p *process, err bool) {
	if err {
		p.giveBy = w.local(p)
	}
	p.stale = true
	w.look(p)
}

func (w *world) left(p *process, err bool) {
	if !err || w.over(p) {
		w.end(p)
	}
}

// end is the end of the process, in order or not.
func (w *world) end(p *process) {
	for _, c := range []**call{&p.heart, &p.store} {
		if *c != nil {
			w.abandon(c)
		}
	}
	*p = process{index: p.index, name: p.name, lives: p.lives, skew: p.skew, pace: p.pace, noHeart: p.noHeart, noStore: p.noStore}
}

func (w *world) awaiting(p *process) bool {
	if !p.giveBy.IsZero() && !w.isLate(p) {
		return true
	}
	for _, q := range p.view.Queues {
		if q.Cur != p.uuid {
			return true
		}
	}
	return false
}
