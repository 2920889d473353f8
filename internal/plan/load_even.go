package plan

import (
	"slices"
	"sort"
)

// even moves rows until no server has more than Stop beyond its part, if one that has more than Start can give a row
// away. Suppose that the part of each of three servers is 4, and that they have 6, 4.6 and 1.4. The first one is 50
// percent beyond its part, and gives rows away until it has 15 percent: at most 4.6. The second one is within Stop and
// gives none.
//
// A server beyond Start that can give no row to any other is no reason to move the rows of the others.
func (b *loadBalancing) even() {
	if b.incomplete {
		return
	}
	stuck := make([]bool, len(b.weights)) // the servers of which no row can go anywhere
	for bound := b.limits.Loads.Start; b.budget != 0 && b.relieve(stuck, bound); bound = b.limits.Loads.Stop {
		b.budget--
	}
}

// relieve takes a row from the busiest server that has so much more than its part, if one can go to another server.
func (b *loadBalancing) relieve(stuck []bool, more float64) bool {
	for {
		from := none
		for s, w := range b.weights {
			if w > 0 && !stuck[s] && b.excess(s, more) > 0 && (from == none || b.busier(s, from)) {
				from = s
			}
		}
		if from == none {
			return false
		}
		if row, to := b.chooseFrom(from); row != none {
			b.put(row, to)
			clear(stuck)
			return true
		}
		stuck[from] = true
	}
}

// busier reports whether a server has more load for its weight than another one.
func (b *loadBalancing) busier(s, t int) bool {
	return b.sums[s]*float64(b.weights[t]) > b.sums[t]*float64(b.weights[s])
}

// excess returns how much load a server has beyond its part, or beyond the largest of its queues if that is more.
func (b *loadBalancing) excess(s int, more float64) float64 {
	most := max(leastBusy, b.level*float64(b.weights[s]))
	if len(b.mine[s]) > 0 {
		most = max(most, b.load[b.mine[s][0]])
	}
	return b.sums[s] - most*(1+more)
}

// chooseFrom returns the row of a server that should go, and where to. It prefers the smallest row that is enough, and
// then the largest of the others. At last it takes a row that helps although the other server gets beyond its bound.
func (b *loadBalancing) chooseFrom(from int) (row, to int) {
	mine, excess := b.mine[from], b.excess(from, b.limits.Loads.Stop)
	enough := sort.Search(len(mine), func(i int) bool { return b.load[mine[i]] < excess })
	for _, fits := range []bool{true, false} {
		for _, i := range slices.Backward(mine[:enough]) {
			if s := b.helped(i, fits); s != none {
				return i, s
			}
		}
		for _, i := range mine[enough:] {
			if s := b.helped(i, fits); s != none {
				return i, s
			}
		}
	}
	return none, none
}

// helped returns the idlest server to which a row may go, if it stays within its bound, or is at least by leastGain
// less busy than the row's server was.
func (b *loadBalancing) helped(row int, fits bool) int {
	from := b.at[row]
	to := b.idlest.forRow(row, func(g *idleGroup) bool { return g.weight > 0 && b.zoneOpen(row, g.zone) })
	if to == none {
		return none
	}
	after := b.sums[to] + b.load[row]
	if fits && after <= b.level*float64(b.weights[to])*(1+b.limits.Loads.Stop) ||
		!fits && after*float64(b.weights[from]) <= b.sums[from]*float64(b.weights[to])*(1-leastGain) {
		return to
	}
	return none
}
