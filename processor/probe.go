package processor

import "slices"

// tryEarly reports whether an item that backs off is executed now nevertheless: the breaker has closed since its last
// attempt, or the item is the probe of a cursor. Other items that back off may be the probe of the lane; f.backing has
// them.
func (f *pageFilter) tryEarly(r record, index int) bool {
	switch {
	case r.closes < f.closes, f.probing && f.inOrder:
		return true
	case f.probing:
		f.backing = append(f.backing, int32(index))
	}
	return false
}

// keepProbe leaves one item to execute, the probe of the lane: an item that has not failed alone. If there is none, it
// is an item whose pause is over, and otherwise an item that backs off. The items take turns. Items whose Discard is
// due stay, because they are not executed. A cursor begins with its first item, and with the dead items before it.
func (f *pageFilter) keepProbe() {
	if f.inOrder {
		first := slices.IndexFunc(f.ordinary, func(i int32) bool { return f.marks == nil || f.marks[i] != passed })
		if first >= 0 {
			f.ordinary = f.ordinary[:first+1]
		}
		return
	}
	var discards, tries []int32
	for _, i := range f.marked {
		if f.marks[i] == discardDue {
			discards = append(discards, i)
		} else {
			tries = append(tries, i)
		}
	}
	switch {
	case len(f.ordinary) > 0:
		f.ordinary, f.marked = f.probe(f.ordinary), discards
	case len(tries) > 0:
		f.marked = append(f.probe(tries), discards...)
	case len(f.backing) > 0:
		f.marked = append(f.keep(nil, int(f.probe(f.backing)[0]), single), discards...)
	}
}

// probe returns the item whose turn it is, as a list of one. The stride spreads the probes over a page, so that they
// find a healthy item among failing ones.
func (f *pageFilter) probe(indexes []int32) []int32 {
	i := f.lane.nextProbe(len(indexes))
	return indexes[i : i+1 : i+1]
}

func (l *lane) nextProbe(n int) int {
	const stride = 7919
	l.probes++
	return l.probes * stride % n
}

// cutToProbe is keepProbe for a dealer that is neither Keyed nor Cursored.
func (c *selectCall) cutToProbe(p *page) {
	if n := p.unstarted(); c.probing && n > 1 && !c.capabilities.tracksItems() {
		p.keep([]int32{int32(p.next + c.lane.nextProbe(n))})
	}
}

// isFree reports whether a failed attempt of an item does not count: the processor has executed the item before its
// pause was over, as a probe or after an outage. Attempts therefore count at the pace of the retry policy, however long
// an outage lasts.
func (b *batch) isFree(r record, err error) bool {
	return r.attempts > 0 && !r.discardDue && r.retryAt.After(b.began) && !isPermanent(err)
}
