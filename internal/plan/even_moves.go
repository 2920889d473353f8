package plan

import "slices"

// saving looks for moves that the evenness does not need. Suppose that A has got a row of B, and B one of A: both rows
// can go back, and each server has as many as before. Or A has given a row to B and has three rows, and B has four: A
// may as well have the four. So it looks for a cycle in which each server gives a row to the next one, or for a chain
// from a server to one that may as well have the number of the first, and prefers those that bring rows back to their
// owners. It is the search of Bellman and Ford for a cycle of negative costs: a row that comes to a server costs a
// move, unless the server owns it, and one that goes saves the move if the server does not own it.
type saving struct {
	*evening
	dist []int  // of the nodes: the servers, then the groups, then the standings
	pred []edge // of the nodes: how it was reached

	givers [][]int // of the standings: the servers that can give a row
	takes  []int   // of the servers: the standing in which it can take a row; -1 for none

	queue  []int
	queued []bool
}

// edge is how a node was reached: from which node, and if one of the two is a server and the other a group, the
// server's place.
type edge struct{ from, at int }

// standing is what a server has after it took a row, or before it gave one. Suppose that A has three rows and B two,
// with the same weight in the same zone. A before it gives one and B after it took one have the same standing: three
// rows. So the two may swap their numbers, and the sum of the squares, the zones and the servers that are rounded up
// first stay as they are.
type standing struct {
	zone          int
	weightless    bool
	up            bool
	rows, divisor int
}

// saveMove undoes moves that the evenness does not need. It reports whether there were some.
func (e *evening) saveMove() bool {
	if !e.displaces() {
		return false
	}
	v := newSaving(e)
	at := v.findCycle()
	if at < 0 {
		return false
	}
	servers := len(e.total)
	for node, first := at, true; first || node != at; first = false {
		before := v.pred[node]
		switch {
		case node >= servers && node < servers+len(e.groups):
			e.give(e.groups[node-servers], before.at, -1)
		case node < servers && before.from < servers+len(e.groups):
			e.give(e.groups[before.from-servers], before.at, 1)
		}
		node = before.from
	}
	return true
}

// saveOne undoes the move of one row with which the servers are no more even than without it. saveMove finds such a
// move only between servers of one zone, of which both are rounded up first or neither: with more than one row, the
// sums of two zones do not add up.
func (e *evening) saveOne() bool {
	for _, g := range e.groups {
		for k, from := range g.servers {
			if g.n[k] >= g.own[k] || !e.hasRoom(from) {
				continue
			}
			for l, to := range g.servers {
				chosen := e.servers[to].RoundedUp && !e.servers[from].RoundedUp
				if g.n[l] > g.own[l] && !chosen && e.gain(to, from) == 0 {
					e.give(g, l, -1)
					e.give(g, k, 1)
					return true
				}
			}
		}
	}
	return false
}

// displaces reports whether a server owns a row that it does not keep. Without one, no move can be saved.
func (e *evening) displaces() bool {
	return slices.ContainsFunc(e.groups, func(g *groupShare) bool {
		for k, n := range g.n {
			if n < g.own[k] {
				return true
			}
		}
		return false
	})
}

func newSaving(e *evening) *saving {
	v := &saving{evening: e, takes: make([]int, len(e.total))}
	numbers := map[standing]int{}
	for s, n := range e.total {
		if n > 0 {
			l := e.standing(s, 2*n-1)
			if _, there := numbers[l]; !there {
				numbers[l] = len(v.givers)
				v.givers = append(v.givers, nil)
			}
			v.givers[numbers[l]] = append(v.givers[numbers[l]], s)
		}
	}
	for s, n := range e.total {
		v.takes[s] = -1
		if number, there := numbers[e.standing(s, 2*n+1)]; there && e.hasRoom(s) {
			v.takes[s] = number
		}
	}
	nodes := len(e.total) + len(e.groups) + len(v.givers)
	v.dist, v.pred, v.queued = make([]int, nodes), make([]edge, nodes), make([]bool, nodes)
	for node := range nodes {
		v.pred[node].from = -1
		v.push(node)
	}
	return v
}

// standing returns the standing of a server whose part of the sum changes by so much for its weight.
func (e *evening) standing(s, change int) standing {
	divisor := max(1, e.weights[s])
	for a, b := change, divisor; ; a, b = b, a%b {
		if b == 0 {
			return standing{e.zoneOf(s), e.weights[s] == 0, e.servers[s].RoundedUp, change / a, divisor / a}
		}
	}
}

func (v *saving) push(node int) {
	if !v.queued[node] {
		v.queued[node] = true
		v.queue = append(v.queue, node)
	}
}

// findCycle returns a node of a cycle with negative costs, or -1. It looks for a cycle each time that it has gone
// through as many nodes as there are: the costs become smaller without end along such a cycle, and only there.
func (v *saving) findCycle() int {
	for i := 0; i < len(v.queue); i++ {
		node := v.queue[i]
		v.queued[node] = false
		v.relax(node)
		if (i+1)%len(v.dist) == 0 {
			if at := v.cycleOfPred(); at >= 0 {
				return at
			}
		}
	}
	return -1
}

// relax looks whether nodes are reached at less cost by way of this one.
func (v *saving) relax(node int) {
	servers, groups := len(v.total), len(v.groups)
	switch {
	case node < servers:
		for _, slot := range v.slots[node] {
			if n := slot.group.n[slot.at]; n > slot.group.own[slot.at] {
				v.reached(servers+slot.group.number, node, slot.at, -1)
			} else if n > 0 {
				v.reached(servers+slot.group.number, node, slot.at, 0)
			}
		}
		if l := v.takes[node]; l >= 0 {
			v.reached(servers+groups+l, node, 0, 0)
		}
	case node < servers+groups:
		g := v.groups[node-servers]
		for k, s := range g.servers {
			if g.n[k] < g.own[k] {
				v.reached(s, node, k, 0)
			} else {
				v.reached(s, node, k, 1)
			}
		}
	default:
		for _, s := range v.givers[node-servers-groups] {
			v.reached(s, node, 0, 0)
		}
	}
}

func (v *saving) reached(node, from, at, cost int) {
	if dist := v.dist[from] + cost; dist < v.dist[node] {
		v.dist[node], v.pred[node] = dist, edge{from, at}
		v.push(node)
	}
}

// cycleOfPred returns a node of a cycle in the ways by which the nodes were reached, or -1.
func (v *saving) cycleOfPred() int {
	seen := make([]int, len(v.pred)) // by which walk
	for begin := range v.pred {
		node := begin
		for ; node >= 0 && seen[node] == 0; node = v.pred[node].from {
			seen[node] = begin + 1
		}
		if node >= 0 && seen[node] == begin+1 {
			return node
		}
	}
	return -1
}
