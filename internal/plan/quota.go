package plan

import (
	"cmp"
	"slices"
)

// rounding is a total that is divided in proportion to weights. Ten queues on servers of the weights 1, 1 and 2 are
// 2.5, 2.5 and 5. The shares are 2, 2 and 5. The first two servers are open: each has a part of 2 of the whole 4 left,
// which is half a queue, and one of them is rounded up.
type rounding struct {
	*roster
	owned  []int  // of all servers: the rows that it owns
	shares []int  // of all servers; rounded down
	parts  []int  // of all servers: by how much the share was rounded down, as a part of whole
	whole  int    // the weights of the servers that are not at their limit
	open   []int  // the servers with such a part, in the order in which they are rounded up
	up     []bool // of all servers: whether the share is rounded up
	byZone []zonePart
}

// zonePart is the open servers of a zone, the sum of their parts and how many of them are rounded up (P14).
type zonePart struct {
	open             []int
	parts, up, owned int
}

// exactShares returns how many queues each server should get: its exact share rounded down or up, within the limit. A
// server of weight 0 gets what the limits of the others leave (P2).
func (p *planning) exactShares(owners []int) []int {
	owned := count(owners, len(p.weights))
	r := p.divide(len(p.rows), p.weights, owned)
	left := len(p.rows)
	for s := range p.weights {
		left -= r.size(s)
	}
	if left > 0 { // all servers with a weight are full
		full := r.shares
		r = p.divide(left, reserve(p.weights), owned)
		for s, n := range full {
			r.shares[s] += n
		}
	}
	p.measure = r
	shares := make([]int, len(p.weights))
	for s := range shares {
		shares[s] = r.size(s)
	}
	return shares
}

// reserve returns the weight 1 for servers of weight 0, and 0 for the others.
func reserve(weights []int) []int {
	list := make([]int, len(weights))
	for s, w := range weights {
		if w == 0 {
			list[s] = 1
		}
	}
	return list
}

// count returns how many rows each server owns.
func count(owners []int, servers int) []int {
	owned := make([]int, servers)
	for _, s := range owners {
		if s != none {
			owned[s]++
		}
	}
	return owned
}

// divide divides a total in proportion to the weights. The share of a server that would exceed its limit is the limit,
// and the others divide the rest: ten queues on the weights 1, 1 and 2, of which nobody may have more than four, are 3,
// 3 and 4. The shares are rounded down or up, never by one or more as by divisor methods. Each zone gets its part of
// the servers that are rounded up (P14). The sum is less than the total if the limits leave no room.
func (r *roster) divide(total int, weights, owned []int) *rounding {
	n := len(weights)
	d := &rounding{roster: r, owned: owned, shares: make([]int, n), parts: make([]int, n), up: make([]bool, n)}
	for s, w := range weights {
		if w > 0 {
			d.open = append(d.open, s)
			d.whole += w
		}
	}
	slices.SortStableFunc(d.open, func(s, t int) int { return weights[t] - weights[s] })
	for most := r.limits.QueuesPerServer; most > 0 && len(d.open) > 0; d.open = d.open[1:] { // the heaviest is full first
		s := d.open[0]
		if total*weights[s] < most*d.whole {
			break
		}
		d.shares[s] = most
		total -= most
		d.whole -= weights[s]
	}
	for _, s := range d.open {
		d.shares[s], d.parts[s] = total*weights[s]/d.whole, total*weights[s]%d.whole
	}
	d.open = slices.DeleteFunc(d.open, func(s int) bool { return d.parts[s] == 0 })
	slices.Sort(d.open)
	slices.SortStableFunc(d.open, d.compare)
	d.roundUp()
	return d
}

// roundUp chooses which of the open servers are rounded up: as many as the sum of the parts by which they were rounded
// down. Each zone gets its part of them, rounded down or up (P14). Where it can be either, the zone comes first whose
// next server does, then the one with the larger remainder, then the one whose next server's process has less
// elsewhere, then the one that owns most.
func (d *rounding) roundUp() {
	left := 0
	for s, zone := range d.zones {
		if zone == len(d.byZone) {
			d.byZone = append(d.byZone, zonePart{})
		}
		left += d.parts[s]
	}
	for _, s := range d.open {
		z := &d.byZone[d.zones[s]]
		z.open, z.parts, z.owned = append(z.open, s), z.parts+d.parts[s], z.owned+d.owned[s]
	}
	if len(d.open) == 0 {
		return
	}
	left /= d.whole
	var open []*zonePart // the zones that may be rounded up
	up := func(z *zonePart) {
		d.up[z.open[z.up]] = true
		z.up++
		left--
	}
	for i := range d.byZone {
		z := &d.byZone[i]
		for z.up < z.parts/d.whole {
			up(z)
		}
		if z.parts%d.whole > 0 {
			open = append(open, z)
		}
	}
	slices.SortStableFunc(open, func(a, b *zonePart) int {
		s, t := a.open[a.up], b.open[b.up]
		return cmp.Or(d.compareGain(s, t), b.parts%d.whole-a.parts%d.whole,
			d.elsewhere(s).compare(d.elsewhere(t)), b.owned-a.owned)
	})
	for _, z := range open[:left] {
		up(z)
	}
}

// compare puts a server first that is to be rounded up (P15), then one that owns more than its share rounded down,
// because that saves a move: of nine queues on two servers, the one that owns five keeps them. Of the others, the one
// with the larger remainder comes first, then the one whose process has less of other task types for its weight (P15),
// then the one that owns more, and then the older one, as the servers are sorted.
func (d *rounding) compare(s, t int) int {
	return cmp.Or(d.compareGain(s, t), d.parts[t]-d.parts[s],
		d.elsewhere(s).compare(d.elsewhere(t)), d.owned[t]-d.owned[s])
}

// compareGain compares by what goes before the remainders, of servers and of zones.
func (d *rounding) compareGain(s, t int) int {
	return cmp.Or(compareTrue(d.servers[s].RoundedUp, d.servers[t].RoundedUp),
		compareTrue(d.owned[s] > d.shares[s], d.owned[t] > d.shares[t]))
}

// compareTrue puts what is true first.
func compareTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// size implements measure.
func (d *rounding) size(s int) int {
	if d.up[s] {
		return d.shares[s] + 1
	}
	return d.shares[s]
}

// rule implements measure.
func (d *rounding) rule(from, to int) Rule {
	if a, b := d.byZone[d.zones[from]], d.byZone[d.zones[to]]; d.zones[from] != d.zones[to] {
		if a.up*d.whole >= a.parts || b.up*d.whole <= b.parts {
			return Spread
		}
	}
	if d.parts[from] == 0 || d.up[from] || !d.up[to] {
		return Balance
	}
	return Totals
}
