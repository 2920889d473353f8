package processor

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// An order key stands here for its hash: 0 for no key. Two keys with one hash wait for each other, which is slower and
// still in order.

// keyOrder decides which items of a page of an Ordered dealer are executed (X10). An item waits if an item of its key
// before it, on this page or on a page before, is not executed now or may fail. Only its select uses it. It is nil for
// another dealer.
type keyOrder struct {
	behind     *keysBehind
	sample     bool // the circuit breaker is open: one item of each key
	deadPasses bool // a dead item does not hold its key
	most       int  // how many items of one key the page may have

	leftOut []uint64 // the hashes of Selection.Held
	once    bool     // one of them is left out for this select only, so that others have a turn
	keys    []uint64 // of each item that the dealer returned
	left    []bool   // of each of these items: it is not executed now
	last    map[uint64]lastOfKey
	blocked map[uint64]blockedKey
	waiting int // items that wait only for others
}

// ordering is what a lane of an Ordered dealer knows of its order keys. Only its select uses held; the scheduler's lock
// guards the rest.
type ordering struct {
	behind  *keysBehind // nil before the first select
	waiting int         // how many keys have items that wait for others, as far as the last select knows
	held    heldKeys
}

// leavesOutOnce reports whether the select leaves out a key only once, so that the next one must follow at once.
func (o *keyOrder) leavesOutOnce() bool { return o != nil && o.once }

// newKeyOrderLocked returns the order of the next page; nil if the dealer is not Ordered.
func (l *lane) newKeyOrderLocked(c capabilities) *keyOrder {
	if !c.Ordered {
		return nil
	}
	if l.ordering.behind == nil {
		l.ordering.behind = &keysBehind{}
	}
	l.ordering.behind.left.addAll(&l.ordering.behind.failed)
	l.ordering.behind.failed = keySet{}
	return &keyOrder{blocked: map[uint64]blockedKey{}, behind: l.ordering.behind}
}

// prepare begins a page. At the start of the source nothing is behind. A page has at most as many items of one key as
// an executor gets of it, so that a key with many items leaves room for others.
func (o *keyOrder) prepare(c *selectCall) {
	if o == nil {
		return
	}
	if c.selection.After == "" {
		o.behind = &keysBehind{}
	}
	o.sample, o.deadPasses = c.quota > 0, c.settings.DeadPasses && c.lane.sweep == nil
	o.most = max(1, c.reach.wanted/c.settings.ThreadNumber)
	if c.capabilities.atomic {
		o.most = max(o.most, c.settings.ExecuteNumber)
	}
	for key, k := range c.lane.ordering.held.take(c.began) {
		if o.behind.leaveOut(key, k) && k.until != forever {
			c.retryAt = earlier(c.retryAt, k.until)
		}
	}
	for key, k := range o.behind.leftOut {
		c.selection.Held, o.leftOut = append(c.selection.Held, key), append(o.leftOut, k.hash)
		o.once = o.once || k.once
	}
	slices.Sort(c.selection.Held)
}

// lastOfKey is the last item of a key that the page executes, and how many it executes.
type lastOfKey struct {
	class class
	mark  mark
	count int
}

// blockedKey says since which item of a page the items of a key are not executed, and why.
type blockedKey struct {
	index int       // of the first item of the key that waits for another one; -1 if there is none yet
	until time.Time // until when the key is held at least; zero if that is not known
	once  bool      // the page has enough items of the key
}

// forever is when the key of a dead item is free again: its record is changed or deleted.
var forever = time.Unix(1<<60, 0)

// block makes all further items of a key wait.
func (o *keyOrder) block(key uint64, until time.Time, once bool) {
	if _, ok := o.blocked[key]; !ok {
		o.blocked[key] = blockedKey{index: -1, until: until, once: once}
	}
}

// blockAll blocks the keys of items that were in flight when the select began: the page may not have them, and it is
// not known how they end.
func (o *keyOrder) blockAll(keys []uint64) {
	for _, key := range keys {
		if key != 0 {
			o.block(key, time.Time{}, false)
		}
	}
}

