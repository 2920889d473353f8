package manager

import (
	"fmt"
	"time"
)

// step is one atomic event. proc is the process, n is what the kind needs: a queue, a call, an amount.
type step struct {
	kind    stepKind
	proc, n int
}

type stepKind int

const (
	stepTick           stepKind = iota
	stepJoin                    // a process starts, or begins a session
	stepHeartbeat               // the heartbeater sends
	stepDone                    // the request is applied and its reply delivered
	stepApply                   // the request is applied
	stepReply                   // its reply is delivered
	stepJobDone                 // the job is applied and its reply delivered
	stepJobApply                // the job is applied
	stepJobReply                // the reply to the job is delivered
	stepHeartbeatDone           // the heartbeat is applied and its reply delivered
	stepHeartbeatApply          // the heartbeat is applied
	stepHeartbeatReply          // the reply to the heartbeat is delivered
	stepFollow                  // the server follows the heartbeat's reply
	stepDrained                 // the server takes the processor's signal
	stepPoll                    // the server looks for a queue that it waits for
	stepLost                    // the server notices that its lease or row is gone
	stepLeave                   // the server has drained and leaves
	stepStop                    // the server begins to leave
	stepBegin                   // an executor starts to work queue n
	stepFence                   // call n executes the fence, which may reject it
	stepCommit                  // call n commits
	stepFinish                  // call n ends without an effect
	stepLate                    // a call that was given up arrives after all
	stepFail                    // the request fails for its sender
	stepJobFail                 // the job fails for its sender
	stepHeartbeatFail           // the heartbeat fails for its sender
	stepCrash
	stepPause
	stepWake
	stepQuit
	stepSuspend // an operator pauses the server
	stepUnsuspend
	stepHalt // an operator pauses the task type
	stepUnhalt
	stepCutHeartbeat
	stepCutRoster
	stepHeal
	stepOutage
	stepRecover
	stepClock
	stepEdit
	stepDrop     // an operator removes queue n
	stepAdd      // an operator adds queue n again
	stepHang     // call n hangs and ignores its context
	stepSettings // an operator changes judge_dead_interval
	stepPin      // an operator pins queue n to the process, or to none any more (P14)
	stepRoundUp  // a server says that the process's share is rounded up first, or not any more (P15)
	stepLoad     // queue n gets work, or has none any more: the plan evens the loads while some queue has work (P16)
	stepUpgrade  // a process that is away gets a program with the newer rules of the planner, or with the older ones again (P11)
	stepProve    // server n is expired, because its process has ended
	stepReturn   // call n ends if it was cancelled; otherwise it goes on as before
	stepBackUp   // the database is backed up
	stepRestore  // the database falls back to the backup (H7)
	stepResize   // an operator requests another total for queue n/3, or withdraws that (N3)
	stepKinds    = iota
)

func (k stepKind) String() string {
	return [...]string{
		"tick", "join", "heartbeat", "done", "apply", "reply", "job done", "job apply", "job reply", "heartbeat done", "heartbeat apply", "heartbeat reply", "follow", "drained", "poll", "lost",
		"leave", "stop", "begin", "fence", "commit", "finish", "late", "fail", "job fail", "heartbeat fail", "crash", "pause", "wake", "quit", "suspend", "unsuspend", "halt", "unhalt", "cut heartbeat",
		"cut roster", "heal", "outage", "recover", "clock", "edit", "drop", "add", "hang", "settings", "pin", "round up", "load", "upgrade", "prove", "return", "back up", "restore", "resize",
	}[k]
}

func (s step) String() string { return fmt.Sprintf("%s %c %d", s.kind, 'a'+s.proc, s.n) }

// clockSteps are the amounts by which the database's clock is set.
var clockSteps = []time.Duration{time.Minute, -time.Minute, 4 * time.Second}

// take takes a step that is possible. The queues may have other places afterwards.
func (w *world) take(s step) {
	w.takeOnly(s)
	w.checkSettled()
}

