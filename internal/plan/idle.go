package plan

import (
	"cmp"
	"container/heap"
)

// idle finds the idlest server for a row without looking at all of them: there are thousands, and each row needs one.
// It keeps the servers that have the same weight and zone in a heap.
type idle struct {
	b      *loadBalancing
	groups []*idleGroup
	of     []*idleGroup // of the servers
	at     []int        // of the servers: the position in the heap of the group
}

// idleGroup is a heap of servers. Servers with room come first. Among these the load decides, then the number of rows,
// then what the process has elsewhere, and then the age.
type idleGroup struct {
	*idle
	weight, zone int
	servers      []int
}

func newIdle(b *loadBalancing) *idle {
	n := len(b.weights)
	d := &idle{b: b, of: make([]*idleGroup, n), at: make([]int, n)}
	type key struct{ weight, zone int }
	groups := map[key]*idleGroup{}
	for s, weight := range b.weights {
		k := key{weight, b.zoneOf(s)}
		if groups[k] == nil {
			groups[k] = &idleGroup{idle: d, weight: k.weight, zone: k.zone}
			d.groups = append(d.groups, groups[k])
		}
		d.of[s], d.at[s] = groups[k], len(groups[k].servers)
		groups[k].servers = append(groups[k].servers, s)
	}
	for _, g := range d.groups {
		heap.Init(g)
	}
	return d
}

// changed takes note of another load of a server.
func (d *idle) changed(s int) { heap.Fix(d.of[s], d.at[s]) }

// forRow returns the server with room that will have the least load for its weight if it gets the row, or -1. It leaves
// out the row's own server, servers that are barred from the row, and groups for which among is false.
func (d *idle) forRow(row int, among func(g *idleGroup) bool) int {
	barred := d.b.barred[row]
	least := -1
	for _, g := range d.groups {
		if !among(g) {
			continue
		}
		if s := g.first(d.b.at[row], barred); s >= 0 && (least < 0 || d.compareAfter(row, s, least) < 0) {
			least = s
		}
	}
	return least
}

func (d *idle) compareAfter(row, s, t int) int {
	b, ws, wt := d.b, max(1, d.b.weights[s]), max(1, d.b.weights[t])
	return cmp.Or(
		cmp.Compare((b.sums[s]+b.load[row])*float64(wt), (b.sums[t]+b.load[row])*float64(ws)),
		cmp.Compare(b.count[s]*wt, b.count[t]*ws),
		cmp.Compare(b.servers[s].Elsewhere*wt, b.servers[t].Elsewhere*ws),
		s-t)
}

// first returns the first server with room that is neither barred nor the excluded one, or -1.
func (g *idleGroup) first(without int, barred []bool) int {
	excluded := func(s int) bool { return s == without || barred != nil && barred[s] }
	s := g.firstBelow(0, excluded)
	if s < 0 || !g.b.hasRoom(s) {
		return -1
	}
	return s
}

// firstBelow returns the first server at or below a position of the heap that is not excluded, or -1. It looks no
// further than it must.
func (g *idleGroup) firstBelow(at int, excluded func(s int) bool) int {
	if at >= len(g.servers) {
		return -1
	}
	if s := g.servers[at]; !excluded(s) {
		return s
	}
	left, right := g.firstBelow(2*at+1, excluded), g.firstBelow(2*at+2, excluded)
	if left < 0 || right >= 0 && g.compare(right, left) < 0 {
		return right
	}
	return left
}

func (g *idleGroup) compare(s, t int) int {
	b := g.b
	return cmp.Or(compareTrue(b.hasRoom(s), b.hasRoom(t)), cmp.Compare(b.sums[s], b.sums[t]),
		b.count[s]-b.count[t], b.servers[s].Elsewhere-b.servers[t].Elsewhere, s-t)
}

// Len implements heap.Interface.
func (g *idleGroup) Len() int { return len(g.servers) }

// Less implements heap.Interface.
func (g *idleGroup) Less(i, j int) bool { return g.compare(g.servers[i], g.servers[j]) < 0 }

// Swap implements heap.Interface.
func (g *idleGroup) Swap(i, j int) {
	g.servers[i], g.servers[j] = g.servers[j], g.servers[i]
	g.at[g.servers[i]], g.at[g.servers[j]] = i, j
}

// Push implements heap.Interface. The servers of a group stay the same.
func (g *idleGroup) Push(any) {}

// Pop implements heap.Interface.
func (g *idleGroup) Pop() any { return nil }