// judge returns the class of an item under the order. class and m are those that its record r says. It is called for
// the items of the page in their order.
func (o *keyOrder) judge(i int, class class, m mark, r record) class {
	if o == nil || o.keys[i] == 0 {
		return class
	}
	key := o.keys[i]
	b, blocked := o.blocked[key]
	last, follows := o.last[key]
	switch {
	case blocked || o.behind.left.has(key):
		if o.waiting++; b.index < 0 || !blocked {
			b.index = i
			o.blocked[key] = b
		}
		return held
	case class == over && o.deadPasses:
		o.keys[i] = 0
		return class
	case class == over || class == givenUp:
		o.block(key, forever, false)
		return class
	case class == backsOff && r.doubtful: // it may be executed before the time of its record
		o.block(key, time.Time{}, false)
		return class
	case class == backsOff:
		o.block(key, r.retryAt, false)
		return class
	case !follows, last.class == class && last.mark == m && class <= suspected && !o.sample && last.count < o.most:
		o.last[key] = lastOfKey{class, m, last.count + 1}
		return class
	}
	o.block(key, time.Time{}, last.class == fresh && class == fresh && !o.sample)
	return o.judge(i, class, m, r)
}

// keep notes which items of the page are executed.
func (o *keyOrder) keep(indexes []int32) {
	if o == nil {
		return
	}
	o.left = make([]bool, len(o.keys))
	for i := range o.left {
		o.left[i] = true
	}
	for _, i := range indexes {
		o.left[i] = false
	}
}

// leaveBehind adds the keys of the items that the page does not execute to the keys that the pass leaves behind. It
// reports whether they are at most as many as given.
func (o *keyOrder) leaveBehind(most int) bool {
	for i, key := range o.keys {
		if o.left[i] {
			b, blocked := o.blocked[key]
			o.behind.left.add(key, blocked && b.index >= 0)
		}
	}
	return len(o.behind.left.waits) <= most
}

// waitingKeys returns how many keys have items that wait for others, as far as the pass has come.
func (o *keyOrder) waitingKeys() int {
	n := o.behind.left.count
	for key, b := range o.blocked {
		if b.index >= 0 && !o.behind.left.has(key) {
			n++
		}
	}
	for _, key := range o.leftOut {
		if _, onPage := o.blocked[key]; !onPage && !o.behind.left.has(key) {
			n++
		}
	}
	return n
}

// maxKeysBehind bounds the order keys that a pass leaves behind: some tens of megabytes. Beyond it the pass does not go
// on, so that no item is executed before one of its key.
const maxKeysBehind = 1_000_000

// keysBehind are the order keys of items that a pass has left behind its position without executing them, or that have
// failed there. Later items of these keys wait for the next pass, which has keys of its own: a batch that outlives its
// pass adds its keys to the old ones.
type keysBehind struct {
	left   keySet // only the lane's select uses them
	failed keySet // since the last select was claimed; the scheduler's lock guards them

	// leftOut are the keys that a select of the pass was to leave out, at most maxHeld. The next selects of the pass leave
	// them out, too. The database may take more keys for equal than we do, such as a and A. Then the select has left out
	// items of A behind the position, and we do not know it.
	leftOut heldKeys
}

// leaveOut makes the selects of the pass leave out a key. It returns false if they leave out as many as they may.
func (b *keysBehind) leaveOut(key string, k heldKey) bool {
	if _, ok := b.leftOut[key]; !ok && len(b.leftOut) >= maxHeld {
		return false
	}
	if b.leftOut == nil {
		b.leftOut = heldKeys{}
	}
	b.leftOut[key] = k
	return true
}

// keySet is a set of order keys. waits says of each whether an item waits for another one of its key.
type keySet struct {
	waits map[uint64]bool
	count int // keys for which another item waits
}

func (s *keySet) has(key uint64) bool {
	_, ok := s.waits[key]
	return ok
}

func (s *keySet) add(key uint64, waits bool) {
	switch {
	case key == 0:
		return
	case s.waits == nil:
		s.waits = map[uint64]bool{}
	}
	if waits = waits || s.waits[key]; waits && !s.waits[key] {
		s.count++
	}
	s.waits[key] = waits
}

// addAll moves the keys of another set into this one.
func (s *keySet) addAll(other *keySet) {
	for key, waits := range other.waits {
		s.add(key, waits)
	}
}

// heldKeys are the order keys that the next select may leave out, because none of their items would be executed: at
// most maxHeld keys for which a page had items that wait. Only the lane's select uses it.
type heldKeys map[string]heldKey

type heldKey struct {
	hash  uint64
	until time.Time
	once  bool      // for one select only, so that other keys have a turn
	since time.Time // when a page has shown it
}

// maxHeld is how many keys Selection.Held has at most.
const maxHeld = 1_000

// note adds the keys of a page for which items wait. text returns the order key of an item.
func (h *heldKeys) note(o *keyOrder, now time.Time, text func(i int) (string, error)) error {
	for _, b := range o.blocked {
		if b.index < 0 || !b.once && !b.until.After(now) || len(*h) >= maxHeld {
			continue
		}
		key, err := text(b.index)
		if err != nil {
			return err
		}
		if *h == nil {
			*h = heldKeys{}
		}
		(*h)[key] = heldKey{o.keys[b.index], b.until, b.once, now}
	}
	return nil
}

