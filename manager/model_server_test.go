package manager

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// This file has the states of a session, the steps of its reconciler, and its jobs, cut at each call.

// join begins a session.
func (w *world) join(p *process) {
	p.sessions++
	p.uuid = p.name + strconv.Itoa(p.sessions)
	if w.without.newUUID {
		p.uuid = p.name + "1"
	}
	if p.job != nil {
		w.abandon(&p.job)
	}
	p.state, p.start, p.retired = joining, w.local(p), nil
	p.judgeDead, p.wanted, p.next = w.db.judgeDead, w.db.judgeDead, announcement{}
	p.watch = watch{intervals: modelIntervals(p.judgeDead)}
	p.view, p.reply, p.gone, p.handOverBy, p.token = roster.View{}, nil, false, time.Time{}, 0
	p.blocked, p.retried, p.steps, p.agenda, p.asked = nil, nil, nil, agenda{}, nil
	p.membership, p.plan, p.heardAt, p.floor = 0, 0, time.Time{}, 0
	if w.loses && (p.memory == nil || w.without.memory) {
		p.memory = roster.NewMemory()
	}
	p.listed = map[string]int64{}
	for _, h := range slices.Clone(p.queues) {
		if !w.forget(p, h.id) {
			p.listed[h.id] = h.epoch
		}
	}
	w.send(p, call{kind: callRegister, judgeDead: p.judgeDead, hung: slices.Sorted(maps.Keys(p.listed))})
}

func (w *world) joined(p *process, c call, err bool) {
	if err {
		return // joining: the next attempt has another uuid
	}
	p.watch.begin(c.since, c.at, w.local(p))
	p.registered, p.joined, p.tried = true, c.at, time.Time{} // a heartbeat is due at once
	if w.without.joinHeartbeat {
		p.tried = w.local(p).Add(modelJudgeDead)
	}
	p.state, p.mustRead = serving, true
	p.heard(c.at, c.floor)
	if w.loses && !p.memory.Empty() {
		p.agenda.add(longAgo, checkHistory)
	}
	p.agenda.add(longAgo, rebalance)
	p.asked = &call{kind: callAssign}
	w.lapse(p)
	w.startJob(p)
}

// lapse notes that the server works nothing before it has read the reply to a heartbeat that it sends from now on (S11).
func (w *world) lapse(p *process) {
	p.unconfirmed, p.replyStale, p.lapsedAt = true, p.reply != nil, w.now
	if p.heartbeat != nil {
		p.heartbeat.stale = true
	}
}

// refresh reconciles after a heartbeat's reply, or after another event if reply is nil.
func (w *world) refresh(p *process, reply *roster.HeartbeatReply) {
	if reply != nil {
		w.follow(p, reply)
	}
	if p.mustRead {
		w.send(p, call{kind: callView})
		return
	}
	w.decide(p, false)
}

// follow notes what a reply asks for.
func (w *world) follow(p *process, reply *roster.HeartbeatReply) {
	v := p.ownView()
	if p.unconfirmed || !v.matches(*reply) && !w.without.compare || v.requesterUnaware() {
		p.mustRead = true
	}
	p.unconfirmed, p.halted = p.replyStale, reply.Paused
	p.followHistory(w, reply)
	p.wanted = time.Duration(reply.SettingsVersion)
	p.block(reply.Skipped)
	switch paused := reply.State == ops.StatePaused; {
	case paused && p.handOverBy.IsZero():
		p.startHandOver(w)
	case !paused && p.state != leaving:
		p.handOverBy = time.Time{}
	}
	r := heartbeatReply{HeartbeatReply: *reply, watched: p.watched}
	p.agenda = p.agenda.after(r, known{settings: reply.SettingsVersion, inRuns: true}, longAgo)
	if p.asked = nil; !p.agenda[rebalance].IsZero() {
		c := &call{kind: callAssign}
		if reply.AnyDead && p.watched > 0 || w.without.dbClock {
			c.within, c.seen, c.watched = 2*modelHeartbeat, reply.Now, p.watched
			c.inherited = p.watch.since.Before(p.joined) && reply.Now.Sub(p.joined) < p.watch.judgeDead
		}
		p.asked = c
	}
}

// block is planner.block.
func (p *process) block(queues []string) {
	p.blocked = map[string]bool{}
	for _, id := range queues {
		p.blocked[id] = true
	}
	p.retried = maps.Clone(p.retried)
	maps.DeleteFunc(p.retried, func(id string, _ bool) bool { return !p.blocked[id] })
}

