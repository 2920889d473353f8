package plan

import (
	"cmp"
	"math"
	"slices"
)

// NoLimit is a share without a limit: NULL in the table.
const NoLimit = math.MaxInt32

// Share is a server's part of max_in_flight: how many calls of Execute it may have in flight (P10).
type Share struct {
	UUID    string
	Queues  int // that the server owns when all requests are carried out
	Granted int // the most calls that it may have in flight
	Target  int // what Granted is to become
}

// ShareOut sets the targets of all servers of a task type and raises what is granted. The order of the shares, the
// oldest server first, decides between equals. limit is max_in_flight; 0 means no limit.
//
// The targets follow from the queues. ShareOut never lowers what is granted: a server lowers its own number as its
// calls end. ShareOut raises it only while the sum over all servers is at most the limit (P10). Sharing out the result
// again changes nothing.
func ShareOut(limit int, shares []Share) []Share {
	next := slices.Clone(shares)
	if limit == 0 {
		for i := range next {
			next[i].Granted, next[i].Target = NoLimit, NoLimit
		}
		return next
	}
	for i, target := range targets(limit, shares) {
		next[i].Target = target
	}
	return Raise(limit, next)
}

// targets divides the limit among the servers that have queues, in proportion to their queues by the largest remainder.
// Each gets at least one call; if there are more servers than calls, the servers with most queues do. Among equals, the
// servers whose targets are larger already come first, so that few calls move.
func targets(limit int, shares []Share) []int {
	list := make([]int, len(shares))
	var working []int
	for i, s := range shares {
		if s.Queues > 0 {
			working = append(working, i)
		}
	}
	slices.SortStableFunc(working, func(a, b int) int {
		return cmp.Or(cmp.Compare(shares[b].Queues, shares[a].Queues), cmp.Compare(shares[b].Target, shares[a].Target))
	})
	working = working[:min(limit, len(working))]
	rest, queues := int64(limit-len(working)), int64(0)
	for _, i := range working {
		list[i] = 1
		queues += int64(shares[i].Queues)
	}
	left := rest
	for _, i := range working {
		n := rest * int64(shares[i].Queues) / queues
		list[i] += int(n)
		left -= n
	}
	slices.SortStableFunc(working, func(a, b int) int {
		return cmp.Compare(rest*int64(shares[b].Queues)%queues, rest*int64(shares[a].Queues)%queues)
	})
	for k := range min(int(left), len(working)) {
		list[working[k]]++
	}
	return list
}

// Raise grants the calls that no server has to the servers below their targets. A server without any gets one first.
func Raise(limit int, shares []Share) []Share {
	next := slices.Clone(shares)
	free := int64(limit)
	for _, s := range shares {
		free -= int64(s.Granted)
	}
	grant := func(s *Share, most int) {
		n := max(0, min(free, int64(most), int64(s.Target-s.Granted)))
		s.Granted += int(n)
		free -= n
	}
	for i := range next {
		if next[i].Granted == 0 {
			grant(&next[i], 1)
		}
	}
	for i := range next {
		grant(&next[i], limit)
	}
	return next
}
