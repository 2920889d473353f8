package plan

import (
	"cmp"
	"slices"
	"sort"
)

// findParts sets the parts of a server with the weight 1. A queue that is larger than the part of the heaviest server
// that is left fills it, and neither counts any more for the least part. The rows are sorted by load.
func (b *loadBalancing) findParts(rows []int) {
	if len(rows) == 0 || b.weight == 0 {
		return
	}
	var rest float64
	for _, load := range b.load {
		rest += load
	}
	weights := slices.SortedFunc(slices.Values(b.weights), func(a, b int) int { return b - a })
	weight := b.weight
	b.fair = rest / float64(weight)
	largest := b.load[rows[0]] / float64(weights[0])
	for i, row := range rows {
		if weight == 0 || b.load[row]*float64(weight) <= rest*float64(weights[i])*(1+1e-9) {
			break
		}
		rest -= b.load[row]
		weight -= weights[i]
	}
	if weight > 0 {
		b.least = rest / float64(weight)
	}
	b.level = max(b.fair, min(largest, mostLevel*b.least))
}

// tooLarge returns the queues that are larger than the part of the heaviest server by more than Start, by load.
func (b *loadBalancing) tooLarge() (ids []string) {
	if len(b.weights) == 0 {
		return nil
	}
	most := max(leastBusy, b.fair*float64(slices.Max(b.weights))) * (1 + b.limits.Loads.Start)
	for _, row := range b.sortedRows() {
		if b.load[row] <= most {
			break
		}
		ids = append(ids, b.rows[row].ID)
	}
	return ids
}

// excess returns how much load a server has beyond its part, or beyond the largest of its queues if that is more.
func (b *loadBalancing) excess(s int, more float64) float64 {
	most := max(leastBusy, b.level*float64(b.weights[s]))
	if len(b.mine[s]) > 0 {
		most = max(most, b.load[b.mine[s][0]])
	}
	return b.sums[s] - most*(1+more)
}

// enough returns the load from which on a server does not lack any.
func (b *loadBalancing) enough(s int) float64 {
	return b.least * float64(b.weights[s]) * (1 - b.limits.Loads.Stop)
}

// compareRatio compares the loads of two servers for their weights.
func (b *loadBalancing) compareRatio(s, t int) int {
	return cmp.Compare(b.sums[s]*float64(b.weights[t]), b.sums[t]*float64(b.weights[s]))
}

// uneven reports whether a server has more than Start allows.
func (b *loadBalancing) uneven() bool {
	for s, w := range b.weights {
		if w > 0 && b.excess(s, b.limits.Loads.Start) > 0 {
			return true
		}
	}
	return false
}

// incomplete reports whether the loads of some queues are known, and those of over a tenth are not: owners that have
// just started are measuring them.
func (b *loadBalancing) incomplete() bool { return b.measured > 0 && b.measured*10 < b.owned*9 }

// even moves rows until all servers are within Stop, if one that is beyond Start can be relieved. A server that is
// beyond Start and cannot be is no reason to move rows of the others.
func (b *loadBalancing) even() {
	if b.incomplete() {
		return
	}
	stuck := make([]bool, len(b.weights)) // busy servers none of whose rows can go anywhere
	for bound := b.limits.Loads.Start; b.budget != 0 && b.relieve(stuck, bound); bound = b.limits.Loads.Stop {
		b.budget--
	}
}

// relieve takes a row from the busiest server that has so much more than its part, if one can go to another server.
func (b *loadBalancing) relieve(stuck []bool, more float64) bool {
	for {
		from := -1
		for s, w := range b.weights {
			if w > 0 && !stuck[s] && b.excess(s, more) > 0 && (from < 0 || b.compareRatio(s, from) > 0) {
				from = s
			}
		}
		if from < 0 {
			return false
		}
		if row, to := b.chooseFrom(from); row >= 0 {
			b.put(row, to)
			clear(stuck)
			return true
		}
		stuck[from] = true
	}
}

// chooseFrom returns the row of a server that should go, and where to, or -1. It prefers the smallest row that is
// enough, and then the largest of the others. At last it takes a row that helps although the other server gets beyond
// its bound.
func (b *loadBalancing) chooseFrom(from int) (row, to int) {
	mine, excess := b.mine[from], b.excess(from, b.limits.Loads.Stop)
	enough := sort.Search(len(mine), func(i int) bool { return b.load[mine[i]] < excess })
	for _, fits := range []bool{true, false} {
		for _, i := range slices.Backward(mine[:enough]) {
			if s := b.helped(i, fits); s >= 0 {
				return i, s
			}
		}
		for _, i := range mine[enough:] {
			if s := b.helped(i, fits); s >= 0 {
				return i, s
			}
		}
	}
	return -1, -1
}

// helped returns the idlest server to which a row may go, or -1: it stays within its bound, or is at least by leastGain
// less busy than the row's server was.
func (b *loadBalancing) helped(row int, fits bool) int {
	from := b.at[row]
	to := b.idle.idlest(row, func(g *idleGroup) bool { return g.weight > 0 && b.zoneOpen(row, g.zone) })
	if to < 0 {
		return -1
	}
	after := b.sums[to] + b.load[row]
	if fits && after <= b.level*float64(b.weights[to])*(1+b.limits.Loads.Stop) ||
		!fits && after*float64(b.weights[from]) <= b.sums[from]*float64(b.weights[to])*(1-leastGain) {
		return to
	}
	return -1
}
