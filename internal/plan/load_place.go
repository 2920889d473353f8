package plan

import (
	"cmp"
	"slices"
)

// grantByLoad gives the queues without an owner to the idlest servers, the largest first. What a server owns takes
// room, and not what it has requested: a queue without an owner comes before one that another server works.
func (p *planning) grantByLoad() {
	b := newLoadBalancing(p.roster)
	clear(b.count)
	for _, row := range b.rows {
		if s := row.owner; s != none && s < len(b.weights) {
			b.count[s]++
		}
	}
	b.idlest = newIdle(b)
	for _, i := range b.sorted {
		if p.rows[i].owner != none {
			continue
		}
		if s := b.place(i, anyWeight); s != none {
			b.put(i, s)
			p.grant(i, s)
		}
	}
}

// assignByLoad returns for each row the position of the server that should own it, or none, as assign does.
func (p *planning) assignByLoad() []int {
	b := newLoadBalancing(p.roster)
	b.balance()
	for i, s := range b.at {
		if owner := p.rows[i].owner; s == none && owner != none && owner < len(p.weights) {
			b.count[owner]++ // the row stays with its owner, because no other server may get it or has room
			if b.zones != nil {
				b.zoneRows[b.zones[owner]]++
			}
		}
	}
	p.measure = b
	return b.at
}

// balance makes the moves that a rule demands, then those to servers that join, and then those that even the loads. It
// does so until nothing moves: a row that goes to another server can make room for one that must.
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
	rows := b.surplus()
	for i, s := range b.at {
		if s == none && b.rows[i].owner != none || s != none && b.weights[s] == 0 {
			rows = append(rows, i)
		}
	}
	slices.SortFunc(rows, b.byLoad)
	for _, i := range rows {
		from := b.at[i]
		var to int
		switch {
		case from == none:
			b.put(i, b.place(i, anyWeight))
			continue
		case b.limits.QueuesPerServer > 0 && b.count[from] > b.limits.QueuesPerServer:
			if to = b.place(i, anyWeight); to == none {
				b.put(i, b.owner(i))
			}
		case b.weights[from] == 0:
			to = b.place(i, withWeight)
		default: // its zone has too many
			to = b.idlest.forRow(i, func(g *idleGroup) bool {
				return withWeight(g) && g.zone != b.zones[from] && b.zoneOpen(i, g.zone)
			})
		}
		if to != none {
			b.put(i, to)
		}
	}
}

func anyWeight(*idleGroup) bool    { return true }
func withWeight(g *idleGroup) bool { return g.weight > 0 }

// owner returns the position of the row's owner, or none if it gets no queues or must not keep the row.
func (b *loadBalancing) owner(row int) int {
	if s := b.rows[row].owner; b.mayGet(row, s) {
		return s
	}
	return none
}

// surplus returns the rows of servers with a weight that are beyond max_queues_per_server or the part of their zone:
// first those that a server does not own yet, then those with the smallest loads.
func (b *loadBalancing) surplus() (rows []int) {
	leave := make([]int, len(b.zoneRows)) // rows that leave servers of the zone because of the other limit
	stay := make([][]int, len(b.zoneRows))
	for s, mine := range b.mine {
		if b.weights[s] == 0 {
			continue
		}
		if most := b.limits.QueuesPerServer; most > 0 && len(mine) > most {
			mine = slices.SortedFunc(slices.Values(mine), b.byStay)
			rows = append(rows, mine[most:]...)
			if b.zones != nil {
				leave[b.zones[s]] += len(mine) - most
			}
			mine = mine[:most]
		}
		if b.zones != nil {
			stay[b.zones[s]] = append(stay[b.zones[s]], mine...)
		}
	}
	for zone, mine := range stay {
		if n := b.zoneRows[zone] - leave[zone] - b.zoneMost[zone]; n > 0 {
			slices.SortFunc(mine, b.byStay)
			rows = append(rows, mine[max(0, len(mine)-n):]...)
		}
	}
	return rows
}

// byStay compares rows of servers: a row that the server owns already comes first, then the load decides.
func (b *loadBalancing) byStay(i, j int) int {
	return cmp.Or(compareTrue(b.owner(i) == b.at[i], b.owner(j) == b.at[j]), b.byLoad(i, j))
}

// hasRoom reports whether a server may get one more row.
func (b *loadBalancing) hasRoom(s int) bool { return within(b.count[s], b.limits.QueuesPerServer) }

// place returns the server with room that should get a row which has none: the idlest with a weight in a zone that has
// less than its part, then in any zone, then one without a weight.
func (b *loadBalancing) place(row int, among func(g *idleGroup) bool) int {
	for _, rule := range []func(g *idleGroup) bool{
		func(g *idleGroup) bool { return g.weight > 0 && b.zoneOpen(row, g.zone) },
		withWeight,
		func(g *idleGroup) bool { return g.weight == 0 },
	} {
		if s := b.idlest.forRow(row, func(g *idleGroup) bool { return rule(g) && among(g) }); s != none {
			return s
		}
	}
	return none
}

// zoneOpen reports whether a row may go to a zone that then has no more than its part (P14).
func (b *loadBalancing) zoneOpen(row, zone int) bool {
	if b.zones == nil {
		return true
	}
	from := b.at[row]
	return from != none && b.zones[from] == zone || b.zoneRows[zone] < b.zoneMost[zone]
}
