package plan

import (
	"cmp"
	"slices"
)

// flow computes the quotas of a roster in which some server must not get some row (P14). They do not follow from the
// weights alone then: of four rows that are pinned to zone a, its two servers should have two each, whatever the
// servers of other zones have.
//
// Suppose that A owns three rows that only A and B may get, B owns two rows that only B and C may get, and C owns none.
// A cannot give C a row. But B can take one of A's and give C one of its own: 3, 2 and 0 become 2, 2 and 1. Such a
// chain of moves is made if it makes the sum of the squares, each divided by the server's weight, smaller: here 13
// becomes 9. In the end flow undoes moves that the sum does not need: along a cycle of servers, which leaves each of
// them its number, or along a chain between two servers which may as well swap their numbers.
//
// This is the minimum cost flow with convex costs: when no chain and no cycle improves the result, it is the best one.
// Computed from nothing, such a flow takes seconds for 100,000 rows. So each server first keeps its own rows, each
// other row goes to the server with the least, and few chains are left to look for. They lead over groups of rows that
// the same servers may get, and not over rows: a search then looks at each server of a group once.
type flow struct {
	tally
	splits []*split
	slots  [][]slot // of the servers: the groups that they may get
	chains chains
}

// split is how many rows of a group each of its places gets.
type split struct {
	places
	number int   // of the group
	n, own []int // of the places: the rows that it gets, and the rows that it owns

	seen int // the last search for a chain that reached the group
	from int // in that search: the place of the server that gives a row of the group, -1 at the beginning of the chain
}

// slot is a group, and the place of a server in it.
type slot struct {
	*split
	at int
}

// flowQuotas returns the quotas of the groups.
func (p *planning) flowQuotas() []quota {
	f := newFlow(p.roster)
	f.even(f.relief)
	f.place()
	f.even(f.gain)
	for f.saveMove() || f.saveOne() {
		continue
	}
	if t := totalsOf(p.roster); t != nil && !f.displaces() {
		for f.evenTotals(t) {
			continue
		}
	}
	p.measure = f
	list := make([]quota, len(f.splits))
	for i, g := range f.splits {
		list[i] = quota{g.places, g.n}
	}
	return list
}

// newFlow returns a flow in which each row is with its owner.
func newFlow(r *roster) *flow {
	n := len(r.weights)
	f := &flow{tally: newTally(r), slots: make([][]slot, n)}
	f.chains = chains{flow: f, seen: make([]int, n), via: make([]slot, n)}
	for _, rows := range r.groups {
		g := &split{places: r.placesOf(rows), number: len(f.splits)}
		f.splits = append(f.splits, g)
		g.own = make([]int, len(g.servers)+len(g.unfit))
		for _, i := range g.rows {
			if owner := r.rows[i].owner; owner != none {
				g.own[g.place(owner)]++
			}
		}
		g.n = slices.Clone(g.own)
		for k, own := range g.own {
			if s := g.server(k); s < n {
				f.slots[s] = append(f.slots[s], slot{g, k})
				f.count(s, own)
			}
		}
	}
	f.rank()
	return f
}

// rule implements measure.
func (f *flow) rule(from, to int) Rule {
	switch {
	case f.zones[from] != f.zones[to] && f.weights[from] > 0 && f.zone(to).gives().compare(f.zone(from).takes()) != 0:
		return Spread
	case f.has[to].gives().compare(f.has[from].takes()) != 0:
		return Balance
	}
	return Totals
}

// place gives the rows that no server may keep to the servers that have the least for their weights, first the rows
// without an owner (P4). A row that no server has room for stays with its owner, and takes the room of another one
// (P7).
func (f *flow) place() {
	for _, g := range f.splits {
		for n := range g.ownerless {
			if !f.placeOne(g) {
				g.ownerless = n
				break
			}
		}
	}
	for _, g := range f.splits {
		for k := len(g.servers); k < len(g.n); k++ {
			for g.n[k] > 0 {
				f.give(g, k, -1)
				if !f.placeOne(g) {
					f.give(g, k, 1)
					break
				}
			}
		}
	}
}

// placeOne gives a row of the group to a server. If each one that may get it is full, another server takes a row of
// theirs.
func (f *flow) placeOne(g *split) bool {
	if s := f.next(g); s != none {
		f.give(g, g.index(s), 1)
		return true
	}
	return f.limits.QueuesPerServer > 0 && f.chains.makeRoom(g)
}

// give gives a server so many more rows of a group.
func (f *flow) give(g *split, k, n int) {
	g.n[k] += n
	if s := g.server(k); s < len(f.has) {
		f.change(s, func() { f.count(s, n) })
	}
}

