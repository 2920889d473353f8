package plan

import (
	"cmp"
	"slices"
	"sort"
)

// MaxWeight is the greatest weight of a server. With more, products of weights and numbers of queues would not fit.
const MaxWeight = 1000

// weigh notes the weights of the eligible servers. If none has a weight, all count alike.
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

// quotas returns how many queues each eligible server should get beside its hung queues. load is the number of its hung
// queues. Together they are the server's exact share rounded down or up, within the limit. A server with more hung queues
// than that gets no others. A server of weight 0 gets what the limits of the others leave (P2).
func (p *planning) quotas(owners, load []int) []int {
	total := len(p.rows) - p.hungRows()
	for _, n := range load {
		total += n
	}
	owned := make([]int, len(load))
	for _, s := range owners {
		if s >= 0 {
			owned[s]++
		}
	}
	shares := divide(total, p.bounds(load), p.weights, owned, p.zones)
	left := total
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
		shares = divide(total, p.bounds(shares), reserve, owned, p.zones)
	}
	for s, n := range load {
		shares[s] -= n
	}
	return shares
}

// bounds returns the range in which the share of each server must lie. A server with more than its limit keeps what it has.
func (p *planning) bounds(least []int) []bound {
	list := make([]bound, len(least))
	for s, n := range least {
		most := len(p.rows)
		if p.maxPerServer > 0 {
			most = p.maxPerServer
		}
		list[s] = bound{n, max(n, most)}
	}
	return list
}

// bound is the range of a share.
type bound struct{ least, most int }

// divide divides a total in proportion to the weights. A share whose proportion is out of its bounds is what the bound says,
// and the others divide the rest. They are rounded down or up: never by one or more, which divisor methods do. A server
// that owns more than its share rounded down is the first to be rounded up, because a queue stays then. Among such servers
// the largest remainder decides, then the number of owned queues, then the age, by which the servers are sorted. If there are
// zones, each gets its part of the servers that are rounded up (P14). The sum is less than the total if the bounds leave no
// room.
func divide(total int, bounds []bound, weights, owned, zones []int) []int {
	reached := levelOf(total, bounds, weights)
	shares := make([]int, len(bounds))
	var free []int // the servers whose shares are in proportion
	rest, weight := total, 0
	for s, b := range bounds {
		share, bounded := reached.bounded(b, weights[s])
		if !bounded {
			free = append(free, s)
			weight += weights[s]
		}
		shares[s] = share
		rest -= share
	}
	left := rest
	for _, s := range free {
		shares[s] = rest * weights[s] / weight
		left -= shares[s]
	}
	remainder := func(s int) int { return rest * weights[s] % weight }
	free = slices.DeleteFunc(free, func(s int) bool { return remainder(s) == 0 })
	stays := func(s int) int { return min(max(0, owned[s]-shares[s]), 1) }
	slices.SortStableFunc(free, func(a, b int) int {
		return cmp.Or(stays(b)-stays(a), cmp.Compare(remainder(b), remainder(a)), cmp.Compare(owned[b], owned[a]))
	})
	if len(free) == 0 {
		return shares
	}
	up := free[:left]
	if zones != nil {
		up = spread(free, zones, remainder, weight, stays, func(s int) int { return owned[s] })
	}
	for _, s := range up {
		shares[s]++
	}
	return shares
}

// level is how many queues a weight gets: the fraction queues/weight.
type level struct{ queues, weight int }

func (l level) compare(other level) int {
	return cmp.Compare(l.queues*other.weight, other.queues*l.weight)
}

// bounded returns the share of a server that is at one of its bounds at the level, or false if its share is in proportion.
func (l level) bounded(b bound, weight int) (share int, bounded bool) {
	switch {
	case weight == 0 || l.compare(level{b.least, weight}) < 0:
		return b.least, true
	case l.compare(level{b.most, weight}) >= 0:
		return b.most, true
	}
	return 0, false
}

// levelOf returns the highest level at which a share reaches a bound, and at which the shares are not more than the total.
// Above it, up to the level of the result, no other share reaches one.
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
