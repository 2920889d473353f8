package engine

import "slices"

// chains are the unstarted items of a page of an Ordered dealer. An item is free if no item of its key is before it on
// the page or in flight. The scheduler's lock guards them.
type chains struct {
	atomic  bool    // a batch may have several items of a key
	next    []int32 // of each item of the page: the next one of its key, or 0 if there is none
	free    []int32 // in the order in which they became free
	waiting int     // the number of unstarted items that are not free
	started []bool
	buffer  []int32
	behind  *heldKeys // of the pass, if that has moved behind the page; else nil
}

func newChains(keys []string, atomic bool) *chains {
	n := len(keys)
	c := &chains{atomic: atomic, next: make([]int32, n), free: make([]int32, 0, n), started: make([]bool, n)}
	last := make(map[string]int32, n)
	for i, key := range keys {
		before, ok := last[key]
		last[key] = int32(i)
		if ok && key != "" {
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

func (c *chains) unstarted() int { return len(c.free) + c.waiting }

// startable reports whether an item is free: the others may wait for one that is in flight.
func (c *chains) startable() bool { return len(c.free) > 0 }

func (c *chains) peek(p *page, n int) (size int, m mark) {
	if m = p.markOf(c.free[0]); m != ordinary {
		n = min(n, max(1, int(m)))
	}
	return len(c.batch(n, p.markOf)), m
}

// take starts a batch. If its items are not side by side on the page, the batch has its own list of them.
func (c *chains) take(p *page, n int) span {
	indexes := slices.Clone(c.batch(n, p.markOf))
	c.remove(indexes)
	first := int(indexes[0])
	if int(indexes[len(indexes)-1]) == first+len(indexes)-1 && slices.IsSorted(indexes) {
		return span{p.pageItems, first, first + len(indexes), indexes}
	}
	return span{p.picked(indexes), 0, len(indexes), indexes}
}

// remove removes the items of a batch.
func (c *chains) remove(batch []int32) {
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

// end ends a batch: the next item of a key is free if the batch's item of that key is done. If not, all items that
// follow it return to the source, and so do the later items of its key on the pages behind this one.
func (c *chains) end(b *batch) (dropped int) {
	for n, i := range b.indexes {
		next, isDone := c.next[i], b.itemDone(n)
		if c.behind != nil && !isDone {
			c.behind.leaveBehind(b.order[b.from+n], false)
		}
		switch {
		case next == 0, n+1 < len(b.indexes) && b.indexes[n+1] == next:
		case isDone:
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

// drop drops all unstarted items. The later items of their keys wait for the next pass.
func (c *chains) drop(p *page) {
	for i, started := range c.started {
		if c.behind != nil && !started {
			c.behind.leaveBehind(p.order[i], false)
		}
	}
	clear(c.next)
	c.free, c.waiting = nil, 0
}
