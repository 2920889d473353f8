package plan

import (
	"slices"
	"sort"
)

// fill gives rows to the servers with a weight that have none or are new, until they have all but Stop of their part.
// Suppose that two servers have a load of 6 each, in rows of 1, and a third one joins. The parts are 4, so that it gets
// rows until it has 3.4 or more: one from the busiest server after the other, which makes four rows, two of each.
func (b *loadBalancing) fill() {
	for to, weight := range b.weights {
		if weight == 0 || len(b.mine[to]) > 0 && !b.servers[to].New {
			continue
		}
		// A server without any row gets one, though the server that gives it may have less than enough then.
		empty := len(b.mine[to]) == 0 && b.enough(to) > 0
		if empty && !b.giveTo(to, b.spareRow) && !b.giveTo(to, b.anyRow) {
			continue
		}
		for b.sums[to] < b.enough(to) && b.giveTo(to, b.spareRow) {
			continue
		}
	}
}

// enough returns the load from which on a server does not lack any.
func (b *loadBalancing) enough(s int) float64 {
	return b.least * float64(b.weights[s]) * (1 - b.limits.Loads.Stop)
}

// giveTo gives a server the row that choose returns for the busiest server that has one. It reports whether there was
// one.
func (b *loadBalancing) giveTo(to int, choose func(from, to int) int) bool {
	for _, from := range b.givers.kinds[0] {
		if from != to && b.weights[from] > 0 {
			if row := choose(from, to); row != none {
				b.put(row, to)
				return true
			}
		}
	}
	return false
}

// spareRow returns the largest row without which one server still has enough, and which helps another one.
func (b *loadBalancing) spareRow(from, to int) int {
	mine := b.mine[from]
	small := sort.Search(len(mine), func(i int) bool { return b.sums[from]-b.load[mine[i]] >= b.enough(from) })
	return b.firstThatHelps(mine[small:], from, to)
}

// anyRow returns the largest row of a server with several that helps another one.
func (b *loadBalancing) anyRow(from, to int) int {
	if len(b.mine[from]) < 2 {
		return none
	}
	return b.firstThatHelps(b.mine[from], from, to)
}

// firstThatHelps returns the first of these rows with which the one server does not become as busy as the other was.
func (b *loadBalancing) firstThatHelps(rows []int, from, to int) int {
	for _, row := range rows {
		if b.busy(to, from, b.load[row]) < b.busy(from, to, 0) && b.hasRoom(to) && b.open(row, to) && b.mayGet(row, to) {
			return row
		}
	}
	return none
}

// even moves rows until no server has more than Stop beyond its part, if one that has more than Start can give a row
// away. Suppose that the part of each of three servers is 4, and that they have 6, 4.6 and 1.4. The first one is 50
// percent beyond its part, and gives rows away until it has 15 percent: at most 4.6. The second one is within Stop and
// gives none.
//
// A server beyond Start that can give no row to any other is no reason to move the rows of the others.
func (b *loadBalancing) even() {
	if b.incomplete || len(b.has) == 0 {
		return
	}
	for bound := b.limits.Loads.Start; b.budget != 0 && b.relieve(bound); bound = b.limits.Loads.Stop {
		b.budget--
	}
}

// relieve takes a row from the busiest server that has so much more than its part, if one can go to another server.
func (b *loadBalancing) relieve(more float64) bool {
	for _, from := range b.givers.kinds[0] {
		if b.weights[from] > 0 && b.excess(from, more) > 0 {
			if row, to := b.chooseFrom(from); row != none {
				b.put(row, to)
				return true
			}
		}
	}
	return false
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
	to := b.idlest(row, func(s int) bool { return b.open(row, s) })
	if to == none {
		return none
	}
	helps := b.busy(to, from, b.load[row]) <= b.busy(from, to, 0)*(1-leastGain)
	if fits {
		helps = b.sums[to]+b.load[row] <= b.level*float64(b.weights[to])*(1+b.limits.Loads.Stop)
	}
	if helps {
		return to
	}
	return none
}
