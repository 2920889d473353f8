package plan

import (
	"slices"
	"sort"
)

// fill gives rows to the servers with a weight that have none or are new, until they have all but Stop of their part.
// Suppose that two servers have a load of 6 each, in rows of 1, and a third one joins. The parts are 4, so that it gets
// rows until it has 3.4 or more. Each row comes from the busiest server, so that both give two of the four rows.
func (b *loadBalancing) fill() {
	for to, weight := range b.weights {
		if weight == 0 || len(b.mine[to]) > 0 && !b.servers[to].New {
			continue
		}
		f := filling{b, to}
		// A server without any row gets one, though the server that gives it may have less than enough then.
		empty := len(b.mine[to]) == 0 && f.enough(to) > 0
		if empty && !f.take(f.surplusRow) && !f.take(f.anyRow) {
			continue
		}
		for b.sums[to] < f.enough(to) && f.take(f.surplusRow) {
			continue
		}
	}
}

// filling gives rows to one server that joins.
type filling struct {
	b  *loadBalancing
	to int
}

// enough returns the least load with which a server does not lack any: its part less Stop.
func (f filling) enough(s int) float64 {
	return f.b.least * float64(f.b.weights[s]) * (1 - f.b.limits.Loads.Stop)
}

// take takes the row that choose returns for the busiest server that has one. It reports whether there was one.
func (f filling) take(choose func(from int) int) bool {
	for _, from := range f.b.givers.kinds[0] {
		if from != f.to && f.b.weights[from] > 0 {
			if row := choose(from); row != none {
				f.b.put(row, f.to)
				return true
			}
		}
	}
	return false
}

// surplusRow returns the largest row that helps, and without which the server that gives it still has enough.
func (f filling) surplusRow(from int) int {
	mine, sum := f.b.mine[from], f.b.sums[from]
	small := sort.Search(len(mine), func(i int) bool { return sum-f.b.load[mine[i]] >= f.enough(from) })
	return f.firstThatHelps(mine[small:], from)
}

// anyRow returns the largest row that helps of a server that has several.
func (f filling) anyRow(from int) int {
	if len(f.b.mine[from]) < 2 {
		return none
	}
	return f.firstThatHelps(f.b.mine[from], from)
}

// firstThatHelps returns the first of these rows with which the server stays less busy than the other one was.
func (f filling) firstThatHelps(rows []int, from int) int {
	b, to := f.b, f.to
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
		if r := (relief{b, from}); b.weights[from] > 0 && r.excess(more) > 0 {
			if row, to := r.choose(); row != none {
				b.put(row, to)
				return true
			}
		}
	}
	return false
}

// relief takes a row from one server that has too much.
type relief struct {
	b    *loadBalancing
	from int
}

// excess returns how much load the server has beyond its part, or beyond the largest of its queues if that is more.
func (r relief) excess(more float64) float64 {
	b, mine := r.b, r.b.mine[r.from]
	most := max(leastBusy, b.level*float64(b.weights[r.from]))
	if len(mine) > 0 {
		most = max(most, b.load[mine[0]])
	}
	return b.sums[r.from] - most*(1+more)
}

// choose returns the row of the server that should go, and where to. It prefers the smallest row that is enough, and
// then the largest of the others. At last it takes a row that helps although the other server gets beyond its bound.
func (r relief) choose() (row, to int) {
	mine, excess := r.b.mine[r.from], r.excess(r.b.limits.Loads.Stop)
	enough := sort.Search(len(mine), func(i int) bool { return r.b.load[mine[i]] < excess })
	best := slices.Clone(mine)
	slices.Reverse(best[:enough])
	for _, fits := range []bool{true, false} {
		for _, row := range best {
			if to := r.helped(row, fits); to != none {
				return row, to
			}
		}
	}
	return none, none
}

// helped returns the idlest server to which a row may go, or none if the move does not help. With fits, it helps if
// that server stays within its bound. Otherwise it helps if that server becomes less busy than the row's server was, by
// leastGain.
func (r relief) helped(row int, fits bool) int {
	b := r.b
	to := b.idlest(row, func(s int) bool { return b.open(row, s) })
	if to == none {
		return none
	}
	helps := b.busy(to, r.from, b.load[row]) <= b.busy(r.from, to, 0)*(1-leastGain)
	if fits {
		helps = b.sums[to]+b.load[row] <= b.level*float64(b.weights[to])*(1+b.limits.Loads.Stop)
	}
	if helps {
		return to
	}
	return none
}
