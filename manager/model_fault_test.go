package manager

import "slices"

func (k stepKind) fault() bool {
	switch k {
	case stepFail, stepJobFail, stepHeartbeatFail, stepCrash, stepPause, stepQuit, stepSuspend, stepHalt, stepCutHeartbeat, stepCutRoster, stepOutage, stepClock, stepEdit, stepDrop, stepHang, stepSettings, stepPin, stepRoundUp, stepLoad, stepUpgrade, stepRestore, stepResize:
		return true
	}
	return false // to wake, heal and recover are no faults
}

// inject makes a fault begin or end.
func (w *world) inject(p *process, s step) {
	switch s.kind {
	case stepFail:
		w.reply(p, true)
	case stepJobFail:
		w.jobReply(p, true)
	case stepHeartbeatFail:
		w.abandon(&p.heartbeat)
	case stepCrash:
		w.end(p)
	case stepPause:
		p.paused = true
	case stepWake:
		w.wake(p)
	case stepQuit:
		p.stop = true
	case stepSuspend, stepUnsuspend:
		w.numbered("", func() { w.suspend(p.uuid, s.kind == stepSuspend) })
	case stepHalt, stepUnhalt:
		w.db.halted, w.db.haltedAt = s.kind == stepHalt, w.now
		for i := range w.db.rows {
			w.db.rows[i].reservedFor = ""
		}
		w.db.membership++
	case stepCutHeartbeat:
		p.noHeartbeat = true
	case stepCutRoster:
		p.noRoster = true
	case stepHeal:
		p.noHeartbeat, p.noRoster = false, false
	case stepOutage:
		w.outage = true
	case stepRecover:
		w.outage = false
	case stepClock:
		w.db.step += clockSteps[s.n]
		w.steady = w.now + 2*w.longest()
	case stepEdit:
		w.edit(s.proc, s.n)
	case stepDrop:
		w.numbered("", func() { w.drop(&w.db.rows[s.n]) })
	case stepAdd:
		w.numbered("", func() { w.add(&w.db.rows[s.n]) })
	case stepHang:
		p.calls[s.n].hangs = true
	case stepSettings:
		if w.db.judgeDead = modelJudgeDead + modelLonger - w.db.judgeDead; w.db.judgeDead == modelJudgeDead {
			w.faults-- // as before
		}
	case stepPin, stepRoundUp, stepLoad:
		w.place(s)
	case stepUpgrade:
		p.upgraded = !p.upgraded
	case stepProve:
		w.numbered("", func() { w.prove(s.n) })
	case stepBackUp:
		w.backUp()
	case stepRestore:
		w.restore()
	case stepResize:
		w.numbered("", func() { w.resize(&w.db.rows[s.n/3], s.n%3) })
	case stepReturn:
		if p.calls[s.n].hangs = false; p.calls[s.n].cancelled {
			w.finish(p, s.n)
		}
	}
}

// wake makes a stopped process go on with the calls that it was in.
func (w *world) wake(p *process) {
	p.paused = false
	for i := range p.calls {
		p.calls[i].overdue = p.calls[i].overdue || !w.trusted(p)
	}
}

// suspend is what an operator does with PauseServer.
func (w *world) suspend(uuid string, suspended bool) {
	s := w.db.server(uuid)
	s.suspended, s.leaving, s.roundedUp = suspended, false, false
	w.db.membership++
	w.assign("", false, false)
}

// edit is an operator's UPDATE of queue n/3: another owner, no owner, or another epoch.
func (w *world) edit(proc, n int) {
	q := &w.db.rows[n/3]
	w.edited, q.edited = true, q.epoch
	switch n % 3 {
	case 0:
		q.cur = w.procs[proc].uuid
	case 1:
		q.cur = ""
	case 2:
		q.epoch += 2
		q.edited, q.top = q.epoch, max(q.top, q.epoch)
	}
}

// possible appends all steps that can be taken.
func (w *world) possible(steps []step) []step {
	steps = append(steps, step{kind: stepTick})
	for i := range w.procs {
		steps = w.possibleFor(&w.procs[i], steps)
	}
	for i := range w.late {
		if w.applicable(&w.late[i]) {
			steps = append(steps, step{kind: stepLate, n: i})
		}
	}
	if w.outage {
		steps = append(steps, step{kind: stepRecover})
	}
	if w.db.halted {
		steps = append(steps, step{kind: stepUnhalt})
	}
	for i, q := range w.db.rows {
		if !w.resized && (q.removing || q.gone) {
			steps = append(steps, step{kind: stepAdd, n: i})
		}
	}
	steps = w.proofs(steps)
	if w.faults == w.scene.faults {
		return steps
	}
	n := len(steps)
	for i := range w.procs {
		steps = w.faultsFor(&w.procs[i], steps)
	}
	steps = w.faultsOfAll(steps)
	return append(steps[:n], slices.DeleteFunc(steps[n:], func(s step) bool {
		return w.menu != nil && !slices.Contains(w.menu, s.kind)
	})...)
}

