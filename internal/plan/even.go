package plan

import (
	"cmp"
	"container/heap"
	"slices"
)

// evening computes the quotas of a roster in which some server must not get some row (P14). They do not follow from the
// weights alone then: of four rows that are pinned to zone a, its two servers should have two each, whatever the
// servers of other zones have.
//
// Suppose that A owns three rows that only A and B may get, B owns two rows that only B and C may get, and C owns none.
// A cannot give C a row. But B can take one of A's and give C one of its own: 3, 2 and 0 become 2, 2 and 1. Such a
// chain of moves is made if it makes the sum of the squares, each divided by the server's weight, smaller: here 13
// becomes 9. In the end evening undoes moves that the sum does not need: along a cycle of servers, which leaves each of
// them its number, or along a chain between two servers which may as well swap their numbers.
//
// This is the minimum cost flow with convex costs: when no chain and no cycle improves the result, it is the best one.
// Computed from nothing, such a flow takes seconds for 100,000 rows. So each server first keeps its own rows, each
// other row goes to the server with the least, and few chains are left to look for. They lead over groups of rows that
// the same servers may get, and not over rows: a search then looks at each server of a group once.
type evening struct {
	*roster
	groups   []*groupShare
	slots    [][]slot // of the servers: the groups that they may get
	total    []int    // of the servers: all rows
	zoneSums []zoneSum
	takers   *takers // of the group that was looked at last

	search int    // the number of the present search
	seen   []int  // of the servers: the last search that reached it
	via    []slot // of the servers: the group of which it takes a row in that search
}

// groupShare is how many rows of a group each of its servers gets.
type groupShare struct {
	*group
	number    int   // of the group
	n, own    []int // of the group's servers: the rows that it gets, and the rows that it owns and may keep
	ownerless int   // the rows that have no owner
	displaced []int // of the rows whose owner may not keep them: its position, none if it gets no queues

	seen int // the last search that reached the group
	from int // in that search: the place of the server that gives a row of the group, -1 at the beginning of the chain
}

// slot is a group, and the place of a server in it.
type slot struct {
	group *groupShare
	at    int
}

// zoneSum is the rows and the weight of the servers of a zone (P14).
type zoneSum struct{ rows, weight int }

// evenQuotas returns the quotas of the groups.
func (p *planning) evenQuotas(owners []int) []quota {
	e := newEvening(p, owners)
	e.keepOwn()
	e.place()
	e.giveSurplus()
	for again := true; again; again = e.choose() {
		for e.improve() {
			continue
		}
		for e.saveMove() || e.saveOne() {
			continue
		}
	}
	p.measure = e
	list := make([]quota, len(e.groups))
	for i, g := range e.groups {
		list[i] = quota{g.group, g.n}
	}
	return list
}

func newEvening(p *planning, owners []int) *evening {
	n := len(p.weights)
	e := &evening{
		roster: p.roster, slots: make([][]slot, n), total: make([]int, n), seen: make([]int, n), via: make([]slot, n),
	}
	for s, zone := range p.zones {
		for zone >= len(e.zoneSums) {
			e.zoneSums = append(e.zoneSums, zoneSum{})
		}
		e.zoneSums[zone].weight += p.weights[s]
	}
	for _, rows := range p.groups() {
		g := &groupShare{group: rows, number: len(e.groups), n: make([]int, len(rows.servers))}
		g.own = make([]int, len(rows.servers))
		e.groups = append(e.groups, g)
		for k, s := range g.servers {
			e.slots[s] = append(e.slots[s], slot{g, k})
		}
		for _, i := range g.rows {
			switch owner := p.rows[i].owner; {
			case owners[i] != none:
				g.own[g.index(owners[i])]++
			case owner == none:
				g.ownerless++
			case owner < n:
				g.displaced = append(g.displaced, owner)
			default:
				g.displaced = append(g.displaced, none)
			}
		}
	}
	return e
}

// size implements measure.
func (e *evening) size(s int) int { return e.total[s] }

