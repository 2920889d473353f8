package plan

import (
	"iter"
	"slices"
)

// ranking keeps the servers in the order in which they should get rows, so that the next one is found without a look at
// thousands for each row. What a server of one zone should get depends on what the whole zone has: if a zone gets a
// row, all of its servers rank lower among the servers of other zones, but not among each other. So there is a list for
// each kind of servers, such as a zone, and a change moves one server in one list. Heaps would do, too. With 10,000
// servers of one kind they are hardly faster than a sorted list, in which moving a server copies 80 KB at most, and a
// list can also be read on from its first server.
type ranking struct {
	kinds   [][]int // the servers of each kind, in order
	kindOf  []int   // of the servers
	compare func(s, t int) int
}

// newRanking ranks servers by compare, which must depend on nothing but the two servers if they are of one kind.
func newRanking[K comparable](servers int, kind func(s int) K, compare func(s, t int) int) *ranking {
	r := &ranking{kindOf: make([]int, servers), compare: compare}
	numbers := map[K]int{}
	for s := range servers {
		k, there := numbers[kind(s)]
		if !there {
			k = len(r.kinds)
			numbers[kind(s)] = k
			r.kinds = append(r.kinds, nil)
		}
		r.kindOf[s], r.kinds[k] = k, append(r.kinds[k], s)
	}
	for _, list := range r.kinds {
		slices.SortFunc(list, compare)
	}
	return r
}

// change changes what a server has, and then its place.
func (r *ranking) change(s int, change func()) {
	list := r.kinds[r.kindOf[s]]
	was, _ := slices.BinarySearchFunc(list, s, r.compare)
	change()
	if next := was + 1; next < len(list) && r.compare(list[next], s) < 0 {
		after, _ := slices.BinarySearchFunc(list[next:], s, r.compare)
		copy(list[was:], list[next:next+after])
		list[was+after] = s
	} else {
		before, _ := slices.BinarySearchFunc(list[:was], s, r.compare)
		copy(list[before+1:], list[before:was])
		list[before] = s
	}
}

// first yields the servers that can be the first for a row of the group: of each kind, the first one that may get the
// row. It leaves out the server without. If few servers may get the row, such as one of 10,000, it yields each of
// these, because it might have to pass all others in the lists.
func (r *ranking) first(g *group, without int) iter.Seq[int] {
	return func(yield func(s int) bool) {
		kinds := r.kinds
		if len(g.servers)*len(g.servers) < len(r.kindOf) {
			kinds = slices.Collect(slices.Chunk(g.servers, 1))
		}
		for _, list := range kinds {
			i := slices.IndexFunc(list, func(s int) bool { return s != without && !g.bars(s) })
			if i >= 0 && !yield(list[i]) {
				return
			}
		}
	}
}
