package plan

import "slices"

// standing is what a server has after it took a row, or before it gave one. Suppose that A has three rows and B two,
// with the same weight in the same zone. A before it gives one and B after it took one have the same standing: three
// rows. So the two may swap their numbers, and the sum of the squares and the zones stay as they are.
type standing struct {
	zone       int
	weightless bool
	change     fraction // of the sum
}

// saving looks for moves that the evenness does not need. Suppose that A has got a row of B, and B one of A: both rows
// can go back, and each server has as many as before. Or A has given a row to B and has three rows, and B has four: A
// may as well have the four. So it looks for a cycle in which each server gives a row to the next one, or for a chain
// from a server to another that may have the number of the first. It prefers cycles and chains that bring rows back to
// their owners. It is the search of Bellman and Ford for a cycle of negative costs. Its nodes are the servers, the
// groups and the standings.
type saving struct {
	steps []saveStep
	nodes int
}

// saveStep leads from a server to a group whose row it gives, from a group to a server that takes one, from a server to
// the standing that it would have with one row more, or from a standing to a server that has it and may give a row. A
// row that comes to a server costs a move, unless the server owns it. A row that goes saves a move if the server does
// not own it.
type saveStep struct {
	from, to, cost int
	slot           slot // of the server and the group
	rows           int  // that the server gets: 1 or -1
}

func newSaving(f *flow) *saving {
	v := &saving{nodes: len(f.has) + len(f.splits)}
	numbers := map[standing]int{}
	node := func(s int, change fraction) int {
		k := standing{f.zones[s], f.weights[s] == 0, change.reduced()}
		if _, there := numbers[k]; !there {
			numbers[k] = v.nodes
			v.nodes++
		}
		return numbers[k]
	}
	for s, has := range f.has {
		for _, slot := range f.slots[s] {
			if slot.at >= len(slot.servers) {
				continue // rows that must not come back, and that stay because no chain leads away from the server
			}
			group, n, own := len(f.has)+slot.number, slot.n[slot.at], slot.own[slot.at]
			takes, gives := saveStep{group, s, 1, slot, 1}, saveStep{s, group, 0, slot, -1}
			if n < own {
				takes.cost = 0
			} else if n > own {
				gives.cost = -1
			}
			if v.steps = append(v.steps, takes); n > 0 {
				v.steps = append(v.steps, gives)
			}
		}
		if f.hasRoom(s) {
			v.steps = append(v.steps, saveStep{from: s, to: node(s, has.takes())})
		}
		if has.queues > 0 {
			v.steps = append(v.steps, saveStep{from: node(s, has.gives()), to: s})
		}
	}
	return v
}

// cycle returns the steps of a cycle with negative costs, or none. It improves the best ways to the nodes until nothing
// becomes cheaper. Along such a cycle the costs would fall without end, so that after some time the best ways run in a
// circle, which is the cycle.
func (v *saving) cycle() (steps []saveStep) {
	cost, last := make([]int, v.nodes), make([]*saveStep, v.nodes) // of the best ways to the nodes
	for changed := true; changed; {
		changed = false
		for i := range v.steps {
			if s := &v.steps[i]; cost[s.from]+s.cost < cost[s.to] {
				cost[s.to], last[s.to], changed = cost[s.from]+s.cost, s, true
			}
		}
		seen := make([]int, v.nodes) // by which walk
		for node := range last {
			at := node
			for ; last[at] != nil && seen[at] == 0; at = last[at].from {
				seen[at] = node + 1
			}
			if last[at] == nil || seen[at] != node+1 {
				continue
			}
			for first := at; len(steps) == 0 || at != first; at = last[at].from {
				steps = append(steps, *last[at])
			}
			return steps
		}
	}
	return nil
}

// saveMove undoes moves that the evenness does not need. It reports whether there were some.
func (f *flow) saveMove() bool {
	if !f.displaces() {
		return false
	}
	steps := newSaving(f).cycle()
	for _, s := range steps {
		if s.rows != 0 {
			f.give(s.slot.split, s.slot.at, s.rows)
		}
	}
	return len(steps) > 0
}

// displaces reports whether a server owns a row that it may keep and does not. Without one, no move can be saved.
func (f *flow) displaces() bool {
	return slices.ContainsFunc(f.splits, func(g *split) bool {
		for k := range g.servers {
			if g.n[k] < g.own[k] {
				return true
			}
		}
		return false
	})
}

// saveOne undoes the move of one row with which the servers are no more even than without it. saveMove finds such a
// move only between two servers of one zone: with more than one row, the sums of two zones do not add up.
func (f *flow) saveOne() bool {
	for _, g := range f.splits {
		for k, from := range g.servers {
			if g.n[k] >= g.own[k] || !f.hasRoom(from) {
				continue
			}
			for l, to := range g.servers {
				if g.n[l] > g.own[l] && f.gain(to, from) == 0 {
					f.give(g, l, -1)
					f.give(g, k, 1)
					return true
				}
			}
		}
	}
	return false
}