// decide takes the steps that need no call, and notes the others. With failed the rows could not be read.
func (w *world) decide(p *process, failed bool) {
	for again := true; again; {
		actions := decide(w.facts(p))
		if failed {
			actions = stopping(actions)
		}
		again = w.perform(p, actions)
	}
	p.agenda.add(longAgo, moveQueues, clearHung)
	w.startJob(p)
}

func (w *world) facts(p *process) facts {
	f := facts{
		uuid: p.uuid, rows: p.view.Queues, holdings: w.holdings(p), retired: p.retired, blocked: p.blocked,
		halted: p.halted || p.unconfirmed && !w.without.firstReply, handingOver: !p.handOverBy.IsZero(), unannounced: p.unannounced, overdue: w.overdue(p),
	}
	if w.without.retired {
		f.retired = nil
	}
	return f
}

func (w *world) perform(p *process, actions []action) (again bool) {
	p.steps = nil
	for _, a := range actions {
		switch a.verb {
		case grant:
			w.grant(p, a.row)
		case drain:
			w.drain(p, a.id)
		case resume:
			w.resume(p, a.id)
		case revoke:
			w.revoke(p, a.id)
		case forget:
			again = w.forget(p, a.id) || again
		case replan:
			if !p.retried[a.id] {
				p.steps = append(p.steps, a)
			}
		default:
			p.steps = append(p.steps, a)
		}
	}
	return again
}

// startJob is jobRunner.startNext.
func (w *world) startJob(p *process) {
	if p.job != nil || p.request != nil || p.state != serving && (p.state != leaving || p.cutShort) {
		return
	}
	for p.job == nil {
		d, due := p.agenda.next(longAgo)
		if !due {
			return
		}
		p.agenda[d] = time.Time{}
		if c := w.makeJob(p, d); c != nil {
			c.proc, c.session, c.uuid, c.sent = p.index, p.sessions, p.uuid, w.local(p)
			p.job = c
		}
	}
}

// longAgo is when a duty of the model is due.
var longAgo = time.Unix(1, 0)

// makeJob is session.job.
func (w *world) makeJob(p *process, d duty) *call {
	switch d {
	case announceDrain:
		return &call{kind: callAnnounce}
	case moveQueues:
		return w.nextStep(p)
	case clearHung:
		if ended := p.endedHung(); len(ended) > 0 {
			return &call{kind: callClear, hung: ended}
		}
	case checkHistory:
		if !p.memory.Empty() {
			known := p.memory.Snapshot()
			return &call{kind: callHistory, memory: &known}
		}
	case rebalance:
		copied := *p.asked
		p.asked = nil
		return &copied
	case audit:
		return &call{kind: callAudit}
	}
	return nil // it has no part in the model
}

// endedHung is hungCalls.ended.
func (p *process) endedHung() (ended []string) {
	for id, epoch := range p.listed {
		if h := p.holding(id); h == nil || h.epoch != epoch {
			ended = append(ended, id)
		}
	}
	slices.Sort(ended)
	return ended
}

// nextStep is reconciler.moveQueues.
func (w *world) nextStep(p *process) *call {
	defer func() {
		if len(p.steps) > 0 {
			p.agenda.add(longAgo, moveQueues)
		}
	}()
	var handovers []roster.Handover
	var others []action
	for _, a := range p.steps {
		if a.verb != release {
			others = append(others, a)
			continue
		}
		handovers = append(handovers, roster.Handover{QueueID: a.id, Epoch: a.row.Epoch, Requester: a.row.Requester})
		w.forget(p, a.id)
		p.retire(a.id, a.row.Epoch)
	}
	if p.steps = others; len(handovers) > 0 {
		return &call{kind: callRelease, handover: handovers, mustRead: p.mustRead}
	}
	if len(others) == 0 {
		return nil
	}
	a := others[0]
	p.steps = others[1:]
	switch a.verb {
	case remove:
		w.forget(p, a.id)
		p.retire(a.id, a.row.Epoch)
		return &call{kind: callRemove, queue: a.id, epoch: a.row.Epoch}
	case retake:
		return &call{kind: callRetake, queue: a.id, epoch: a.row.Epoch}
	}
	p.retried = maps.Clone(p.retried)
	if p.retried == nil {
		p.retried = map[string]bool{}
	}
	for _, a := range others {
		if a.verb == replan {
			p.retried[a.id] = true
		}
	}
	p.steps = slices.DeleteFunc(slices.Clone(p.steps), func(a action) bool { return a.verb == replan })
	return &call{kind: callAssign, replan: true}
}

