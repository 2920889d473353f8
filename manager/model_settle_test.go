package manager

import (
	"fmt"
	"slices"
)

// settle ends all faults and lets everybody do what is to be done, in rounds of one tick. Within a
// bound, each queue must have a living owner that works it, evenly, and then nothing may change any
// more. It returns the number of rounds it took.
func (w *world) settle() int {
	w.heal()
	bound := 3 * int(modelJudgeDead/w.tick)
	if w.edited {
		bound += int(modelAudit/w.tick) + 1
	}
	beat := int(modelHeartbeat/w.tick) + 1 // until then somebody may yet take a pulse from before
	rounds := 0
	for ; rounds < bound && w.wrong == "" && (rounds < beat || w.unsettled() != ""); rounds++ {
		w.round()
	}
	if why := w.unsettled(); why != "" {
		w.fail("not settled after %d rounds: %s", rounds, why)
	}
	before, version := slices.Clone(w.db.rows), w.db.plan
	for range 3 {
		w.round()
	}
	if !slices.Equal(before, w.db.rows) || version != w.db.plan || w.unsettled() != "" {
		w.fail("settled, and yet something changes: %s", w.unsettled())
	}
	return rounds
}

func (w *world) heal() {
	w.outage = false
	alive := false
	for i := range w.procs {
		p := &w.procs[i]
		p.noHeart, p.noStore = false, false
		if p.paused {
			w.wake(p)
		}
		if s := w.db.server(p.uuid); s != nil && s.suspended {
			w.suspend(p.uuid, false)
		}
		alive = alive || p.state != away && !p.stop
	}
	if !alive {
		p := &w.procs[0]
		if p.state != away {
			w.end(p)
		}
		w.join(p)
	}
	for len(w.late) > 0 && w.wrong == "" { // whatever is under way arrives, or is lost: those that can, arrive
		if w.applicable(&w.late[0]) {
			w.take(step{kind: stepLate})
			continue
		}
		w.late = w.late[1:]
	}
}

// round: everybody does what there is to do, what is in hand ends, and each queue is worked once.
func (w *world) round() {
	for i := range w.procs {
		p := &w.procs[i]
		w.drive(p)
		for n := len(p.calls); n > 0 && w.wrong == ""; n-- {
			w.conclude(p)
		}
		for _, h := range slices.Clone(p.held) {
			if p.running() && !h.draining && !w.over(p) && w.wrong == "" {
				w.begin(p, h.id)
				w.conclude(p)
			}
		}
		w.drive(p)
		w.lookAgain(p)
	}
	if w.wrong == "" {
		w.take(step{kind: stepTick})
	}
}

// lookAgain is a poll, if the process waits for something.
func (w *world) lookAgain(p *process) {
	var buffer [64]step
	steps := w.possibleFor(p, buffer[:0])
	if i := slices.IndexFunc(steps, func(s step) bool { return s.kind == stepPoll }); i >= 0 && w.wrong == "" {
		w.take(steps[i])
		w.drive(p)
	}
}

// conclude brings the oldest call to its end.
func (w *world) conclude(p *process) {
	n := len(p.calls)
	if !p.calls[0].locked {
		w.pass(p, 0)
	}
	if len(p.calls) == n {
		w.take(step{stepCommit, p.index, 0})
	}
}

// drive takes steps of a process until it rests.
func (w *world) drive(p *process) {
	for n := 0; w.wrong == "" && w.advance(p); n++ {
		if n > 50+20*len(w.db.rows) {
			w.fail("%s does not come to rest", p.uuid)
		}
	}
}

// advance takes a step that gets a server on, if there is one.
func (w *world) advance(p *process) bool {
	var buffer [64]step
	steps := w.possibleFor(p, buffer[:0])
	i := slices.IndexFunc(steps, func(s step) bool { return s.kind.drives() })
	if i >= 0 {
		w.take(steps[i])
	}
	return i >= 0
}

// drives reports that a step gets the server itself on.
func (k stepKind) drives() bool {
	switch k {
	case stepJoin, stepDone, stepReply, stepBeatDone, stepBeatReply, stepPulse, stepDrained, stepLost, stepLeave, stepStop:
		return true
	}
	return false
}

// unsettled says what is not as it should be.
func (w *world) unsettled() string {
	owned := make([]int, len(w.procs))
	for _, s := range w.db.servers {
		if !slices.ContainsFunc(w.procs, func(p process) bool { return p.uuid == s.uuid && p.state == serving }) {
			return s.uuid + " is still there"
		}
	}
	for _, q := range w.db.rows {
		if q.gone {
			continue
		}
		if q.removing {
			return fmt.Sprintf("queue %s is still there", q.id)
		}
		i := slices.IndexFunc(w.procs, func(p process) bool { return p.uuid == q.cur })
		if q.cur == "" || i < 0 {
			return fmt.Sprintf("queue %s is %q's, who is not there", q.id, q.cur)
		}
		p := &w.procs[i]
		h := p.holding(q.id)
		if q.req != "" || h == nil || h.draining || h.epoch != q.epoch || p.state != serving || w.over(p) {
			return fmt.Sprintf("queue %s of %s is not worked", q.id, q.cur)
		}
		owned[i]++
	}
	least, most := len(w.db.rows), 0
	for i := range w.procs {
		p := &w.procs[i]
		switch {
		case p.state == serving && (p.stop || p.stale || p.store != nil):
			return p.name + " is busy"
		case p.state == serving:
			least, most = min(least, owned[i]), max(most, owned[i])
		case p.state != away:
			return p.name + " does not serve"
		}
	}
	if most-least > 1 {
		return fmt.Sprintf("uneven: %v", owned)
	}
	return ""
}
