package manager

import (
	"fmt"
	"time"
)

// step is one atomic event. proc is whose, n is what the kind needs: a queue, a call, an amount.
type step struct {
	kind    stepKind
	proc, n int
}

type stepKind int

const (
	stepTick      stepKind = iota
	stepJoin               // a process starts, or a life
	stepBeat               // the heart sends
	stepDone               // the store's call is applied and its reply delivered
	stepApply              // only the first
	stepReply              // only the second
	stepBeatDone           // the same for the heart's
	stepBeatApply          //
	stepBeatReply          //
	stepPulse              // the server's goroutine takes the pulse,
	stepDrained            // the processor's signal,
	stepPoll               // looks for a queue that it waits for,
	stepLost               // notices the end of its lease or row,
	stepLeave              // or has drained and leaves
	stepStop               // begins to leave
	stepBegin              // an executor takes queue n into hand
	stepFence              // call n passes the fence, or not,
	stepCommit             // commits,
	stepFinish             // or ends without an effect
	stepLate               // a call that was given up arrives after all
	stepFail               // the store's call fails for its sender
	stepBeatFail
	stepCrash
	stepPause
	stepWake
	stepQuit
	stepSuspend
	stepUnsuspend
	stepCutHeart
	stepCutStore
	stepHeal
	stepOutage
	stepRecover
	stepClock
	stepEdit
	stepDrop  // an operator removes queue n,
	stepAdd   // or adds it again
	stepKinds = iota
)

func (k stepKind) String() string {
	return [...]string{
		"tick", "join", "beat", "done", "apply", "reply", "beat done", "beat apply", "beat reply", "pulse", "drained", "poll", "lost",
		"leave", "stop", "begin", "fence", "commit", "finish", "late", "fail", "beat fail", "crash", "pause", "wake", "quit", "suspend", "unsuspend", "cut heart",
		"cut store", "heal", "outage", "recover", "clock", "edit", "drop", "add",
	}[k]
}

func (s step) String() string { return fmt.Sprintf("%s %c %d", s.kind, 'a'+s.proc, s.n) }

// clockSteps is by how much the database's clock is set.
var clockSteps = []time.Duration{time.Minute, -time.Minute, 4 * time.Second}

// take takes a step that is possible.
func (w *world) take(s step) {
	p := &w.procs[s.proc]
	if s.kind.fault() {
		w.faults++
	}
	switch s.kind {
	case stepTick:
		w.elapse(w.tick)
	case stepJoin:
		for _, h := range p.held {
			w.forget(p, h.id)
		}
		w.join(p)
	case stepBeat:
		w.sendBeat(p)
	case stepBeatDone, stepBeatApply, stepBeatReply:
		if s.kind != stepBeatReply {
			w.apply(p.heart)
		}
		if s.kind != stepBeatApply {
			w.deliver(p)
		}
	case stepDone, stepApply, stepReply:
		if s.kind != stepReply {
			w.apply(p.store)
		}
		if s.kind != stepApply {
			w.reply(p, false)
		}
	case stepLate:
		c := w.late[s.n]
		w.late = append(w.late[:s.n:s.n], w.late[s.n+1:]...)
		w.apply(&c)
	case stepPulse, stepDrained, stepPoll, stepLost, stepLeave, stepStop:
		w.wakeUp(p, s.kind)
	case stepBegin:
		w.begin(p, p.held[s.n].id)
	case stepFence:
		w.pass(p, s.n)
	case stepCommit:
		w.checkCommit(p.calls[s.n])
		w.finish(p, s.n)
	case stepFinish:
		w.finish(p, s.n)
	default:
		w.strike(p, s)
	}
}

// wakeUp lets the server's goroutine deal with one thing.
func (w *world) wakeUp(p *process, k stepKind) {
	switch k {
	case stepPulse:
		pulse := p.pulse
		p.pulse = nil
		if p.state == fenced {
			w.enter(p)
			return
		}
		w.refresh(p, pulse)
	case stepDrained:
		p.drained = false
		for _, h := range p.held {
			p.stale = p.stale || h.lost
		}
		w.refresh(p, nil)
	case stepPoll:
		if p.stale || !p.giveBy.IsZero() || w.awaits(p) != p.view.Awaits(p.uuid) {
			p.stale = true
			w.refresh(p, nil)
		}
	case stepLost:
		w.lost(p)
	case stepStop:
		w.quit(p)
	case stepLeave:
		p.beating = false // so that the lease ends, and with it the tries to leave in order
		w.send(p, call{kind: callLeave})
	}
}

// elapse lets time go by. What a process that runs does at once has happened by then: cancelled calls
// end, hearts beat, statements run into their timeouts, and the end of a lease is noticed.
func (w *world) elapse(d time.Duration) {
	for i := range w.procs {
		p := &w.procs[i]
		for j := len(p.calls) - 1; j >= 0 && p.running(); j-- {
			if p.calls[j].cancelled {
				w.finish(p, j)
			}
		}
	}
	w.now += d
	for i := range w.procs {
		if p := &w.procs[i]; p.running() {
			w.hurry(p)
		}
	}
}

func (w *world) hurry(p *process) {
	timeout := statementTimeout(modelHeartbeat)
	if p.heart != nil && elapsed(p.heart.sent, w.local(p)) >= timeout {
		w.abandon(&p.heart)
	}
	if w.beatDue(p) && w.reachable(p, true) {
		w.sendBeat(p)
		w.apply(p.heart)
		w.deliver(p)
	}
	if p.store != nil && elapsed(p.store.sent, w.local(p)) >= timeout {
		w.reply(p, true)
	}
	if w.over(p) && p.beating { // the lease's own alarm, whatever the server waits for
		p.lapsed = true
		w.revokeAll(p)
	}
	if p.idle() && w.isLost(p) {
		w.lost(p)
	}
}

func (w *world) beatDue(p *process) bool {
	return p.running() && p.beating && p.heart == nil && elapsed(p.tried, w.local(p)) >= modelHeartbeat
}

func (w *world) isLost(p *process) bool {
	switch p.state {
	case serving:
		return p.gone || w.over(p)
	case fenced:
		return p.gone
	case leaving:
		return !p.cutShort && (p.gone || w.over(p))
	}
	return false
}
