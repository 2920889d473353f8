package processor

import "slices"

// tryEarly reports whether an item that backs off is executed now nevertheless: something has succeeded since its last
// failure, which was no attempt, or the item is the probe of a cursor. Other items that back off may be the probe of
// the lane; f.backing has them.
func (f *pageFilter) tryEarly(r record, index int) bool {
	switch {
	case r.doubtful && r.last < f.round, f.quota > 0 && f.inOrder:
		return true
	case f.quota > 0:
		f.backing = append(f.backing, int32(index))
	}
	return false
}

// keepSample leaves the items that the lane tries in this round of the outage: items that have not failed alone, spread
// over the page. If there are none, it leaves one item, which is one whose pause is over, or else one that backs off.
// Items whose Discard is due stay, because they are not executed. A cursor begins with its first item, and with the
// dead items before it.
func (f *pageFilter) keepSample() {
	if f.inOrder {
		first := slices.IndexFunc(f.of[fresh], func(i int32) bool { return f.marks == nil || f.marks[i] != passed })
		if first >= 0 {
			f.of[fresh] = f.of[fresh][:first+1]
		}
		return
	}
	untried := slices.Concat(f.of[fresh], f.of[suspected])
	var kept []int32
	switch {
	case len(untried) > 0:
		kept = f.lane.spread(untried, f.quota)
	case len(f.of[retried]) > 0:
		kept = f.lane.spread(f.of[retried], 1)
	default:
		kept = f.lane.spread(f.backing, 1)
	}
	f.more = len(kept) < len(untried)
	f.of[fresh], f.of[suspected], f.of[retried] = nil, nil, nil
	for _, i := range kept {
		f.keep(retried, i, single)
	}
}

// spread returns n of the indexes, at even distances. The first one moves on with each call, so that samples of one
// page find a healthy item wherever it is.
func (l *lane) spread(indexes []int32, n int) []int32 {
	if len(indexes) <= n {
		return indexes
	}
	first, some := l.nextProbe(len(indexes)), make([]int32, n)
	for i := range some {
		some[i] = indexes[(first+i*len(indexes)/n)%len(indexes)]
	}
	return some
}

func (l *lane) nextProbe(n int) int {
	const stride = 7919
	l.probes++
	return l.probes * stride % n
}

// cutToProbe is keepSample for a dealer that is neither Keyed nor Cursored: it leaves one item.
func (c *selectCall) cutToProbe(p *page) {
	if n := p.unstarted(); c.quota > 0 && n > 1 && !c.capabilities.tracksItems() {
		p.keep([]int32{int32(p.next + c.lane.nextProbe(n))})
	}
}

// retryShare is the least ratio of other calls to calls for retries, while a lane has enough other items.
const retryShare = 6

// limitRetries bounds the items that have failed before, so that poison does not take the executors from healthy items
// (X2). A page that is full of other items has retries only now and then: enough for all executors at a time, because a
// page with one more call than there are executors takes twice the time. Another page has about a second of them. The
// rest waits for the next page.
func (f *pageFilter) limitRetries() {
	others, most := len(f.of[fresh])+len(f.of[suspected]), f.wanted
	switch l := f.lane; {
	case f.capabilities.paged && others < f.wanted && f.page.fetched >= f.selection.Limit: // other items are behind the page
		most = max(1, f.wanted/retryShare)
	case others >= f.wanted:
		l.retryCredit += len(f.of[fresh])/f.settings.ExecuteNumber + len(f.of[suspected])
		if most = l.retryCredit / retryShare; most < f.settings.ThreadNumber {
			most = 0
		}
		most = min(most, len(f.of[retried]))
		l.retryCredit = min(l.retryCredit-most*retryShare, retryShare*f.settings.ThreadNumber)
	}
	f.of[retried] = f.of[retried][:min(most, len(f.of[retried]))]
}
