package manager

import (
	"fmt"
	"slices"
	"strings"
)

// lines describes the world, for a trace.
func (w *world) lines() []string {
	lines := []string{
		fmt.Sprintf("%v, database's clock %+v, outage %t", w.now, w.db.step, w.outage),
		fmt.Sprintf("membership %d, planned %d, plan %d;", w.db.membership, w.db.planned, w.db.plan),
	}
	for _, q := range w.db.rows {
		if q.gone {
			continue
		}
		lines[1] += fmt.Sprintf(" [%s/%d: %s>%s %d]", q.id, q.total, q.cur, q.req, q.epoch)
		if q.resize > 0 {
			lines[1] += fmt.Sprintf(" to %d", q.resize)
		}
	}
	for _, r := range w.db.servers {
		lines = append(lines, fmt.Sprintf("row of %s, eligible %t, hung %v, heartbeat at %v", r.uuid, r.eligible(), r.hung, r.heartbeat.Sub(startTime)))
	}
	for i := range w.late {
		lines = append(lines, fmt.Sprintf("late: %s of %s", w.late[i].String(), w.late[i].uuid))
	}
	for i := range w.procs {
		if p := &w.procs[i]; p.state != away {
			lines = append(lines, p.line(w.trusted(p)))
		}
	}
	return lines
}

func (p *process) line(trusted bool) string {
	s := fmt.Sprintf("%s %v", p.uuid, p.state)
	for _, f := range []struct {
		is   bool
		name string
	}{
		{p.paused, "paused"},
		{!trusted, "lease expired"},
		{p.stop, "stopping"},
		{p.noHeartbeat, "heartbeater cut"},
		{p.noRoster, "roster cut"},
		{p.gone, "row gone"},
		{!p.handOverBy.IsZero(), "handing over"},
		{p.reply != nil, "has a reply"},
		{p.mustRead, "mustRead"},
		{p.drained, "drained"},
		{p.unconfirmed, "unconfirmed"},
		{p.halted, "halted"},
	} {
		if f.is {
			s += ", " + f.name
		}
	}
	s += fmt.Sprintf("; heartbeat %v, request %v, job %v; has", p.heartbeat, p.request, p.job)
	for _, h := range p.queues {
		s += fmt.Sprintf(" %s/%d", h.id, h.epoch)
		if h.draining {
			s += " draining"
		}
	}
	s += "; in flight"
	for _, e := range p.calls {
		s += fmt.Sprintf(" %s/%d", e.queue, e.epoch)
		if e.locked {
			s += " in tx"
		}
		if e.cancelled {
			s += " cancelled"
		}
		if e.hangs {
			s += " hangs"
		}
	}
	return s
}

// String returns the trace: each step, and what it changed.
func (k *walk) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %d steps: %s\n", k.seed, len(k.steps), k.wrong)
	var shown []string
	show := func(title string, w *world) {
		fmt.Fprintf(&b, "%s\n", title)
		lines := w.lines()
		for _, line := range lines {
			if !slices.Contains(shown, line) {
				fmt.Fprintf(&b, "        %s\n", line)
			}
		}
		shown = lines
	}
	show("start", k.start)
	k.replay(k.steps, func(s step, w *world) { show(s.String(), w) })
	return b.String()
}
