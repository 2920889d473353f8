package manager

import (
	"slices"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
)

// The versions of the planner's rules that the programs of a scene know. By the newer rules, the younger of two servers counts as the older one.
const (
	oldRules = 1
	newRules = 2
)

// rules returns the version that the program of a process knows.
func (p *process) rules() int {
	if p.upgraded {
		return newRules
	}
	return oldRules
}

// rulesOf returns the version that the program of an actor knows. An operator's program and a witness know the newest.
func (w *world) rulesOf(actor string) int {
	i := slices.IndexFunc(w.procs, func(p process) bool { return p.name == processName(actor) })
	if i < 0 {
		return newRules
	}
	return w.procs[i].rules()
}

// mayPlan is the MayPlan of internal/roster (P11).
func (w *world) mayPlan(actor string) bool {
	rows := make([]roster.ServerRow, len(w.db.servers))
	for i, s := range w.db.servers {
		rows[i].PlannerVersion = s.rules
	}
	return roster.MayPlan(w.rulesOf(actor), rows) || w.without.rules
}

// giveUp takes the queues from a server that has left and does not plan.
func (w *world) giveUp(uuid string) {
	if w.db.server(uuid) != nil {
		return
	}
	for i := range w.db.rows {
		q := &w.db.rows[i]
		switch {
		case w.locked(q.id):
		case q.cur == uuid:
			w.own(q, "", q.epoch+1, "given up by "+uuid)
			q.req = ""
			w.stamp(q)
		case q.req == uuid:
			q.req = ""
			w.stamp(q)
		}
	}
	w.db.plan++
}

// byRules turns the ages of the servers around if all of them know the newer rules.
func (w *world) byRules(servers []plan.Server) []plan.Server {
	if !slices.ContainsFunc(w.db.servers, func(s serverRow) bool { return s.rules == oldRules }) {
		for i, s := range servers {
			servers[i].RegisterTime = startTime.Add(startTime.Sub(s.RegisterTime))
		}
	}
	return servers
}

// checkRules fails if an actor plans by other rules than those of the oldest server (P11).
func (w *world) checkRules(actor string) {
	for _, s := range w.db.servers {
		if s.rules < w.rulesOf(actor) {
			w.fail("%s plans by rules %d, and %s knows only %d", actor, w.rulesOf(actor), s.uuid, s.rules)
		}
	}
}
