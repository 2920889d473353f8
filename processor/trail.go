package processor

import "sync"

// trail holds the fingerprints of the items that a sweep has been through recently: at least as many as its largest
// page has, and at most about twice as many.
type trail struct {
	mu       sync.Mutex
	young    map[uint64]struct{}
	old      map[uint64]struct{}
	capacity int // fetched items of the largest page
}

// add adds the items of a batch.
func (t *trail) add(fingerprints []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.young == nil {
		t.young, t.old = map[uint64]struct{}{}, map[uint64]struct{}{}
	}
	for _, f := range fingerprints {
		t.young[f] = struct{}{}
	}
	if len(t.young) >= t.capacity {
		t.young, t.old = t.old, t.young
		clear(t.young)
	}
}

// covers reports whether the trail holds all of the fingerprints, which are those of a page of fetched items.
func (t *trail) covers(fingerprints []uint64, fetched int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.capacity = max(t.capacity, fetched)
	for _, f := range fingerprints {
		_, young := t.young[f]
		if _, old := t.old[f]; !young && !old {
			return false
		}
	}
	return true
}
