package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Rule is a rule of the plan: why a queue moves, or why no server gets it. If the queue stayed where it is, the rule
// would be broken. The rules rank in this order, and a move names the first one (P8).
type Rule int

// The rules.
const (
	Stays           Rule = iota // no rule: the queue stays with its owner
	Removed                     // the queue is given up for a change (N1, N2, N3)
	Unowned                     // the queue has no live owner (P5)
	Ineligible                  // the server is paused, drains or leaves (P7)
	Require                     // the server lacks a label that the task type requires (P14)
	Pin                         // the server lacks a label that the queue's pin demands (P14)
	Hung                        // a call of the queue hangs in the server's process (P9)
	Standby                     // limits choose other servers (P10, P12)
	QueuesPerServer             // the server has as many queues as it may (P7)
	Prefer                      // the server lacks a label that the task type prefers, and another one has it (P14)
	Weight                      // the server has weight 0, and another one has more (P2)
	Spread                      // the server's zone has its part of the queues (P14)
	Balance                     // the server has its share of the queues (P2), or the servers become more even (P14)
	Totals                      // the shares are as even, and the totals of the processes are to be (P15)
	Idle                        // a server that is new or has no queue lacks its part of the load (P16)
	Load                        // the loads of the servers become more even (P16)
)

// ruleTexts has the name of each rule and why it moves a queue away from its owner.
var ruleTexts = [...]struct{ name, move string }{
	Stays:           {"", ""},
	Removed:         {"removed", "it waits for a change"},
	Unowned:         {"owner", "it has no live owner"},
	Ineligible:      {"state", "its owner is paused, drains or leaves"},
	Require:         {"require", "its owner lacks a label of require"},
	Pin:             {"pin", "its owner lacks a label of its pin"},
	Hung:            {"hung", "a call of it hangs in the process of its owner"},
	Standby:         {"standby", "its owner stands by"},
	QueuesPerServer: {"max_queues_per_server", "its owner has more than max_queues_per_server"},
	Prefer:          {"prefer", "its owner lacks a label of prefer"},
	Weight:          {"weight", "its owner has weight 0"},
	Spread:          {"spread", "the zone of its owner has more than its part"},
	Balance:         {"balance", "its owner has more than its share"},
	Totals:          {"totals", "the totals of the processes over all task types are to be equal"},
	Idle:            {"idle", "a worker that is new or idle lacks its part of the load"},
	Load:            {"load", "its owner has more than its part of the load"},
}

// String returns the name of the rule, which is that of its setting if it has one. It is "" for Stays.
func (r Rule) String() string { return ruleTexts[r].name }

// reason says why the rule moves a queue away from its owner.
func (r Rule) reason(limits Limits) string {
	if r == Standby {
		return ruleTexts[r].move + " (" + strings.Join(limits.ofServers(), ", ") + ")"
	}
	return ruleTexts[r].move
}

// Waiting is why no server gets a queue.
type Waiting struct {
	Rule Rule
	Text string // the rule with its value, such as "pin: host=web1"
}

// ruleOf returns the first rule in rank that breaks if the queue stays with one server and does not go to the other.
func (p *planning) ruleOf(q *Queue, from, to int) Rule {
	if rule := p.forbids(q, from); rule != Stays {
		return rule
	}
	switch most := p.limits.QueuesPerServer; {
	case most > 0 && p.measure.size(from) >= most:
		return QueuesPerServer
	case p.weights[from] > 0 || p.weights[to] == 0:
		return p.measure.rule(from, to)
	case p.preferred && !p.limits.Prefer.Matches(p.servers[from]):
		return Prefer
	}
	return Weight
}

// Forbids returns the first rule in rank by which a server must not have the queue, whatever the others are, or Stays.
func (l Limits) Forbids(q *Queue, s Server) Rule {
	switch {
	case !s.Eligible:
		return Ineligible
	case !l.Require.Matches(s):
		return Require
	case !q.Pin.Matches(s):
		return Pin
	case slices.Contains(s.HungQueues, q.ID):
		return Hung
	}
	return Stays
}

// forbids does what [Limits.Forbids] does, and knows which servers stand by.
func (p *planning) forbids(q *Queue, s int) Rule {
	if rule := p.limits.Forbids(q, p.servers[s]); rule != Stays || s < len(p.weights) {
		return rule
	}
	return Standby
}

// waitsFor returns the rule that keeps a queue without an owner: of the rules that forbid it to the servers, the last
// in rank, because that server comes nearest to getting it. A server that no rule forbids it has no room.
func (p *planning) waitsFor(q *Queue) Waiting {
	if len(p.servers) == 0 {
		return Waiting{Ineligible, "there is no worker"}
	}
	rule := Ineligible
	for s := range p.servers {
		forbids := p.forbids(q, s)
		if forbids == Stays {
			forbids = QueuesPerServer
		}
		rule = max(rule, forbids)
	}
	return Waiting{rule, p.limits.value(rule, q.Pin)}
}

// WaitsForHung is the Text of a Waiting whose Rule is Hung.
const WaitsForHung = "calls of former sessions hang"

// value returns a rule for which a queue may wait, with the values of the settings that it stands for. It is "" for the
// other rules.
func (l Limits) value(rule Rule, pin Selector) string {
	switch rule {
	case Ineligible:
		return "no worker may own queues"
	case Hung:
		return WaitsForHung
	case Standby:
		list := l.ofServers()
		if !pin.all() {
			list = append(list, "pin: "+pin.String())
		}
		return strings.Join(list, ", ")
	case QueuesPerServer:
		return fmt.Sprintf("%s: %d", rule, l.QueuesPerServer)
	case Require:
		return fmt.Sprintf("%s: %s", rule, l.Require)
	case Pin:
		return fmt.Sprintf("%s: %s", rule, pin)
	}
	return ""
}

// ofServers names the limits by which servers stand by (P10, P12).
func (l Limits) ofServers() (list []string) {
	for _, limit := range []struct {
		name string
		n    int
	}{{"max_servers", l.Servers}, {"max_servers_per_host", l.ServersPerHost}, {"max_in_flight", l.InFlight}} {
		if limit.n > 0 {
			list = append(list, fmt.Sprintf("%s: %d", limit.name, limit.n))
		}
	}
	return list
}