func (w *world) faultsOfAll(steps []step) []step {
	if !w.outage {
		steps = append(steps, step{kind: stepOutage})
	}
	if !w.db.halted {
		steps = append(steps, step{kind: stepHalt})
	}
	if w.retimed {
		steps = append(steps, step{kind: stepSettings})
	}
	if w.loses && !w.restored {
		steps = append(steps, step{kind: stepBackUp})
		if w.backup != nil {
			steps = append(steps, step{kind: stepRestore})
		}
	}
	steps = w.placements(steps)
	for i := range clockSteps {
		if w.now >= w.steady {
			steps = append(steps, step{kind: stepClock, n: i})
		}
	}
	staying := 0
	for _, q := range w.db.rows {
		if !q.removing && !q.gone {
			staying++
		}
	}
	steps = w.resizes(steps)
	for i, q := range w.db.rows {
		if staying > 1 && !w.resized && !q.removing && !q.gone {
			steps = append(steps, step{kind: stepDrop, n: i})
		}
		if w.locked(q.id) || q.gone {
			continue
		}
		for j := range w.procs {
			if uuid := w.procs[j].uuid; uuid != "" && uuid != q.cur {
				steps = append(steps, step{stepEdit, j, 3 * i})
			}
		}
		if q.cur != "" {
			steps = append(steps, step{stepEdit, 0, 3*i + 1})
		}
		steps = append(steps, step{stepEdit, 0, 3*i + 2})
	}
	return steps
}

// adder returns a function that appends a step of the process if it is possible.
func (p *process) adder(steps *[]step) func(bool, stepKind, int) {
	return func(possible bool, k stepKind, n int) {
		if possible {
			*steps = append(*steps, step{k, p.index, n})
		}
	}
}

func (w *world) possibleFor(p *process, steps []step) []step {
	add := p.adder(&steps)
	add(p.paused, stepWake, 0)
	s := w.db.server(p.uuid)
	add(s != nil && s.suspended, stepUnsuspend, 0)
	add(p.noHeartbeat || p.noRoster, stepHeal, 0)
	// The network and the database go on while a process is stopped.
	for _, c := range []struct {
		call               *call
		heartbeater, taken bool
		done, apply, reply stepKind
	}{
		{p.heartbeat, true, true, stepHeartbeatDone, stepHeartbeatApply, stepHeartbeatReply},
		{p.request, false, true, stepDone, stepApply, stepReply},
		{p.job, false, p.takesJobs(), stepJobDone, stepJobApply, stepJobReply},
	} {
		if c.call != nil && w.reachable(p, c.heartbeater) {
			add(w.applicable(c.call) && p.running() && c.taken, c.done, 0)
			add(w.applicable(c.call), c.apply, 0)
			add(c.call.applied && p.running() && c.taken, c.reply, 0)
		}
	}
	if !p.running() {
		return steps
	}
	add(w.heartbeatDue(p), stepHeartbeat, 0)
	for i, e := range p.calls {
		add(!e.hangs && !e.locked && w.reachable(p, false), stepFence, i)
		add(!e.hangs && e.locked && w.reachable(p, false), stepCommit, i)
		add(!e.hangs, stepFinish, i)
		add(e.hangs, stepReturn, i)
	}
	for i, h := range p.queues {
		add((!h.draining || w.without.drainStop) && !w.over(p) && p.inFlight(h.id) == 0, stepBegin, i)
	}
	if p.request == nil {
		w.possibleNext(p, add)
	}
	return steps
}

// possibleNext adds the events that the server's own goroutine waits for.
func (w *world) possibleNext(p *process, add func(bool, stepKind, int)) {
	active := p.state == serving || p.state == leaving && !p.cutShort && !p.drainedAll()
	add(p.state == joining || p.state == forgetting && p.forgettable(), stepJoin, 0)
	add(p.reply != nil && (active || p.state == fenced && !p.gone), stepFollow, 0)
	add(p.drained && active, stepDrained, 0)
	add(active && w.mustPoll(p), stepPoll, 0)
	add(w.isLost(p), stepLost, 0)
	add(p.stop && p.state != leaving, stepStop, 0)
	add(p.state == leaving && p.drainedAll() && p.job == nil, stepLeave, 0)
}

// forgettable reports whether the process may join anew: nothing is in flight but calls that ignore their context. It
// waits for these no longer than the grace.
func (p *process) forgettable() bool {
	return !slices.ContainsFunc(p.calls, func(e execution) bool { return !e.hangs })
}

// takesJobs reports whether the server's own goroutine waits for the end of its job, among other events.
func (p *process) takesJobs() bool {
	return p.idle() && (p.state == serving || p.state == leaving)
}

func (w *world) faultsFor(p *process, steps []step) []step {
	add := p.adder(&steps)
	add(p.request != nil && p.running(), stepFail, 0)
	add(p.job != nil && p.takesJobs(), stepJobFail, 0)
	add(p.heartbeat != nil && p.running(), stepHeartbeatFail, 0)
	add(p.state != away, stepCrash, 0)
	add(p.state == away, stepJoin, 0)
	add(w.rolled && p.state == away, stepUpgrade, 0)
	add(p.running(), stepPause, 0)
	add(p.running() && !p.stop, stepQuit, 0)
	s := w.db.server(p.uuid)
	add(s != nil && !s.suspended, stepSuspend, 0)
	add(!p.noHeartbeat, stepCutHeartbeat, 0)
	add(!p.noRoster, stepCutRoster, 0)
	for i, e := range p.calls {
		add(p.running() && !e.hangs, stepHang, i)
	}
	return steps
}
