package manager

import (
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/plan/plantest"
)

// converge ends all faults and lets every server do what there is to do, in rounds of one tick. Within a bound, each queue
// must have a live owner that works it, the queues must be spread evenly, and then nothing may change any more. It returns
// the number of rounds.
func (w *world) converge() int {
	w.heal()
	bound := 3 * int(w.longest()/w.tick)
	if w.edited {
		bound += int(modelAudit/w.tick) + 1
	}
	beat := int(modelHeartbeat/w.tick) + 1 // until then a server may still follow an earlier reply
	rounds := 0
	for ; rounds < bound && w.wrong == "" && (rounds < beat || w.unfinished() != ""); rounds++ {
		w.round()
	}
	if why := w.missed(); why != "" {
		w.fail("%s", why)
	}
	if why := w.unfinished(); why != "" {
		w.fail("not converged after %d rounds: %s", rounds, why)
	}
	before, version := slices.Clone(w.db.rows), w.db.plan
	for range 3 {
		w.round()
	}
	if !slices.Equal(before, w.db.rows) || version != w.db.plan || w.unfinished() != "" {
		w.fail("converged, and yet something changes: %s", w.unfinished())
	}
	return rounds
}

func (w *world) heal() {
	w.outage, w.db.halted = false, false
	alive := false
	for i := range w.procs {
		p := &w.procs[i]
		p.noHeartbeat, p.noRoster = false, false
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
	for len(w.late) > 0 && w.wrong == "" { // what can arrive does, and the rest is lost
		if w.applicable(&w.late[0]) {
			w.take(step{kind: stepLate})
			continue
		}
		w.late = w.late[1:]
	}
}

// round lets every server do what there is to do, ends what is in flight, and works each queue once.
func (w *world) round() {
	for i := range w.procs {
		p := &w.procs[i]
		w.drive(p)
		for n := len(p.calls); n > 0 && w.wrong == ""; n-- {
			w.conclude(p)
		}
		for _, h := range slices.Clone(p.queues) {
			if p.running() && !h.draining && !w.over(p) && w.wrong == "" {
				w.begin(p, h.id)
				w.conclude(p)
			}
		}
		w.drive(p)
		w.pollAgain(p)
	}
	if w.wrong == "" {
		w.take(step{kind: stepTick})
	}
}

// pollAgain polls, if the process waits for something.
func (w *world) pollAgain(p *process) {
	var buffer [64]step
	steps := w.possibleFor(p, buffer[:0])
	if i := slices.IndexFunc(steps, func(s step) bool { return s.kind == stepPoll }); i >= 0 && w.wrong == "" {
		w.take(steps[i])
		w.drive(p)
	}
}

// conclude ends the oldest call.
func (w *world) conclude(p *process) {
	n := len(p.calls)
	if !p.calls[0].locked {
		w.pass(p, 0)
	}
	if len(p.calls) == n {
		w.take(step{stepCommit, p.index, 0})
	}
}

// drive takes steps of a process until there are none.
func (w *world) drive(p *process) {
	for n := 0; w.wrong == "" && w.advance(p); n++ {
		if n > 50+20*len(w.db.rows) {
			w.fail("%s takes steps without end", p.uuid)
		}
	}
}

// advance takes one step of the server itself, and reports whether there was one.
func (w *world) advance(p *process) bool {
	var buffer [64]step
	steps := w.possibleFor(p, buffer[:0])
	i := slices.IndexFunc(steps, func(s step) bool { return s.kind.drives() })
	if i >= 0 {
		w.take(steps[i])
	}
	return i >= 0
}

// drives reports whether a step is one of the server itself.
func (k stepKind) drives() bool {
	switch k {
	case stepJoin, stepDone, stepReply, stepJobDone, stepJobReply, stepHeartbeatDone, stepHeartbeatReply, stepFollow, stepDrained, stepLost, stepLeave, stepStop:
		return true
	}
	return false
}

// unfinished says what is not as it should be in the end.
func (w *world) unfinished() string {
	for _, s := range w.db.servers {
		if !slices.ContainsFunc(w.procs, func(p process) bool { return p.uuid == s.uuid && p.state == serving }) {
			return s.uuid + " is still there"
		}
	}
	for _, q := range w.db.rows {
		if q.gone {
			continue
		}
		if q.removing || q.resize > 0 {
			return fmt.Sprintf("queue %s is still there, with %d for its total", q.id, q.total)
		}
		if q.cur == "" && q.req == "" && q.pin != "" && !slices.ContainsFunc(w.procs, func(p process) bool { return p.name == q.pin && p.state == serving }) {
			continue // the process that it is pinned to is away
		}
		if q.cur == "" && w.limit > 0 {
			continue // perhaps no server has room; Unsettled knows
		}
		i := slices.IndexFunc(w.procs, func(p process) bool { return p.uuid == q.cur })
		if q.cur == "" || i < 0 {
			return fmt.Sprintf("queue %s belongs to %q, which is not there", q.id, q.cur)
		}
		p := &w.procs[i]
		h := p.holding(q.id)
		if q.req != "" || h == nil || h.draining || h.epoch != q.epoch || p.state != serving || w.over(p) {
			return fmt.Sprintf("queue %s of %s is not worked", q.id, q.cur)
		}
	}
	for i := range w.procs {
		p := &w.procs[i]
		switch {
		case p.state == serving && (p.stop || p.mustRead || p.request != nil || p.job != nil):
			return p.name + " is busy"
		case p.state != away && p.state != serving:
			return p.name + " does not serve"
		}
	}
	return plantest.Unsettled(w.planInput())
}