// jobEnded is what becomes of a job. With err its outcome is unknown.
func (w *world) jobEnded(p *process, c call, err bool) {
	if w.noteJob(p, c, err) {
		w.refresh(p, nil)
		return
	}
	w.startJob(p)
}

// noteJob notes the outcome of a job, and reports whether the session has more to do at once.
func (w *world) noteJob(p *process, c call, err bool) (more bool) {
	p.mustRead = p.mustRead || err
	switch c.kind {
	case callAnnounce:
		p.unannounced = false
		if err {
			p.handOverBy = w.local(p)
		}
		p.mustRead = true
		return true
	case callAssign:
		if err {
			return false
		}
		before := len(p.blocked)
		p.mustRead = true
		p.block(c.blocked)
		return !c.replan || len(p.blocked) < before
	case callAudit:
		p.mustRead = p.mustRead || c.done
		return c.done
	case callHistory:
		return w.historyChecked(p, c, err)
	case callClear:
		if !err && c.done {
			p.listed = maps.Clone(p.listed)
			maps.DeleteFunc(p.listed, func(id string, _ int64) bool { return slices.Contains(c.hung, id) })
			p.agenda.add(longAgo, rebalance)
			p.asked = &call{kind: callAssign}
		}
		return false
	case callRelease:
		read := !err && len(c.released) == len(c.handover) && !c.reread
		if p.mustRead = !read || c.mustRead; read {
			p.view = p.view.Without(c.released)
		}
		for _, h := range c.handover {
			if !err && slices.Contains(c.released, h.QueueID) {
				p.remember(func(m *roster.Memory) { m.Released(h) })
			}
		}
		return !err && len(c.released) > 0
	}
	p.mustRead = true // after a retake or a removal
	if c.kind == callRemove && !err && c.done {
		p.remember(func(m *roster.Memory) {
			m.Released(roster.Handover{QueueID: c.queue, Epoch: c.epoch, Requester: c.given})
		})
	}
	return !err && c.done
}

// viewed continues with the rows that were read.
func (w *world) viewed(p *process, c call, err bool) {
	if err {
		p.mustRead = true
		w.decide(p, true)
		return
	}
	if p.view, p.mustRead = c.view, false; p.job != nil {
		p.job.reread = true
	}
	p.see(w)
	w.decide(p, false)
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
		w.lapse(p)
		w.revokeAll(p)
	}
	if p.gone {
		if p.state = forgetting; p.job != nil {
			w.abandon(&p.job)
		}
		p.endSession()
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
	p.state, p.mustRead = leaving, true
	p.agenda.add(longAgo, announceDrain)
	p.unannounced = true
	if p.startHandOver(w); w.returns > 0 {
		p.handOverBy = w.local(p)
	}
	w.refresh(p, nil)
}

// startHandOver is halt.handOver.
func (p *process) startHandOver(w *world) { p.handOverBy = w.local(p).Add(modelHeartbeat * 5 / 4) }

func (w *world) overdue(p *process) bool {
	return !p.handOverBy.IsZero() && !w.local(p).Before(p.handOverBy)
}

func (w *world) left(p *process, err bool) {
	if !err || w.over(p) {
		w.end(p)
	}
}

// end ends the process, in order or not.
func (w *world) end(p *process) {
	for _, c := range []**call{&p.heartbeat, &p.request, &p.job} {
		if *c != nil {
			w.abandon(c)
		}
	}
	*p = process{index: p.index, name: p.name, sessions: p.sessions, endedSessions: p.sessions, skew: p.skew, pace: p.pace, noHeartbeat: p.noHeartbeat, noRoster: p.noRoster}
}

// mustPoll reports whether the server polls.
func (w *world) mustPoll(p *process) bool {
	return !p.ownView().pollAt(!p.handOverBy.IsZero() && !w.overdue(p)).IsZero()
}

// retire copies the map, which other states of the model share.
func (p *process) retire(id string, epoch int64) {
	retired := map[string]int64{}
	maps.Copy(retired, p.retired)
	retired[id] = epoch
	p.retired = retired
}
