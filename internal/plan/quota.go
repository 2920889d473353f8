package plan

import (
	"cmp"
	"maps"
	"slices"
	"sort"
)

// MaxWeight is the greatest weight of a server. With more, products of weights and numbers of queues would not fit.
const MaxWeight = 1000

// weigh notes the weights of the servers that get queues. If none has a weight, all count alike.
func (p *planning) weigh(servers []Server) {
	for _, s := range servers {
		w := min(max(0, s.Weight), MaxWeight)
		p.weights = append(p.weights, w)
		p.weight += w
	}
	if p.weight == 0 {
		for s := range p.weights {
			p.weights[s] = 1
		}
		p.weight = len(p.weights)
	}
}

// exactShares returns how many queues each server should get: its exact share rounded down or up, within the limit. A
// server of weight 0 gets what the limits of the others leave (P2).
func (p *planning) exactShares(owners []int) []int {
	left, nothing := len(p.rows), make([]int, len(p.weights))
	owned := count(owners, len(nothing))
	r := p.divide(left, p.bounds(nothing), p.weights, owned)
	shares := r.rounded()
	for _, n := range shares {
		left -= n
	}
	if left > 0 { // all servers with a weight are full
		reserve := make([]int, len(shares))
		for s, w := range p.weights {
			if w == 0 {
				reserve[s] = 1
			}
		}
		r = p.divide(len(p.rows), p.bounds(shares), reserve, owned)
		shares = r.rounded()
	}
	p.measure = r
	return shares
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

// bounds returns the range in which the share of each server must lie. A server with more than its limit keeps what it
// has.
func (p *planning) bounds(least []int) []bound {
	list := make([]bound, len(least))
	for s, n := range least {
		most := len(p.rows)
		if p.limits.QueuesPerServer > 0 {
			most = p.limits.QueuesPerServer
		}
		list[s] = bound{n, max(n, most)}
	}
	return list
}

// bound is the range of a share.
type bound struct{ least, most int }

// rounding is a total that is divided in proportion to the weights. Ten queues on servers of the weights 1, 1 and 2 are
// 2.5, 2.5 and 5. The shares are 2, 2 and 5. The first two servers are open: each has a part of 2 of the whole 4 left,
// which is half a queue, and one of them is rounded up.
type rounding struct {
	shares []int  // of all servers; rounded down
	open   []int  // the servers whose exact shares are no whole numbers, in the order in which they are rounded up
	up     []bool // of all servers: whether the share is rounded up
	parts  []int  // of all servers: by how much the share was rounded down, as a part of whole
	whole  int

	zoneOf    []int      // of all servers; nil: the queues are not spread
	zoneParts []zonePart // of the zones
}

// zonePart is the sum of the parts of a zone's servers, and how many of them are rounded up (P14).
type zonePart struct{ parts, up int }

// rounded returns the shares with those that are rounded up.
func (r rounding) rounded() []int {
	shares := slices.Clone(r.shares)
	for s := range shares {
		shares[s] = r.size(s)
	}
	return shares
}

// size implements measure.
func (r rounding) size(s int) int {
	if r.up[s] {
		return r.shares[s] + 1
	}
	return r.shares[s]
}

// rule implements measure.
func (r rounding) rule(from, to int) Rule {
	if r.zoneOf != nil && r.zoneOf[from] != r.zoneOf[to] {
		a, b := r.zoneParts[r.zoneOf[from]], r.zoneParts[r.zoneOf[to]]
		if a.up*r.whole >= a.parts || b.up*r.whole <= b.parts {
			return Spread
		}
	}
	if r.parts[from] == 0 || r.up[from] || !r.up[to] {
		return Balance
	}
	return Totals
}

// divide divides a total in proportion to the weights. A share whose proportion is out of its bounds is what the bound
// says, and the others divide the rest: ten queues on the weights 1, 1 and 2, of which nobody may have more than four,
// are 3, 3 and 4. The shares are rounded down or up, never by one or more as by divisor methods. If there are zones,
// each gets its part of the servers that are rounded up (P14). The sum is less than the total if the bounds leave no
// room.
func (p *planning) divide(total int, bounds []bound, weights, owned []int) rounding {
	reached := levelOf(total, bounds, weights)
	n := len(bounds)
	r := rounding{shares: make([]int, n), parts: make([]int, n), up: make([]bool, n), zoneOf: p.zones}
	rest := total
	for s, b := range bounds {
		share, bounded := reached.bounded(b, weights[s])
		if !bounded {
			r.open = append(r.open, s) // its share is in proportion
			r.whole += weights[s]
		}
		r.shares[s] = share
		rest -= share
	}
	left := rest
	for _, s := range r.open {
		r.shares[s], r.parts[s] = rest*weights[s]/r.whole, rest*weights[s]%r.whole
		left -= r.shares[s]
	}
	r.open = slices.DeleteFunc(r.open, func(s int) bool { return r.parts[s] == 0 })
	order := preference{p, r, weights, owned}
	slices.SortStableFunc(r.open, order.compare)
	up := r.open[:min(left, len(r.open))]
	if p.zones != nil && len(up) > 0 {
		up = order.spread()
	}
	for _, s := range up {
		r.up[s] = true
	}
	for s, zone := range p.zones {
		for zone >= len(r.zoneParts) {
			r.zoneParts = append(r.zoneParts, zonePart{})
		}
		r.zoneParts[zone].parts += r.parts[s]
		if r.up[s] {
			r.zoneParts[zone].up++
		}
	}
	return r
}

// preference is the order in which servers are rounded up. Of nine queues on two servers, the one that owns five keeps
// them, and no queue moves.
type preference struct {
	*planning
	rounding
	weights, owned []int
}

// compare puts a server first that is to be rounded up (P15), then one that owns more than its share rounded down,
// because that saves a move. Of the others, the one with the larger remainder comes first, then the one whose process
// has less of other task types for its weight (P15), then the one that owns more, and then the older one, as the
// servers are sorted.
func (p preference) compare(a, b int) int {
	return cmp.Or(p.compareGain(a, b), cmp.Compare(p.parts[b], p.parts[a]), p.compareElsewhere(a, b), p.owned[b]-p.owned[a])
}

// compareGain compares by what goes before the remainders, of servers and of zones.
func (p preference) compareGain(a, b int) int {
	return cmp.Or(
		compareTrue(p.servers[a].RoundedUp, p.servers[b].RoundedUp),
		compareTrue(p.owned[a] > p.shares[a], p.owned[b] > p.shares[b]))
}

// compareElsewhere puts the server first whose process has less of other task types for its weight.
func (p preference) compareElsewhere(a, b int) int {
	return cmp.Compare(p.servers[a].Elsewhere*p.weights[b], p.servers[b].Elsewhere*p.weights[a])
}

// spread chooses which of the open servers are rounded up: as many as the sum of the parts by which they were rounded
// down. Each zone gets its part of them, rounded down or up (P14). Where it can be either, the zone comes first whose
// next server does, then the one with the larger remainder, then the one whose next server's process has less
// elsewhere, then the one that owns most.
func (p preference) spread() (up []int) {
	type zone struct{ part, owned int }
	byZone := map[int][]int{}
	list := map[int]*zone{}
	total := 0
	for _, s := range p.open {
		z := p.zones[s]
		if list[z] == nil {
			list[z] = &zone{}
		}
		byZone[z] = append(byZone[z], s)
		list[z].part += p.parts[s]
		list[z].owned += p.owned[s]
		total += p.parts[s]
	}
	left := total / p.whole
	var open []int // the zones that may be rounded up
	for _, z := range slices.Sorted(maps.Keys(list)) {
		n := list[z].part / p.whole
		up = append(up, byZone[z][:n]...)
		left -= n
		if list[z].part%p.whole > 0 {
			open = append(open, z)
		}
	}
	next := func(z int) int { return byZone[z][list[z].part/p.whole] }
	slices.SortStableFunc(open, func(a, b int) int {
		return cmp.Or(p.compareGain(next(a), next(b)), list[b].part%p.whole-list[a].part%p.whole,
			p.compareElsewhere(next(a), next(b)), list[b].owned-list[a].owned)
	})
	for _, z := range open[:min(left, len(open))] {
		up = append(up, next(z))
	}
	return up
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

// level is how many queues a weight gets: the fraction queues/weight.
type level struct{ queues, weight int }

func (l level) compare(other level) int {
	return cmp.Compare(l.queues*other.weight, other.queues*l.weight)
}

// bounded returns the share of a server that is at one of its bounds at the level, or false if its share is in
// proportion.
func (l level) bounded(b bound, weight int) (share int, bounded bool) {
	switch {
	case weight == 0 || l.compare(level{b.least, weight}) < 0:
		return b.least, true
	case l.compare(level{b.most, weight}) >= 0:
		return b.most, true
	}
	return 0, false
}

// levelOf returns the highest level at which a share reaches a bound, and at which the shares are not more than the
// total. Above it, up to the level of the result, no other share reaches one.
func levelOf(total int, bounds []bound, weights []int) level {
	levels := []level{{0, 1}}
	for s, w := range weights {
		if w > 0 {
			levels = append(levels, level{bounds[s].least, w}, level{bounds[s].most, w})
		}
	}
	slices.SortFunc(levels, level.compare)
	levels = slices.CompactFunc(levels, func(a, b level) bool { return a.compare(b) == 0 })
	tooHigh := func(i int) bool {
		l, rest, weight := levels[i], total, 0
		for s, b := range bounds {
			share, bounded := l.bounded(b, weights[s])
			rest -= share
			if !bounded {
				weight += weights[s]
			}
		}
		return l.queues*weight > rest*l.weight
	}
	return levels[max(1, sort.Search(len(levels), tooHigh))-1]
}
