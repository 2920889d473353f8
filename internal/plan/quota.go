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

// exactShares returns how many queues each server should get: its exact share rounded down or up, within the limit.
func (p *planning) exactShares(owners []int) []int {
	d := divide(p.roster, owners)
	p.measure = d
	shares := make([]int, len(p.weights))
	for s := range shares {
		shares[s] = d.size(s)
	}
	return shares
}

// divide divides the rows in proportion to the weights. The share of a server that would exceed its limit is the limit,
// and the others divide the rest: ten queues on servers of the weights 1, 1 and 2 with a limit of four are 3, 3 and 4.
// A server of weight 0 gets what the limits of the others leave (P2). A share differs from the exact one by less than a
// queue, which divisor methods do not guarantee. Each zone gets its part of the servers that are rounded up (P14). The
// sum is less than the number of rows if the limits leave no room.
func divide(r *roster, owners []int) *rounding {
	n := len(r.weights)
	d := &rounding{
		roster: r, owned: make([]int, n), shares: make([]int, n), parts: make([]int, n), up: make([]bool, n),
	}
	for _, s := range owners {
		if s != none {
			d.owned[s]++
		}
	}
	left := d.divideAmong(len(r.rows), func(s int) int { return r.weights[s] })
	if len(d.open) == 0 { // all servers with a weight are full
		left = d.divideAmong(left, func(s int) int { return max(0, 1-r.weights[s]) })
	}
	for _, s := range d.open {
		left -= d.shares[s]
	}
	d.open = slices.DeleteFunc(d.open, func(s int) bool { return d.parts[s] == 0 })
	slices.SortStableFunc(d.open, d.compare)
	d.roundUp(left)
	if t := totalsOf(r); t != nil && d.settled() {
		for d.evenTotals(t) {
			continue
		}
	}
	return d
}

// divideAmong divides a total among the servers with a weight. It returns what the servers that are not full divide.
func (d *rounding) divideAmong(total int, weight func(s int) int) (rest int) {
	d.open, d.whole = nil, 0
	for s := range d.shares {
		if weight(s) > 0 {
			d.open = append(d.open, s)
			d.whole += weight(s)
		}
	}
	heaviest := slices.SortedStableFunc(slices.Values(d.open), func(s, t int) int { return weight(t) - weight(s) })
	for most := d.limits.QueuesPerServer; most > 0 && len(heaviest) > 0; heaviest = heaviest[1:] {
		s := heaviest[0]
		if total*weight(s) < most*d.whole {
			break
		}
		d.shares[s] = most // the heaviest is full first
		total -= most
		d.whole -= weight(s)
	}
	d.open, d.whole = heaviest, max(1, d.whole)
	slices.Sort(d.open)
	for _, s := range d.open {
		d.shares[s], d.parts[s] = total*weight(s)/d.whole, total*weight(s)%d.whole
	}
	return total
}

// roundUp chooses which of the open servers are rounded up: as many as the sum of the parts by which they were rounded
// down. Each zone gets its part of them, rounded down or up (P14). The zones that are rounded up are chosen as the
// servers are: first by what compareGain says of their next servers, then by the larger remainder, then by what the
// process of the next server has elsewhere, then by what the zone owns.
func (d *rounding) roundUp(left int) {
	d.byZone = make([]zonePart, 1+slices.Max(d.zones))
	for _, s := range d.open {
		z := &d.byZone[d.zones[s]]
		z.open, z.parts, z.owned = append(z.open, s), z.parts+d.parts[s], z.owned+d.owned[s]
	}
	var open []*zonePart // the zones that may be rounded up
	up := func(z *zonePart) {
		d.up[z.open[z.up]] = true
		z.up++
		left--
	}
	for i := range d.byZone {
		z := &d.byZone[i]
		for whole := z.parts / d.whole; whole > 0; whole-- {
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
	for _, z := range open[:min(left, len(open))] {
		up(z)
	}
}

// compare puts a server first that owns more than its share rounded down, because that saves a move: of nine queues on
// two servers, the one that owns five keeps them. Of the others, the one with the larger remainder comes first, then
// the one whose process has less of other task types for its weight (P15), then the one that owns more, and then the
// older one, as the servers are sorted.
func (d *rounding) compare(s, t int) int {
	return cmp.Or(d.compareGain(s, t), d.parts[t]-d.parts[s],
		d.elsewhere(s).compare(d.elsewhere(t)), d.owned[t]-d.owned[s])
}

// compareGain compares by what goes before the remainders, of servers and of zones.
func (d *rounding) compareGain(s, t int) int {
	return compareTrue(d.owned[s] > d.shares[s], d.owned[t] > d.shares[t])
}

// settled reports whether no server is to give a queue.
func (d *rounding) settled() bool {
	for s, n := range d.owned {
		if n > d.size(s) {
			return false
		}
	}
	return true
}

// evenTotals rounds up other servers, where that makes the totals of the processes more even (P15) and leaves each zone
// its part (P14). It reports whether there was such a server.
func (d *rounding) evenTotals(t *totals) (changed bool) {
	var givers []int
	takers := make([][]int, len(d.byZone))
	total := func(s int) amount { return t.of(s, d.size(s)) }
	for _, s := range d.open {
		if !d.up[s] {
			takers[d.zones[s]] = append(takers[d.zones[s]], s)
		} else if t.gives(total(s)) {
			givers = append(givers, s)
		}
	}
	slices.SortStableFunc(givers, func(a, b int) int { return total(b).gives().compare(total(a).gives()) })
	for _, list := range takers {
		slices.SortStableFunc(list, func(a, b int) int { return total(a).takes().compare(total(b).takes()) })
	}
	for _, from := range givers {
		to := none
		for zone, list := range takers {
			if len(list) > 0 && d.mayPass(d.zones[from], zone) &&
				(to == none || total(list[0]).takes().compare(total(to).takes()) < 0) {
				to = list[0]
			}
		}
		if to == none || !total(from).improves(total(to)) {
			continue
		}
		a, b := &d.byZone[d.zones[from]], d.zones[to]
		a.up, d.byZone[b].up, takers[b] = a.up-1, d.byZone[b].up+1, takers[b][1:]
		d.up[from], d.up[to], changed = false, true, true
	}
	return changed
}

// mayPass reports whether a server of one zone may be rounded up and not one of another.
func (d *rounding) mayPass(from, to int) bool {
	a, b := d.byZone[from], d.byZone[to]
	return from == to || (a.up-1)*d.whole > a.parts-d.whole && (b.up+1)*d.whole < b.parts+d.whole
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
