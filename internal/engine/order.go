package engine

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dutyrota/rota/processor"
)

// orderStage keeps the items of an Ordered dealer with one order key in their order (X10).
var orderStage = stage{
	reset:   func(l *lane) { l.ordering.held = nil },
	claim:   func(c *selectCall, _ time.Time, _ *scheduler) { c.order = &keyOrder{blocked: map[string]blockedKey{}} },
	prepare: (*selectCall).prepareOrder,
	read: func(c *selectCall, returned items, p *page) (err error) {
		if p.order, err = returned.orderKeys(); err != nil {
			return err
		}
		c.order.keys, c.order.last = p.order, make(map[string]lastOfKey, len(p.order))
		for _, s := range c.inFlight {
			c.order.blockAll(s.order[s.from:s.to])
		}
		return nil
	},
	judge: func(c *selectCall, i int, class class, m mark, r record) class { return c.order.judge(i, class, m, r) },
	page: func(c *selectCall, _ items, p *page) error {
		chains := newChains(p.order, c.capabilities.atomic)
		p.handout = chains
		c.order.keep(c.kept)
		c.order.held.leaveOut(c.order.blocked, c.began)
		if c.goesOn {
			c.leaveKeysBehind(chains)
		}
		c.alertDividedKey()
		return nil
	},
	finish: func(c *selectCall, _ *scheduler) {
		if c.outcome == done {
			c.lane.ordering.waiting = c.order.waitingKeys()
		}
		freed := c.lane.batches < len(c.inFlight) // items may have waited for the batch that has ended during the select
		c.waiting = c.order.waiting > 0
		c.more = c.more || c.order.once || c.waiting && freed
	},
	end: func(b *batch, _ *scheduler) { b.frees = b.outcome == done && b.lane.ordering.waiting > 0 },
}

// keyOrder decides which items of a page of an Ordered dealer are executed (X10). An item waits if an item of its key
// before it, on this page or on a page before, is not executed now or may fail. An item with the empty key is in no
// order. Only its select uses it.
type keyOrder struct {
	sample     bool // the circuit breaker is open: one item of each key
	deadPasses bool // an item whose death is recorded does not hold its key
	most       int  // how many items of one key the page may have

	held    *heldKeys // of the lane
	once    bool      // a key is left out for the first time only so that others have a turn
	keys    []string  // of each item that the dealer returned
	left    []bool    // of each of these items: it is not executed now
	last    map[string]lastOfKey
	blocked map[string]blockedKey
	waiting int // items that wait only for others
}

// ordering is what a lane of an Ordered dealer knows of its order keys.
type ordering struct {
	held       *heldKeys // nil before the first select; only the lane's select uses it
	comparedAt time.Time // when the keys of a page were last compared with those of other queues; likewise
	waiting    int       // how many keys have items that wait for others, as far as the last select knows
}

