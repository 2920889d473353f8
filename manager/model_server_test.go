package manager

import (
	"maps"
	"strconv"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// This file has the states of a session and the steps of its reconciler, cut at each call.

// join begins a session.
func (w *world) join(p *process) {
	p.sessions++
	p.uuid = p.name + strconv.Itoa(p.sessions)
	if w.without.newUUID {
		p.uuid = p.name + "1"
	}
	p.state, p.start, p.retired = joining, w.local(p), nil
	p.watch = watch{judgeDead: modelJudgeDead, margin: margin(modelJudgeDead, modelHeartbeat)}
	p.view, p.reply, p.gone, p.handOverBy, p.token = roster.View{}, nil, false, time.Time{}, 0
	p.blocked, p.lapsed = nil, false
	w.send(p, call{kind: callRegister})
}

func (w *world) joined(p *process, c call, err bool) {
	if err {
		return // joining: the next attempt has another uuid
	}
	p.watch.begin(c.since, c.at, w.local(p))
	p.registered, p.joined = true, c.at
	w.enter(p)
}

// enter begins to serve.
func (w *world) enter(p *process) {
	p.state, p.mustRead, p.entering = serving, true, true
	w.send(p, call{kind: callAssign})
}

// refresh reconciles after a heartbeat's reply, or after another event if reply is nil.
func (w *world) refresh(p *process, reply *roster.HeartbeatReply) {
	if reply == nil {
		w.readOrDecide(p)
		return
	}
	v := p.ownView()
	if p.lapsed || !v.matches(*reply) && !w.without.compare || v.requesterUnaware() {
		p.mustRead, p.lapsed = true, false
	}
	if reply.MembershipVersion == reply.PlannedVersion {
		p.blocked = nil // the plan is written
	}
	p.auditDue = reply.AuditDue
	switch paused := reply.State == center.StatePaused; {
	case paused && p.handOverBy.IsZero():
		p.startHandOver(w)
	case !paused && p.state != leaving:
		p.handOverBy = time.Time{}
	}
	if dead := reply.AnyDead && p.watched > 0; dead || reply.MembershipVersion != reply.PlannedVersion {
		c := call{kind: callAssign}
		if dead || w.without.dbClock {
			c.within, c.seen = 2*modelHeartbeat, reply.Now
			if p.watch.since.Before(p.joined) && reply.Now.Sub(p.joined) < modelJudgeDead {
				c.patience = modelJudgeDead / 2
			}
		}
		p.mustRead = true
		w.send(p, c)
		return
	}
	w.auditOrRead(p)
}

func (w *world) auditOrRead(p *process) {
	if p.auditDue {
		p.auditDue = false
		w.send(p, call{kind: callAudit})
		return
	}
	w.readOrDecide(p)
}

func (w *world) readOrDecide(p *process) {
	if p.mustRead {
		w.send(p, call{kind: callView})
		return
	}
	w.decide(p)
}

func (w *world) decide(p *process) {
	f := facts{uuid: p.uuid, rows: p.view.Queues, holdings: w.holdings(p), retired: p.retired, blocked: p.blocked, handingOver: !p.handOverBy.IsZero(), overdue: w.overdue(p)}
	if w.without.retired {
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
			p.handover = append(p.handover, roster.Handover{QueueID: a.id, Epoch: a.row.Epoch, Requester: a.row.Requester})
		case retake:
			p.mustRead = true
			w.send(p, call{kind: callRetake, queue: a.id, epoch: a.row.Epoch})
			return
		case remove:
			w.forget(p, a.id)
			p.retire(a.id, a.row.Epoch)
			p.mustRead = true
			w.send(p, call{kind: callRemove, queue: a.id, epoch: a.row.Epoch})
			return
		case replan:
			p.replan = true
		}
	}
	if p.replan {
		p.mustRead = true
		w.send(p, call{kind: callAssign})
		return
	}
	w.handOver(p)
}

// handOver ends perform.
func (w *world) handOver(p *process) {
	if len(p.handover) > 0 {
		w.sendRelease(p)
		return
	}
	if p.changed {
		w.readOrDecide(p)
	}
}

func (w *world) sendRelease(p *process) {
	for _, h := range p.handover {
		w.forget(p, h.QueueID)
		p.retire(h.QueueID, h.Epoch)
	}
	w.send(p, call{kind: callRelease, handover: p.handover, mustRead: p.mustRead})
	p.mustRead = true
	p.handover = nil
}

// refreshed continues a refresh after one of its calls.
func (w *world) refreshed(p *process, c call, err bool) {
	switch {
	case p.entering:
		p.entering = false
		w.readOrDecide(p)
	case err:
		p.replan = false
		p.mustRead, p.todo, p.handover, p.auditDue = true, nil, nil, false
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
		w.auditOrRead(p)
	case c.kind == callAudit:
		p.mustRead = p.mustRead || c.done
		w.readOrDecide(p)
	case c.kind == callView:
		p.view, p.mustRead = c.view, false
		w.decide(p)
	case c.kind == callRetake, c.kind == callRemove:
		p.changed = p.changed || c.done
		w.perform(p)
	case c.kind == callRelease:
		if len(c.released) == len(c.handover) {
			p.view, p.mustRead = p.view.Without(c.released), c.mustRead
		}
		if p.changed = p.changed || len(c.released) > 0; p.changed {
			w.readOrDecide(p)
		}
	}
}

// lost is what a server does when its row is gone or its lease has expired.
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

// quit is what a server does when its context is done: it drains, hands over, and leaves.
func (w *world) quit(p *process) {
	p.stop = true
	switch p.state {
	case joining, forgetting:
		w.end(p)
		return
	}
	p.state, p.entering, p.todo, p.handover = leaving, false, nil, nil
	p.startHandOver(w)
	w.send(p, call{kind: callAnnounce})
}

// startHandOver is halt.handOver.
func (p *process) startHandOver(w *world) { p.handOverBy = w.local(p).Add(modelHeartbeat * 5 / 4) }

func (w *world) overdue(p *process) bool {
	return !p.handOverBy.IsZero() && !w.local(p).Before(p.handOverBy)
}

func (w *world) announced(p *process, err bool) {
	if err {
		p.handOverBy = w.local(p)
	}
	p.mustRead = true
	w.readOrDecide(p)
}

func (w *world) left(p *process, err bool) {
	if !err || w.over(p) {
		w.end(p)
	}
}

// end ends the process, in order or not.
func (w *world) end(p *process) {
	for _, c := range []**call{&p.heartbeat, &p.request} {
		if *c != nil {
			w.abandon(c)
		}
	}
	*p = process{index: p.index, name: p.name, sessions: p.sessions, skew: p.skew, pace: p.pace, noHeartbeat: p.noHeartbeat, noRoster: p.noRoster}
}

// mustPoll is that of session.
func (w *world) mustPoll(p *process) bool {
	return !p.handOverBy.IsZero() && !w.overdue(p) || p.ownView().hasIncoming()
}

// retire copies the map, which other states of the model share.
func (p *process) retire(id string, epoch int64) {
	retired := map[string]int64{}
	maps.Copy(retired, p.retired)
	retired[id] = epoch
	p.retired = retired
}
