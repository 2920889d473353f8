package plan

import (
	"container/heap"
	"sort"
)

// fill gives rows to the servers with a weight that have none or are new, until they have all but Stop of their part.
// Suppose that two servers have a load of 6 each, in rows of 1, and a third one joins. The parts are 4, so that it gets
// rows until it has 3.4 or more: one from the busiest server after the other, which makes four rows, two of each.
//
// fill looks at each server that can give once, as far as it can: thousands may join at once.
func (b *loadBalancing) fill() {
	busy := newGivers(b, func(s int) bool { // it still has enough without its smallest row
		n := len(b.mine[s])
		return n > 0 && b.sums[s]-b.load[b.mine[s][n-1]] >= b.enough(s)
	})
	others := newGivers(b, func(s int) bool { return len(b.mine[s]) > 1 })
	largest := func(from, to int) int { return b.firstThatHelps(b.mine[from], from, to) }
	for to, weight := range b.weights {
		if weight == 0 || len(b.mine[to]) > 0 && !b.servers[to].New {
			continue
		}
		// A server without any row gets one, though the server that gives it may have less than enough then.
		empty := len(b.mine[to]) == 0 && b.enough(to) > 0
		if empty && !busy.give(to, b.surplusRow) && !others.give(to, largest) {
			continue
		}
		for gave := true; gave && b.sums[to] < b.enough(to); {
			gave = busy.give(to, b.surplusRow)
		}
	}
}

// enough returns the load from which on a server does not lack any.
func (b *loadBalancing) enough(s int) float64 {
	return b.least * float64(b.weights[s]) * (1 - b.limits.Loads.Stop)
}

// surplusRow returns the largest row without which one server still has enough, and which helps another one.
func (b *loadBalancing) surplusRow(from, to int) int {
	mine := b.mine[from]
	small := sort.Search(len(mine), func(i int) bool { return b.sums[from]-b.load[mine[i]] >= b.enough(from) })
	return b.firstThatHelps(mine[small:], from, to)
}

// firstThatHelps returns the first of these rows with which the one server does not become as busy as the other was.
func (b *loadBalancing) firstThatHelps(rows []int, from, to int) int {
	may := func(row int) bool { return b.hasRoom(to) && b.zoneOpen(row, b.zoneOf(to)) && !b.bars(row, to) }
	for _, row := range rows {
		after := (b.sums[to] + b.load[row]) * float64(b.weights[from])
		if after < b.sums[from]*float64(b.weights[to]) && may(row) {
			return row
		}
	}
	return none
}

// givers are servers that may give rows: a heap with the busiest first. The loads of servers change while they are in
// it, and are noted anew when a server comes first.
type givers struct {
	b    *loadBalancing
	may  func(s int) bool
	list []giver
}

type giver struct {
	server int
	load   float64 // when it was noted
}

func newGivers(b *loadBalancing, may func(s int) bool) *givers {
	g := &givers{b: b, may: may}
	for s, weight := range b.weights {
		if weight > 0 && may(s) {
			g.list = append(g.list, giver{s, b.sums[s]})
		}
	}
	heap.Init(g)
	return g
}

// next removes the busiest server and returns it.
func (g *givers) next() int {
	for len(g.list) > 0 {
		s, _ := heap.Pop(g).(giver)
		switch {
		case !g.may(s.server): // for good: no server gets rows and gives some
		case s.load != g.b.sums[s.server]:
			heap.Push(g, giver{s.server, g.b.sums[s.server]})
		default:
			return s.server
		}
	}
	return none
}

// give gives a server the row that choose returns for the busiest server that has one. It reports whether there was
// one.
func (g *givers) give(to int, choose func(from, to int) int) (gave bool) {
	var taken []int // from the heap
	for !gave {
		from := g.next()
		if from == none {
			break
		}
		taken = append(taken, from)
		if row := choose(from, to); row != none && from != to {
			g.b.put(row, to)
			gave = true
		}
	}
	for _, s := range taken {
		heap.Push(g, giver{s, g.b.sums[s]})
	}
	return gave
}

// Len implements heap.Interface.
func (g *givers) Len() int { return len(g.list) }

// Less implements heap.Interface.
func (g *givers) Less(i, j int) bool {
	s, t := g.list[i], g.list[j]
	a, b := s.load*float64(g.b.weights[t.server]), t.load*float64(g.b.weights[s.server])
	return a > b || a == b && s.server < t.server
}

// Swap implements heap.Interface.
func (g *givers) Swap(i, j int) { g.list[i], g.list[j] = g.list[j], g.list[i] }

// Push implements heap.Interface.
func (g *givers) Push(x any) { g.list = append(g.list, x.(giver)) } //nolint:forcetypeassert // heap passes on what it gets

// Pop implements heap.Interface.
func (g *givers) Pop() any {
	last := g.list[len(g.list)-1]
	g.list = g.list[:len(g.list)-1]
	return last
}