// rule implements measure.
func (e *evening) rule(from, to int) Rule {
	if e.zones != nil && e.zones[from] != e.zones[to] && e.weights[from] > 0 {
		a, b := e.zoneSums[e.zones[from]], e.zoneSums[e.zones[to]]
		if (2*b.rows-1)*a.weight != (2*a.rows+1)*b.weight {
			return Spread
		}
	}
	if (2*e.total[to]-1)*max(1, e.weights[from]) != (2*e.total[from]+1)*max(1, e.weights[to]) {
		return Balance
	}
	return Totals
}

// count notes that a server gets so many more rows.
func (e *evening) count(s, n int) {
	e.total[s] += n
	if e.zones != nil {
		e.zoneSums[e.zones[s]].rows += n
	}
}

// give gives a server of the group so many more of its rows.
func (e *evening) give(g *groupShare, k, n int) {
	g.n[k] += n
	e.count(g.servers[k], n)
}

// keepOwn lets each server keep what it owns, within its limit. The rows with the least choice come first.
func (e *evening) keepOwn() {
	for _, g := range e.groups {
		for k, s := range g.servers {
			n := g.own[k]
			for ; e.limits.QueuesPerServer > 0 && n > 0 && e.total[s]+n > e.limits.QueuesPerServer; n-- {
				g.displaced = append(g.displaced, s)
			}
			e.give(g, k, n)
		}
	}
}

// place gives the other rows to the servers that have the least for their weights, first the rows without an owner
// (P4). A row that no server has room for stays with its owner (P7).
func (e *evening) place() {
	for _, g := range e.groups {
		for range g.ownerless {
			if !e.placeOne(g, true) {
				break
			}
		}
	}
	for _, g := range e.groups {
		for _, owner := range g.displaced {
			if !e.placeOne(g, false) && owner >= 0 {
				e.stay(g, owner)
			}
		}
	}
}

// stay leaves a row with its owner, in addition to the rows that the owner gets. It counts there, and cannot move.
func (e *evening) stay(g *groupShare, owner int) {
	e.count(owner, 1)
	if k := g.index(owner); k >= 0 {
		g.own[k]--
	}
}

// placeOne gives a row of the group to a server. If each one that may get it is full, another server takes a row of
// theirs.
func (e *evening) placeOne(g *groupShare, elsewhere bool) bool {
	order := e.takersOf(g, elsewhere)
	if s := order.first(); s >= 0 {
		e.give(g, g.index(s), 1)
		order.changed(s)
		return true
	}
	return e.limits.QueuesPerServer > 0 && e.makeRoom(g)
}

// giveSurplus gives rows away from servers that have more than their share of all rows. It finds most of the chains
// that have one step, without a search for each.
func (e *evening) giveSurplus() {
	e.takers = nil // makeRoom and stay have changed servers without a note
	for _, g := range slices.Backward(e.groups) {
		for k, s := range g.servers {
			for g.n[k] > 0 && e.total[s] > e.share(s) {
				order := e.takersOf(g, false)
				to := order.first()
				if to < 0 || e.gain(s, to) <= 0 {
					break
				}
				e.give(g, k, -1)
				e.give(g, g.index(to), 1)
				order.changed(s)
				order.changed(to)
			}
		}
	}
}

// share returns the server's share of all rows, rounded up.
func (e *evening) share(s int) int {
	return (len(e.rows)*e.weights[s] + e.weight - 1) / e.weight
}

// hasRoom reports whether a server may get one more row.
func (e *evening) hasRoom(s int) bool { return within(e.total[s], e.limits.QueuesPerServer) }

// exceeds reports whether a server has more rows than its limit, because rows that no other server may get stay with
// it.
func (e *evening) exceeds(s int) bool {
	return e.limits.QueuesPerServer > 0 && e.total[s] > e.limits.QueuesPerServer
}

// gain says whether the servers become more even if one gives a row and another, which has room, takes one: more for 1,
// less for -1. A server over its limit is to give rows, and a server without a weight is to have none (P2). Of two
// zones, each has its part before the servers have theirs (P14).
func (e *evening) gain(from, to int) int {
	w, v := e.weights[from], e.weights[to]
	switch {
	case e.exceeds(from):
		return 1
	case w == 0 && v > 0:
		return 1
	case w > 0 && v == 0:
		return -1
	}
	if w > 0 && e.zones != nil && e.zones[from] != e.zones[to] {
		a, b := e.zoneSums[e.zones[from]], e.zoneSums[e.zones[to]]
		if c := cmp.Compare((2*a.rows-1)*b.weight, (2*b.rows+1)*a.weight); c != 0 {
			return c
		}
	}
	return cmp.Compare((2*e.total[from]-1)*max(1, v), (2*e.total[to]+1)*max(1, w))
}

