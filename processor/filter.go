package processor

import (
	"slices"
	"time"
)

// class says what an item of a page is to be executed for. A page has its items in this order, unless they are in order
// of a cursor: then all are fresh.
type class int

const (
	fresh     class = iota // it has not failed
	suspected              // it was in a batch that failed
	retried                // it has failed alone
	discarded              // only its Discard is missing
	classes
	waits // it is not executed now
)

// pageFilter divides the items of a page into classes, and drops those that wait.
type pageFilter struct {
	*selectCall
	page    *page
	inOrder bool // the items of a cursor keep their order
	now     time.Time

	stored map[string]record // of items whose records memory does not hold

	of      [classes][]int32 // indexes of the items to keep
	backing []int32          // indexes of the items that back off and may be the probe of the lane
	marks   []mark           // of all items; nil while all are ordinary
}

// filter drops the items that must not be executed now, and marks the items that must be executed in small batches or
// not at all. It asks for keys only if there is something to distinguish. This is never so for a dealer that is neither
// Keyed nor Cursored.
func (f *pageFilter) filter() (err error) {
	if !f.needed() {
		f.untested = f.page.unstarted()
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
	if len(f.inFlight) > 0 || f.cursor.suspects > 0 || f.quota > 0 && f.capabilities.tracksItems() {
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
		m, c := f.classifyLocked(g, key, i, r, known)
		if known && !held {
			f.lane.unheld++
		}
		switch {
		case c == waits && f.inOrder:
			return // the items behind it wait too
		case c == waits:
			continue
		case c == retried || c == discarded:
			if f.inOrder && r.failedAlone() && !r.dead {
				f.page.retries++
			}
		default:
			f.untested++
		}
		if f.inOrder {
			c = fresh
		}
		f.keep(c, int32(i), m)
	}
}

// classifyLocked returns the class and the mark of an item. ok reports whether the item has the record r.
func (f *pageFilter) classifyLocked(g *grant, key string, index int, r record, ok bool) (mark, class) {
	switch {
	case !ok && index < f.cursor.suspects:
		return mark(f.cursor.batchLimit), retried
	case !ok:
		return ordinary, fresh
	case r.dead && f.inOrder:
		return passed, retried
	case f.passesLocked(g, key, r):
		return ordinary, waits
	case r.retryAt.After(f.now) && !f.tryEarly(r, index):
		if f.retryAt.IsZero() || r.retryAt.Before(f.retryAt) {
			f.retryAt = r.retryAt
		}
		return ordinary, waits
	case r.discardDue:
		return discardDue, discarded
	case r.batchLimit > 0:
		return mark(r.batchLimit), suspected
	case r.doubtful && r.attempts == 0: // after an outage, these are many healthy items
		return mark(f.settings.ExecuteNumber), retried
	}
	return single, retried
}

// keep adds the item at an index to a class and notes its mark.
func (f *pageFilter) keep(c class, i int32, m mark) {
	if m != ordinary {
		if f.marks == nil {
			f.marks = make([]mark, len(f.keys))
		}
		f.marks[i] = m
	}
	if f.of[c] == nil {
		f.of[c] = make([]int32, 0, len(f.keys))
	}
	f.of[c] = append(f.of[c], i)
}

// apply drops the other items. Items that are not fresh come last, unless the items are in order.
func (f *pageFilter) apply() {
	if f.quota > 0 {
		f.keepSample()
	} else {
		f.limitRetries()
	}
	if !f.inOrder {
		f.page.retries = len(f.of[retried]) + len(f.of[discarded])
	}
	if f.marks == nil && len(f.of[fresh]) == len(f.keys) {
		return
	}
	f.page.marks = f.marks
	f.page.keep(slices.Concat(f.of[:]...))
}