// take returns the keys that are held now. It forgets all other keys, and the keys that are held for one select. After
// a minute, a page shows again whether a key is held: the record that holds it may be gone.
func (h heldKeys) take(now time.Time) heldKeys {
	maps.DeleteFunc(h, func(_ string, k heldKey) bool {
		return !k.once && (!k.until.After(now) || now.Sub(k.since) >= askAgain)
	})
	held := maps.Clone(h)
	maps.DeleteFunc(h, func(_ string, k heldKey) bool { return k.once })
	return held
}

// keyQueues remembers the queues of some order keys, to find a key that is in two queues.
type keyQueues struct {
	mu sync.Mutex
	of map[uint64]keyQueue
}

// keyQueue is a queue under one division of items into queues. A run that has begun before the number of queues was
// changed goes on with its own number.
type keyQueue struct {
	id        string
	partition int64
	total     int
}

// mostKeyQueues bounds keyQueues.
const mostKeyQueues = 10_000

// see adds the keys of a page. It returns the ID of another queue that has one of them under the same division of items
// into queues; empty if there is none.
func (k *keyQueues) see(keys []uint64, s Selection) (other string) {
	q := keyQueue{s.Queue.ID, s.Queue.Partition, s.Total}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil || len(k.of) > mostKeyQueues {
		k.of = map[uint64]keyQueue{}
	}
	for _, key := range keys {
		if key == 0 {
			continue
		}
		if before, ok := k.of[key]; ok && before.id != q.id && before.partition == q.partition && before.total == q.total {
			other = before.id
		}
		k.of[key] = q
	}
	return other
}

// chains are the unstarted items of a page of an Ordered dealer. An item is free if no item of its key is before it on
// the page or in flight. The scheduler's lock guards them.
type chains struct {
	atomic  bool    // a batch may have several items of a key
	next    []int32 // of each item of the page: the next one of its key, or 0 if there is none
	free    []int32 // in the order in which they became free
	waiting int     // the number of unstarted items that are not free
	started []bool
	buffer  []int32
}

func newChains(keys []uint64, atomic bool) *chains {
	n := len(keys)
	c := &chains{atomic: atomic, next: make([]int32, n), free: make([]int32, 0, n), started: make([]bool, n)}
	last := make(map[uint64]int32, n)
	for i, key := range keys {
		before, ok := last[key]
		last[key] = int32(i)
		if ok && key != 0 {
			c.next[before] = int32(i)
			c.waiting++
		} else {
			c.free = append(c.free, int32(i))
		}
	}
	return c
}

// batch returns the indexes of the items of the next batch, which has at most n items. markOf returns the mark of an
// item. The result is valid until the next call.
func (c *chains) batch(n int, markOf func(i int32) mark) []int32 {
	c.buffer = c.buffer[:0]
	for _, i := range c.free {
		m := markOf(i)
		if len(c.buffer) >= n || m != markOf(c.free[0]) {
			break
		}
		c.buffer = append(c.buffer, i)
		for j := c.next[i]; c.atomic && m >= ordinary && j != 0 && len(c.buffer) < n && markOf(j) == m; j = c.next[j] {
			c.buffer = append(c.buffer, j)
		}
	}
	return c.buffer
}

// take removes the items of a batch.
func (c *chains) take(batch []int32) {
	freed := 0
	for n, i := range batch {
		if n == 0 || c.next[batch[n-1]] != i {
			freed++
		}
		c.started[i] = true
	}
	c.free = c.free[freed:]
	c.waiting -= len(batch) - freed
}

// end ends a batch: the next item of a key is free if the batch's item of that key is done, and dropped with all that
// follow it if not. isDone says whether item n of the batch is done. It returns the number of items that it has
// dropped.
func (c *chains) end(batch []int32, isDone func(n int) bool) (dropped int) {
	for n, i := range batch {
		next := c.next[i]
		switch {
		case next == 0, n+1 < len(batch) && batch[n+1] == next:
		case isDone(n):
			c.free = append(c.free, next)
			c.waiting--
		default:
			for ; next != 0; next = c.next[next] {
				dropped++
			}
		}
	}
	c.waiting -= dropped
	return dropped
}

func (c *chains) unstarted() int { return len(c.free) + c.waiting }

// drop drops all unstarted items.
func (c *chains) drop() {
	clear(c.next)
	c.free, c.waiting = nil, 0
}