// compareTakers puts the server first that should rather get a row: one with room, then what gain says.
func (e *evening) compareTakers(s, t int) int {
	w, v := e.weights[s], e.weights[t]
	if c := cmp.Or(compareTrue(e.hasRoom(s), e.hasRoom(t)), compareTrue(w > 0, v > 0)); c != 0 {
		return c
	}
	if w > 0 && e.zones != nil && e.zones[s] != e.zones[t] {
		a, b := e.zoneSums[e.zones[s]], e.zoneSums[e.zones[t]]
		if c := cmp.Compare((2*a.rows+1)*b.weight, (2*b.rows+1)*a.weight); c != 0 {
			return c
		}
	}
	return cmp.Compare((2*e.total[s]+1)*max(1, v), (2*e.total[t]+1)*max(1, w))
}

// takers are the servers of a group, a heap for each zone, with the server first that should get the next row. Among
// equals it is the server whose process has less of other task types for its weight, if elsewhere counts (P15), and
// then the older one.
type takers struct {
	*evening
	group     *groupShare
	elsewhere bool
	byZone    []*takerHeap
	heapOf    []*takerHeap // of the servers of the group
	at        []int        // of the servers of the group: the position in its heap
}

type takerHeap struct {
	*takers
	servers []int
}

// takersOf returns the takers of a group. It keeps them as long as the same group is asked for; the caller notes each
// change.
func (e *evening) takersOf(g *groupShare, elsewhere bool) *takers {
	if t := e.takers; t != nil && t.group == g && t.elsewhere == elsewhere {
		return t
	}
	t := &takers{evening: e, group: g, elsewhere: elsewhere, at: make([]int, len(g.servers))}
	t.heapOf = make([]*takerHeap, len(g.servers))
	zones := map[int]*takerHeap{}
	for k, s := range g.servers {
		zone := e.zoneOf(s)
		if zones[zone] == nil {
			zones[zone] = &takerHeap{t, nil}
			t.byZone = append(t.byZone, zones[zone])
		}
		h := zones[zone]
		t.heapOf[k], t.at[k] = h, len(h.servers)
		h.servers = append(h.servers, s)
	}
	for _, h := range t.byZone {
		heap.Init(h)
	}
	e.takers = t
	return t
}

// first returns the server that should get the next row, or -1 if none has room.
func (t *takers) first() int {
	best := -1
	for _, h := range t.byZone {
		if s := h.servers[0]; t.hasRoom(s) && (best < 0 || t.compare(s, best) < 0) {
			best = s
		}
	}
	return best
}

func (t *takers) compare(s, u int) int {
	c := t.compareTakers(s, u)
	if c == 0 && t.elsewhere {
		c = cmp.Compare(t.servers[s].Elsewhere*max(1, t.weights[u]), t.servers[u].Elsewhere*max(1, t.weights[s]))
	}
	return cmp.Or(c, s-u)
}

// changed takes note that a server has another number of rows.
func (t *takers) changed(s int) {
	k := t.group.index(s)
	heap.Fix(t.heapOf[k], t.at[k])
}

// Len implements heap.Interface.
func (h *takerHeap) Len() int { return len(h.servers) }

// Less implements heap.Interface.
func (h *takerHeap) Less(i, j int) bool { return h.compare(h.servers[i], h.servers[j]) < 0 }

// Swap implements heap.Interface.
func (h *takerHeap) Swap(i, j int) {
	h.servers[i], h.servers[j] = h.servers[j], h.servers[i]
	h.at[h.group.index(h.servers[i])], h.at[h.group.index(h.servers[j])] = i, j
}

// Push implements heap.Interface. The servers of a heap stay the same.
func (h *takerHeap) Push(any) {}

// Pop implements heap.Interface.
func (h *takerHeap) Pop() any { return nil }