// prepareOrder begins a page. A page has at most as many items of one key as an executor gets of it, so that a key with
// many items leaves room for others.
func (c *selectCall) prepareOrder() {
	l, o := &c.lane.ordering, c.order
	if c.selection.After == "" { // at the start of the source nothing is behind
		l.held = l.held.restart(c.began)
	}
	o.held, o.sample, o.deadPasses = l.held, c.quota > 0, c.settings.DeadPasses && c.lane.sweep == nil
	o.most = max(1, c.wanted/c.settings.ThreadNumber)
	if c.capabilities.atomic {
		o.most = max(o.most, c.settings.ExecuteNumber)
	}
	for key, k := range o.held.leftOut {
		c.selection.Held = append(c.selection.Held, key)
		if o.once = o.once || k.once; !k.once && k.until != forever {
			c.retryAt = earlier(c.retryAt, k.until)
		}
		k.once = false
		o.held.leftOut[key] = k
	}
	slices.Sort(c.selection.Held)
	c.judges, c.partial = true, o.once
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
func (o *keyOrder) block(key string, until time.Time, once bool) {
	if _, ok := o.blocked[key]; !ok {
		o.blocked[key] = blockedKey{index: -1, until: until, once: once}
	}
}

// blockAll blocks the keys of items that were in flight when the select began: the page may not have them, and it is
// not known how they end.
func (o *keyOrder) blockAll(keys []string) {
	for _, key := range keys {
		if key != "" {
			o.block(key, time.Time{}, false)
		}
	}
}

// judge returns the class of an item under the order. class and m are those that its record r says. It is called for
// the items of the page in their order.
func (o *keyOrder) judge(i int, class class, m mark, r record) class {
	if o.keys[i] == "" {
		return class
	}
	key := o.keys[i]
	b, blocked := o.blocked[key]
	last, follows := o.last[key]
	switch {
	case blocked || o.held.isBehind(key):
		if o.waiting++; b.index < 0 || !blocked {
			b.index = i
			o.blocked[key] = b
		}
		return held
	case o.deadPasses && r.dead && !r.unsaved(): // also while its Discard is due or backs off
		o.keys[i] = ""
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
	o.left = make([]bool, len(o.keys))
	for i := range o.left {
		o.left[i] = true
	}
	for _, i := range indexes {
		o.left[i] = false
	}
}

// leaveKeysBehind makes the pass leave behind the keys of the items that the page does not execute now, and of those
// that it will not have executed to the end. If these are too many, the pass does not go on.
func (c *selectCall) leaveKeysBehind(chains *chains) {
	o := c.order
	for i, key := range o.keys {
		if o.left[i] {
			b, blocked := o.blocked[key]
			o.held.leaveBehind(key, blocked && b.index >= 0)
		}
	}
	if o.held.size() <= c.memory.keysBehind {
		chains.behind = o.held
		return
	}
	c.goesOn = false
	c.remindQueue(Alert{Kind: AlertParked, Subject: "order keys", Text: fmt.Sprintf(
		"items of more than %d order keys of queue %s wait for one that has failed: "+
			"selects do not go on behind them and may miss others", c.memory.keysBehind, c.queueID())})
}

// waitingKeys returns how many keys have items that wait for others, as far as the pass has come.
func (o *keyOrder) waitingKeys() int {
	n := o.held.waiting
	for key, b := range o.blocked {
		if b.index >= 0 && !o.held.isBehind(key) {
			n++
		}
	}
	for key := range o.held.leftOut {
		if _, onPage := o.blocked[key]; !onPage && !o.held.isBehind(key) {
			n++
		}
	}
	return n
}

// heldKeys are order keys whose items are not executed before a select has seen them from the start of the source
// again. Each pass of a lane has its own, so a batch that outlives its pass adds its keys to the old ones.
type heldKeys struct {
	// leftOut are the keys that the selects of the pass leave out, at most maxHeld: those for which a page had items that
	// wait. A key stays until the pass ends, whatever becomes of its items, because a select that has left it out has not
	// seen what is behind the position. The database may take more keys for equal than we do, such as a and A: then that
	// holds for items of A, too, and we do not know it. Only the lane's select uses it.
	leftOut map[string]leftOutKey

	mu sync.Mutex // a batch may end during a select

	// behind are the keys of items that the pass has left behind its position without executing them, or that have failed
	// there: at most maxKeysBehind. Each says whether another item of the key waits.
	behind  map[string]bool
	waiting int // keys for which another item waits
}

type leftOutKey struct {
	until time.Time // until when the key is held at least
	once  bool      // no select has left it out yet, and the next one does only so that other keys have a turn
	since time.Time // when a page has shown it
}

const (
	// maxHeld is how many keys Selection.Held has at most.
	maxHeld = 1_000

	// maxKeysBehind bounds the order keys that a pass leaves behind: some tens of megabytes. Beyond it the pass does not
	// go on, so that no item is executed before one of its key.
	maxKeysBehind = 1_000_000
)

// restart returns the keys of a new pass. It goes on leaving out the keys that are still held. After a minute a page
// shows again whether a key is: the record that holds it may be gone.
func (h *heldKeys) restart(now time.Time) *heldKeys {
	next := &heldKeys{leftOut: map[string]leftOutKey{}, behind: map[string]bool{}}
	if h == nil {
		return next
	}
	for key, k := range h.leftOut {
		if k.once || k.until.After(now) && now.Sub(k.since) < askAgain {
			next.leftOut[key] = k
		}
	}
	return next
}

// leaveOut makes the next selects leave out the keys for which the page has items that wait.
func (h *heldKeys) leaveOut(blocked map[string]blockedKey, now time.Time) {
	for key, b := range blocked {
		if b.index >= 0 && (b.once || b.until.After(now)) && len(h.leftOut) < maxHeld {
			h.leftOut[key] = leftOutKey{b.until, b.once, now}
		}
	}
}

// isBehind reports whether the pass has left the key behind.
func (h *heldKeys) isBehind(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.behind[key]
	return ok
}

// size returns how many keys the pass has left behind.
func (h *heldKeys) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.behind)
}

// leaveBehind makes the items of a key wait for the next pass. waits says that there is one that waits for another.
func (h *heldKeys) leaveBehind(key string, waits bool) {
	if key == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if before := h.behind[key]; waits && !before {
		h.waiting++
	} else {
		waits = before
	}
	h.behind[key] = waits
}

// alertDividedKey sends an alert if an order key of the page was on a page of another queue: its items are in no order
// then. It looks at one page a minute.
func (c *selectCall) alertDividedKey() {
	l := &c.lane.ordering
	if c.began.Sub(l.comparedAt) < compareEvery {
		return
	}
	l.comparedAt = c.began
	if other := c.keyQueues.see(c.order.keys, c.selection); other != "" {
		c.remindQueue(Alert{Kind: AlertKey, Text: fmt.Sprintf(
			"queue %s has items with an order key that queue %s has too, so they are in no order: "+
				"does Select divide by the order key?", c.queueID(), other)})
	}
}

// keyQueues remembers the queues of some order keys, to find a key that is in two queues.
type keyQueues struct {
	mu sync.Mutex
	of map[string]keyQueue
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
func (k *keyQueues) see(keys []string, s processor.Selection) (other string) {
	q := keyQueue{s.Queue.ID, s.Queue.Partition, s.Total}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil || len(k.of) > mostKeyQueues {
		k.of = map[string]keyQueue{}
	}
	for _, key := range keys {
		if key == "" {
			continue
		}
		if before, ok := k.of[key]; ok && before.id != q.id && before.partition == q.partition && before.total == q.total {
			other = before.id
		}
		k.of[key] = q
	}
	return other
}
