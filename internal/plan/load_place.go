package plan

import (
	"cmp"
	"slices"
)

// grantByLoad gives the queues without an owner to the idlest servers, the largest first. Only the queues that a server
// owns count towards its limit. The queues that it has requested do not, because a queue without an owner comes before
// a queue that another server works.
func (p *planning) grantByLoad() {
	b := newLoadBalancing(p.roster)
	for s := range b.has {
		b.has[s].queues = 0
	}
	for _, row := range b.rows {
		if s := row.owner; s != none && s < len(b.has) {
			b.has[s].queues++
		}
	}
	b.rank()
	for _, i := range b.sorted {
		if p.rows[i].owner != none {
			continue
		}
		if s := b.place(i, true); s != none {
			b.put(i, s)
			p.grant(i, s)
		}
	}
}

// assignByLoad returns for each row the position of the server that should own it, or none, as assign does.
func (p *planning) assignByLoad() []int {
	b := newLoadBalancing(p.roster)
	b.balance()
	p.measure = b
	return b.at
}

// balance makes the moves that a rule demands, then the moves to servers that join, and then the moves that even the
// loads. It repeats this until nothing moves, because a row that goes to another server can make room for a row that
// must leave its server.
func (b *loadBalancing) balance() {
	for range len(b.rows) + 1 { // a bound: twice is mostly enough
		was := slices.Clone(b.at)
		b.obey()
		b.fill()
		b.even()
		if slices.Equal(b.at, was) {
			return
		}
	}
}

// obey gives other servers the rows whose servers may not keep them, and what is beyond the limits of servers and
// zones, the largest first. A row that no other server may get stays with its owner (P7). A queue without an owner
// waits for the next plan.
func (b *loadBalancing) obey() {
	// Queues that must leave come first: until another server takes one, it counts as one of its owner's.
	for _, i := range b.sorted {
		if b.at[i] == none && b.rows[i].owner != none {
			if to := b.place(i, true); to != none {
				b.put(i, to)
			}
		}
	}
	rows := b.surplus()
	for i, s := range b.at {
		if s != none && b.weights[s] == 0 {
			rows = append(rows, i)
		}
	}
	slices.SortFunc(rows, b.byLoad)
	for _, i := range rows {
		from := b.at[i]
		var to int
		switch {
		case b.beyond(from) > 0:
			if to = b.place(i, true); to == none {
				b.put(i, b.keeper(i))
			}
		case b.weights[from] == 0:
			to = b.place(i, false)
		default: // its zone has too many
			to = b.inOtherZone(i)
		}
		if to != none {
			b.put(i, to)
		}
	}
}

// surplus returns rows of servers with a weight that exceed max_queues_per_server or the part of their zone, as many as
// are too many: first the rows that another server can take, then the rows that the server does not own yet, then the
// rows with the smallest loads.
func (b *loadBalancing) surplus() (rows []int) {
	leave := make([]int, len(b.zoneHas)) // rows that leave servers of the zone because of the other limit
	stay := make([][]int, len(b.zoneHas))
	for s, mine := range b.mine {
		if b.weights[s] == 0 {
			continue
		}
		zone := b.zones[s]
		if n := min(b.beyond(s), len(mine)); n > 0 {
			mine = b.sortByStay(mine, func(i int) bool { return b.place(i, true) != none })
			rows = append(rows, mine[len(mine)-n:]...)
			leave[zone] += n
			mine = mine[:len(mine)-n]
		}
		stay[zone] = append(stay[zone], mine...)
	}
	for zone, mine := range stay {
		if n := b.zoneHas[zone].queues - leave[zone] - b.zoneMost[zone]; n > 0 {
			mine = b.sortByStay(mine, func(i int) bool { return b.inOtherZone(i) != none })
			rows = append(rows, mine[max(0, len(mine)-n):]...)
		}
	}
	return rows
}

// sortByStay sorts rows by how much they should stay with their servers. goes says whether another server can take one.
func (b *loadBalancing) sortByStay(rows []int, goes func(row int) bool) []int {
	stays := make(map[int]bool, len(rows))
	for _, i := range rows {
		stays[i] = !goes(i)
	}
	return slices.SortedFunc(slices.Values(rows), func(i, j int) int {
		return cmp.Or(compareTrue(stays[i], stays[j]), compareTrue(b.keeper(i) == b.at[i], b.keeper(j) == b.at[j]),
			b.byLoad(i, j))
	})
}

// inOtherZone returns the server with room in another zone that should get a row, or none.
func (b *loadBalancing) inOtherZone(row int) int {
	return b.idlest(row, func(s int) bool { return b.zones[s] != b.zones[b.at[row]] && b.open(row, s) })
}

// place returns the server with room that should get a row: the idlest with a weight in a zone that has less than its
// part, then in any zone, then one of the reserve, which has no weight.
func (b *loadBalancing) place(row int, reserve bool) int {
	for _, accept := range []func(s int) bool{
		func(s int) bool { return b.open(row, s) },
		func(s int) bool { return b.weights[s] > 0 },
		func(s int) bool { return b.weights[s] == 0 && reserve },
	} {
		if s := b.idlest(row, accept); s != none {
			return s
		}
	}
	return none
}

// open reports whether a server has a weight, and its zone will have no more than its part if it gets the row (P14).
func (b *loadBalancing) open(row, s int) bool {
	from, zone := b.at[row], b.zones[s]
	return b.weights[s] > 0 && (from != none && b.zones[from] == zone || b.zoneHas[zone].queues < b.zoneMost[zone])
}