// rank sorts the servers by what they have. Of those that are equal, the older one comes first.
func (f *flow) rank() {
	zone := func(s int) int { return f.zones[s] }
	f.takers = newRanking(len(f.has), zone, func(s, t int) int {
		return cmp.Or(f.compareTakers(s, t), s-t)
	})
	f.givers = newRanking(len(f.has), zone, func(s, t int) int {
		return cmp.Or(compareTrue(f.beyond(s) > 0, f.beyond(t) > 0), compareTrue(f.weights[s] == 0, f.weights[t] == 0),
			f.has[t].gives().compare(f.has[s].gives()), s-t)
	})
}

// next returns the server that should get the next row of the group, or none if no server has room.
func (f *flow) next(g *split) int {
	best := none
	for s := range f.takers.first(g.group, none) {
		if f.hasRoom(s) && (best == none || f.takers.compare(s, best) < 0) {
			best = s
		}
	}
	return best
}

// compareTakers puts the server first that should rather get a row: a server with room, and then the one with which the
// servers become more even, as gain says.
func (f *flow) compareTakers(s, t int) int {
	v, w := f.weights[s], f.weights[t]
	if c := cmp.Or(compareTrue(f.hasRoom(s), f.hasRoom(t)), compareTrue(v > 0, w > 0)); c != 0 {
		return c
	}
	if v > 0 && f.zones[s] != f.zones[t] {
		if c := f.zone(s).takes().compare(f.zone(t).takes()); c != 0 {
			return c
		}
	}
	return f.has[s].takes().compare(f.has[t].takes())
}

// gain says whether the servers become more even if one gives a row and another, which has room, takes one. It returns
// 1 if they do, and -1 if they become less even. A server over its limit is to give rows, and a server without a weight
// is to have none (P2). Between servers of two zones, the parts of the zones decide before those of the servers (P14).
func (f *flow) gain(from, to int) int {
	v, w := f.weights[from], f.weights[to]
	switch {
	case f.beyond(from) > 0:
		return 1
	case v == 0 && w > 0:
		return 1
	case v > 0 && w == 0:
		return -1
	}
	if v > 0 && f.zones[from] != f.zones[to] {
		if c := f.zone(from).gives().compare(f.zone(to).takes()); c != 0 {
			return c
		}
	}
	return f.has[from].gives().compare(f.has[to].takes())
}

// relief returns 1, as gain does, if the server that is to give a row is over its limit, and 0 otherwise. Such moves
// come before the rows without an owner (P7). Suppose that each server may have one row. A owns row 0. Row 1 has no
// owner and may only go to A, so that A gets it and is to give row 0 to B. If the next plan gave the room of B to a row
// without an owner, A would have two rows for good.
func (f *flow) relief(from, _ int) int { return min(max(0, f.beyond(from)), 1) }

// even moves rows from one server to another, and along chains, as long as gain is more than 0 for the servers at both
// ends.
func (f *flow) even(gain func(from, to int) int) {
	f.giveSurplus(gain)
	for f.chains.improve(gain) {
		continue
	}
}

// giveSurplus moves rows from one server to another. It finds most of the chains that have one step, without a search
// for each.
func (f *flow) giveSurplus(gain func(from, to int) int) {
	for _, g := range slices.Backward(f.splits) {
		for k, s := range g.servers {
			for g.n[k] > 0 {
				to := f.next(g)
				if to == none || gain(s, to) <= 0 {
					break
				}
				f.give(g, k, -1)
				f.give(g, g.index(to), 1)
			}
		}
	}
}

// evenTotals lets servers swap their numbers where that makes the totals of the processes more even (P15). Suppose that
// A has three rows and B two, with the same weight in the same zone. A can give B a row that both may get, and the plan
// is as even as before. It reports whether there were such servers.
func (f *flow) evenTotals(t *totals) (changed bool) {
	type kind struct {
		amount
		zone int
	}
	total := func(s int) amount { return t.of(s, f.has[s].queues) }
	for _, g := range f.splits {
		givers := map[kind][]int{}
		for k, s := range g.servers {
			if g.n[k] > 0 && t.gives(total(s)) {
				of := kind{f.has[s], f.zones[s]}
				givers[of] = append(givers[of], s)
			}
		}
		for _, to := range g.servers {
			has := f.has[to].queues + 1
			list := givers[kind{amount{has, f.weights[to]}, f.zones[to]}]
			if len(list) == 0 || !f.hasRoom(to) {
				continue
			}
			from := slices.MaxFunc(list, func(a, b int) int { return total(a).queues - total(b).queues })
			if f.has[from].queues == has && total(from).improves(total(to)) {
				f.give(g, g.index(from), -1)
				f.give(g, g.index(to), 1)
				changed = true
			}
		}
	}
	return changed
}
