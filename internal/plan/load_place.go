package plan

import (
	"cmp"
	"slices"
)

// grantByLoad gives the queues without an owner to the idlest servers, the largest first. What a server owns takes
// room, and not what it has requested: a queue without an owner comes before one that another server works.
func (p *planning) grantByLoad() {
	b := newLoadBalancing(p)
	b.countOwned()
	for _, i := range b.sortedRows() {
		if p.rows[i].owner != none {
			continue
		}
		if s := b.place(i, anyWeight); s >= 0 {
			b.put(i, s)
			p.grant(i, s)
		}
	}
}

// countOwned counts the rows that the servers own.
func (b *loadBalancing) countOwned() {
	clear(b.count)
	for _, row := range b.rows {
		if s := row.owner; s != none && s < len(b.weights) {
			b.count[s]++
		}
	}
	b.idle = newIdle(b)
}

// assignByLoad returns for each row the position of the server that should own it, or none, as assign does.
func (p *planning) assignByLoad() []int {
	b := newLoadBalancing(p)
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

// balance settles, fills and evens, until nothing moves: a row that goes to another server can make room for one that
// must.
func (b *loadBalancing) balance() {
	for range len(b.rows) + 1 { // a bound: twice is mostly enough
		was := slices.Clone(b.at)
		b.settle()
		b.fill()
		if b.before == nil {
			b.before, b.wasUneven = slices.Clone(b.sums), b.uneven()
		}
		b.even()
		if slices.Equal(b.at, was) {
			return
		}
	}
}

// settle gives other servers the rows whose owners may not keep them, and what is beyond the limits of servers and
// zones, the largest first. A row that no other server may get stays with its owner (P7). A queue without an owner
// waits for the next plan.
func (b *loadBalancing) settle() {
	var homeless []int
	for i, s := range b.at {
		if s < 0 && b.rows[i].owner != none || s >= 0 && b.weights[s] == 0 {
			homeless = append(homeless, i)
		}
	}
	homeless = append(homeless, b.surplus()...)
	slices.SortFunc(homeless, b.byLoad)
	for _, i := range homeless {
		from := b.at[i]
		switch full := from >= 0 && b.count[from] > b.most(); {
		case from < 0:
			b.put(i, b.place(i, anyWeight))
		case full:
			if s := b.place(i, anyWeight); s >= 0 {
				b.put(i, s)
			} else {
				b.put(i, b.ownerOf(i))
			}
		case b.weights[from] == 0:
			if s := b.place(i, withWeight); s >= 0 {
				b.put(i, s)
			}
		default: // its zone has too many
			other := func(g *idleGroup) bool { return withWeight(g) && g.zone != b.zones[from] && b.zoneOpen(i, g.zone) }
			if s := b.idle.idlest(i, other); s >= 0 {
				b.put(i, s)
			}
		}
	}
}

func anyWeight(*idleGroup) bool    { return true }
func withWeight(g *idleGroup) bool { return g.weight > 0 }

// ownerOf returns the position of the row's owner, or -1 if it is not eligible or must not keep the row.
func (b *loadBalancing) ownerOf(row int) int {
	if s := b.rows[row].owner; s != none && s < len(b.weights) && !b.bars(row, s) {
		return s
	}
	return -1
}

// surplus returns the rows of servers with a weight that are beyond max_queues_per_server or the part of their zone:
// first those that a server does not own yet, then those with the smallest loads.
func (b *loadBalancing) surplus() (rows []int) {
	zoneLeaves := make([]int, len(b.zoneRows))
	var inZones [][]int
	for range b.zoneRows {
		inZones = append(inZones, nil)
	}
	for s, mine := range b.mine {
		if b.weights[s] == 0 {
			continue
		}
		if most := b.most(); len(mine) > most {
			mine = slices.SortedFunc(slices.Values(mine), b.byStay)
			rows = append(rows, mine[most:]...)
			if b.zones != nil {
				zoneLeaves[b.zones[s]] += len(mine) - most
			}
			mine = mine[:most]
		}
		if b.zones != nil {
			inZones[b.zones[s]] = append(inZones[b.zones[s]], mine...)
		}
	}
	for zone, mine := range inZones {
		if keep := b.zoneMost[zone] + zoneLeaves[zone]; b.zoneRows[zone] > keep {
			slices.SortFunc(mine, b.byStay)
			rows = append(rows, mine[max(0, len(mine)-(b.zoneRows[zone]-keep)):]...)
		}
	}
	return rows
}

// byStay compares rows of servers: a row that the server owns already comes first, then the load decides.
func (b *loadBalancing) byStay(i, j int) int {
	return cmp.Or(compareTrue(b.ownerOf(i) == b.at[i], b.ownerOf(j) == b.at[j]), b.byLoad(i, j))
}

// most returns the most rows of a server.
func (b *loadBalancing) most() int {
	if b.limits.QueuesPerServer > 0 {
		return b.limits.QueuesPerServer
	}
	return len(b.rows)
}

// open reports whether a server has room for one more row.
func (b *loadBalancing) open(s int) bool { return within(b.count[s], b.limits.QueuesPerServer) }

// place returns the server with room that should get a row which has none, or -1: the idlest with a weight in a zone
// that has less than its part, then in any zone, then one without a weight.
func (b *loadBalancing) place(row int, among func(g *idleGroup) bool) int {
	for _, rule := range []func(g *idleGroup) bool{
		func(g *idleGroup) bool { return g.weight > 0 && b.zoneOpen(row, g.zone) },
		withWeight,
		func(g *idleGroup) bool { return g.weight == 0 },
	} {
		if s := b.idle.idlest(row, func(g *idleGroup) bool { return rule(g) && among(g) }); s >= 0 {
			return s
		}
	}
	return -1
}

// zoneOf returns the zone of a server; without zones, all are in one.
func (b *loadBalancing) zoneOf(s int) int {
	if b.zones == nil {
		return 0
	}
	return b.zones[s]
}

// zoneOpen reports whether a row may go to a zone that then has no more than its part (P14).
func (b *loadBalancing) zoneOpen(row, zone int) bool {
	if b.zones == nil {
		return true
	}
	from := b.at[row]
	return from >= 0 && b.zones[from] == zone || b.zoneRows[zone] < b.zoneMost[zone]
}
