package processor

import "time"

// pageFilter divides the items of a page into ordinary items, items with another mark, and items that are dropped.
type pageFilter struct {
	*selectCall
	page    *page
	inOrder bool // the items of a cursor keep their order
	now     time.Time

	stored map[string]record // of items whose records memory does not hold

	ordinary, marked []int32 // indexes of the items to keep
	backing          []int32 // indexes of the items that back off and may be the probe of the lane
	marks            []mark  // of all items; nil while all are ordinary
}

// filter drops the items that must not be executed now, and marks the items that must be executed in small batches or
// not at all. It asks for keys only if there is something to distinguish. This is never so for a dealer that is neither
// Keyed nor Cursored.
func (f *pageFilter) filter() (err error) {
	if !f.needed() {
		return nil
	}
	if err := f.findKeysInFlight(); err != nil {
		return err
	}
	if f.keys, err = f.page.items.keys(f.keys[:0], 0, f.page.items.size()); err != nil {
		return err
	}
	if f.stored, err = f.findRecords(); err != nil {
		return err
	}
	f.inOrder, f.now = f.capabilities.cursored, time.Now()
	f.lane.failures.mu.Lock()
	f.divideLocked()
	f.lane.failures.mu.Unlock()
	f.apply()
	return nil
}

// needed reports whether any item of the select may not be ordinary.
func (f *pageFilter) needed() bool {
	if len(f.inFlight) > 0 || f.cursor.suspects > 0 || f.probing && f.capabilities.tracksItems() {
		return true
	}
	for _, g := range f.grants {
		if g.failures.any() {
			return true
		}
	}
	return false
}

// findKeysInFlight collects the keys of the items that were in flight when the select began.
func (f *pageFilter) findKeysInFlight() (err error) {
	clear(f.seen)
	for _, s := range f.inFlight {
		if f.keys, err = s.items.keys(f.keys[:0], s.from, s.to); err != nil {
			return err
		}
		if f.seen == nil {
			f.seen = map[string]struct{}{}
		}
		for _, key := range f.keys {
			f.seen[key] = struct{}{}
		}
	}
	return nil
}

// findRecords returns the records of the items that memory does not hold.
func (f *pageFilter) findRecords() (stored map[string]record, err error) {
	for n, g := range f.grants {
		if !g.failures.partial.Load() {
			continue
		}
		var keys []string
		for i, key := range f.keys {
			if _, inFlight := f.seen[key]; !inFlight && (f.page.partOf == nil || f.page.partOf[i] == int32(n)) {
				keys = append(keys, key)
			}
		}
		found, err := f.lane.failures.find(&f.call, g, keys)
		if err != nil {
			return nil, err
		}
		stored = merge(stored, found)
	}
	return stored, nil
}

// divideLocked finds what becomes of each item. It needs the lock of the lane's failures.
func (f *pageFilter) divideLocked() {
	for i, key := range f.keys {
		if _, inFlight := f.seen[key]; inFlight {
			continue
		}
		g := f.parts[0].grant
		if f.page.partOf != nil {
			g = f.parts[f.page.partOf[i]].grant
		}
		r, held := g.failures.recallLocked(key)
		known := held
		if !held {
			r, known = f.stored[key]
		}
		m, wait := f.classifyLocked(g, key, i, r, known)
		if wait && !held {
			f.lane.unheld++
		}
		switch {
		case wait && f.inOrder:
			return // the items behind it wait too
		case wait:
		case m == ordinary || f.inOrder:
			f.ordinary = f.keep(f.ordinary, i, m)
		default:
			f.marked = f.keep(f.marked, i, m)
		}
	}
}

// classifyLocked returns the mark of an item, or that it must wait. ok reports whether the item has the record r.
func (f *pageFilter) classifyLocked(g *grant, key string, index int, r record, ok bool) (m mark, wait bool) {
	switch {
	case ok && r.dead && f.inOrder:
		return passed, false
	case ok && r.dead, ok && f.countsOutLocked(g, key, r):
		return ordinary, true
	case ok && r.retryAt.After(f.now) && !f.tryEarly(r, index):
		if f.retryAt.IsZero() || r.retryAt.Before(f.retryAt) {
			f.retryAt = r.retryAt
		}
		return ordinary, true
	case ok && r.discardDue:
		f.page.countRetry(r)
		return discardDue, false
	case ok && r.batchLimit > 0:
		f.untested++
		return mark(r.batchLimit), false
	case ok:
		f.page.countRetry(r)
		return mark(max(1, r.batchLimit)), false
	case index < f.cursor.suspects:
		return mark(f.cursor.batchLimit), false
	}
	f.untested++
	return ordinary, false
}

// keep appends i to indexes and notes its mark.
func (f *pageFilter) keep(indexes []int32, i int, m mark) []int32 {
	if m != ordinary {
		if f.marks == nil {
			f.marks = make([]mark, len(f.keys))
		}
		f.marks[i] = m
	}
	if indexes == nil {
		indexes = make([]int32, 0, len(f.keys))
	}
	return append(indexes, int32(i))
}

// apply drops the other items. Marked items come last, unless the items are in order.
func (f *pageFilter) apply() {
	if f.probing {
		f.keepProbe()
	}
	if f.marks == nil && len(f.ordinary) == len(f.keys) {
		return
	}
	f.page.marks = f.marks
	f.page.keep(append(f.ordinary, f.marked...))
}