func (w *world) takeOnly(s step) {
	p := &w.procs[s.proc]
	if s.kind.fault() {
		w.faults++
	}
	switch s.kind {
	case stepTick:
		w.elapse(w.tick)
	case stepJoin:
		w.join(p)
	case stepHeartbeat:
		w.sendHeartbeat(p)
	case stepHeartbeatDone, stepHeartbeatApply, stepHeartbeatReply:
		if s.kind != stepHeartbeatReply {
			w.apply(p.heartbeat)
		}
		if s.kind != stepHeartbeatApply {
			w.deliver(p)
		}
	case stepDone, stepApply, stepReply:
		if s.kind != stepReply {
			w.apply(p.request)
		}
		if s.kind != stepApply {
			w.reply(p, false)
		}
	case stepJobDone, stepJobApply, stepJobReply:
		if s.kind != stepJobReply {
			w.apply(p.job)
		}
		if s.kind != stepJobApply {
			w.jobReply(p, false)
		}
	case stepLate:
		c := w.late[s.n]
		w.late = append(w.late[:s.n:s.n], w.late[s.n+1:]...)
		w.apply(&c)
	case stepFollow, stepDrained, stepPoll, stepLost, stepLeave, stepStop:
		w.wakeUp(p, s.kind)
	case stepBegin:
		w.begin(p, p.queues[s.n].id)
	case stepFence:
		w.pass(p, s.n)
	case stepCommit:
		w.checkCommit(p.calls[s.n])
		w.finish(p, s.n)
	case stepFinish:
		w.finish(p, s.n)
	default:
		w.inject(p, s)
	}
}

// wakeUp lets the server's own goroutine deal with one event.
func (w *world) wakeUp(p *process, k stepKind) {
	switch k {
	case stepFollow:
		reply := p.reply
		p.reply = nil
		if p.state == fenced {
			p.state = serving
		}
		w.refresh(p, reply)
	case stepDrained:
		p.drained = false
		for _, h := range p.queues {
			p.mustRead = p.mustRead || h.lost
		}
		w.refresh(p, nil)
	case stepPoll:
		if p.mustRead || !p.handOverBy.IsZero() || !p.ownView().isCurrent(w.poll(p)) {
			p.mustRead = true
			w.refresh(p, nil)
		}
	case stepLost:
		w.lost(p)
	case stepStop:
		w.quit(p)
	case stepLeave:
		p.registered = false // so that the lease expires, and with it the attempts to leave
		w.send(p, call{kind: callLeave})
	}
}

// elapse lets time pass. A running process does some things at once, and they happen here: cancelled calls end,
// heartbeats are sent, statements time out, and the end of a lease is noticed.
func (w *world) elapse(d time.Duration) {
	for i := range w.procs {
		p := &w.procs[i]
		for j := len(p.calls) - 1; j >= 0 && p.running(); j-- {
			if p.calls[j].cancelled && !p.calls[j].hangs {
				w.finish(p, j)
			}
		}
	}
	w.now += d
	for i := range w.procs {
		if p := &w.procs[i]; p.running() {
			w.catchUp(p)
		}
	}
}

func (w *world) catchUp(p *process) {
	timeout := heartbeatTimeout(modelIntervals(p.judgeDead).lease(), modelHeartbeat, 0)
	if p.heartbeat != nil && elapsed(p.heartbeat.sent, w.local(p)) >= timeout {
		w.abandon(&p.heartbeat)
	}
	if w.heartbeatDue(p) && w.reachable(p, true) {
		w.sendHeartbeat(p)
		w.apply(p.heartbeat)
		w.deliver(p)
	}
	if p.request != nil && elapsed(p.request.sent, w.local(p)) >= timeout {
		w.reply(p, true)
	}
	if p.job != nil && p.takesJobs() && elapsed(p.job.sent, w.local(p)) >= modelJudgeDead {
		w.jobReply(p, true)
	}
	if w.over(p) && p.registered { // the lease's own alarm, which waits for no statement
		w.lapse(p)
		w.revokeAll(p)
	}
	if p.idle() && w.isLost(p) {
		w.lost(p)
	}
}

func (w *world) heartbeatDue(p *process) bool {
	return p.running() && p.registered && p.heartbeat == nil && elapsed(p.tried, w.local(p)) >= modelHeartbeat
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
