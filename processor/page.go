package processor

import (
	"context"
	"slices"
	"time"
)

// page is the result of one select, and how far it has been started. Its executor owns it until the select is finished.
// Then the scheduler's lock guards it.
type page struct {
	pageItems
	ctx     context.Context   // of its batches; Env.Bind was applied to it, unless the dealer is Cursored
	marks   []mark            // of each item; nil if all are ordinary
	records map[string]record // what is known, by key, about the items that have failed
	fetched int               // number of items that the select returned
	retries int               // number of items that have failed alone before
	next    int               // index of the first unstarted item
	end     int               // number of items
	batches int               // number of batches taken so far
	ended   int               // number of batches that have ended
	cut     bool              // some items were dropped, or cancelled
	readyAt time.Time         // when its first batch could be taken
	chains  *chains           // of an Ordered dealer: they replace next and end
	behind  *keysBehind       // of its pass, if that has moved behind the page; else nil
}

// pageItems are the items of a page and what belongs to each of them. Removing items from a page replaces them, so that
// a running batch keeps its own.
type pageItems struct {
	items        items
	fingerprints []uint64 // nil outside of sweeps, and if the items cannot be distinguished
	order        []uint64 // the order keys; nil if the dealer is not Ordered
}

// span is a batch of items.
type span struct {
	pageItems
	from, to int
	indexes  []int32 // of the items on their page, if the dealer is Ordered
}

func (s *span) size() int { return s.to - s.from }

// mark says how an item is executed. All items of a batch have the same mark. A positive mark is the largest size of
// the batch: the item is a suspect, or has failed if the mark is single.
type mark int32

const (
	ordinary   mark = 0  // in a batch with others
	single     mark = 1  // alone
	unfinished mark = -1 // not executed: the item is dead, and only its record or its Discard is missing
	passed     mark = -2 // not executed: it is dead, and only the cursor has to move
)

func newPage(ctx context.Context, list items, n int) *page {
	return &page{pageItems: pageItems{items: list}, ctx: ctx, fetched: n, end: n}
}

// unstarted returns how many items are left to execute; none if there is no page.
func (p *page) unstarted() int {
	switch {
	case p == nil:
		return 0
	case p.chains != nil:
		return p.chains.unstarted()
	}
	return p.end - p.next
}

// startable reports whether a batch may begin now. An item of an Ordered dealer may wait for one that is in flight.
func (p *page) startable() bool {
	return p.unstarted() > 0 && (p.chains == nil || len(p.chains.free) > 0)
}

// markOf returns the mark of an item.
func (p *page) markOf(i int32) mark {
	if p.marks == nil {
		return ordinary
	}
	return p.marks[i]
}

// peek returns the size and the mark of the next batch, which has at most n items.
func (p *page) peek(n int) (size int, m mark) {
	first := int32(p.next)
	if p.chains != nil {
		first = p.chains.free[0]
	}
	if m = p.markOf(first); m != ordinary {
		n = min(n, max(1, int(m)))
	}
	if p.chains != nil {
		return len(p.chains.batch(n, p.markOf)), m
	}
	n = min(n, p.unstarted())
	if p.marks != nil {
		if i := slices.IndexFunc(p.marks[p.next:p.next+n], func(other mark) bool { return other != m }); i > 0 {
			n = i
		}
	}
	return n, m
}

// take starts the next batch, which has n items.
func (p *page) take(n int) span {
	p.batches++
	if p.chains != nil {
		return p.takeChained(slices.Clone(p.chains.batch(n, p.markOf)))
	}
	s := span{pageItems: p.pageItems, from: p.next, to: p.next + n}
	p.next += n
	return s
}

// takeChained starts a batch of the items at indexes. If they are not side by side on the page, the batch has its own
// list of them.
func (p *page) takeChained(indexes []int32) span {
	p.chains.take(indexes)
	n, first := len(indexes), int(indexes[0])
	if int(indexes[n-1]) == first+n-1 && slices.IsSorted(indexes) {
		return span{p.pageItems, first, first + n, indexes}
	}
	return span{p.picked(indexes), 0, n, indexes}
}

// endChained ends a batch of an Ordered dealer. The items behind one that is not done return to the source, and so do
// the later items of its key on the pages behind this one. It returns how many items it has dropped.
func (p *page) endChained(b *batch) (dropped int) {
	isDone := b.itemDone
	for n := range b.indexes {
		if p.behind != nil && !isDone(n) {
			p.behind.failed.add(b.order[b.from+n], false)
		}
	}
	return p.chains.end(b.indexes, isDone)
}

// endBatch counts the end of a batch. whole says that the batch was executed to its end. endBatch reports whether all
// batches of the page were, so that the queue has survived the page (S14).
func (p *page) endBatch(whole bool) bool {
	p.ended++
	p.cut = p.cut || !whole
	return !p.cut && p.unstarted() == 0 && p.ended == p.batches
}

// drop drops all unstarted items and returns their number.
func (p *page) drop() int {
	n := p.unstarted()
	p.next, p.cut = p.end, p.cut || n > 0
	if p.chains != nil {
		p.dropChained()
	}
	return n
}

// dropChained drops the unstarted items of an Ordered dealer. The later items of their keys wait for the next pass.
func (p *page) dropChained() {
	for i, started := range p.chains.started {
		if p.behind != nil && !started {
			p.behind.failed.add(p.order[i], false)
		}
	}
	p.chains.drop()
}

// keep makes the items at indexes, in that order, the unstarted ones.
func (p *page) keep(indexes []int32) {
	p.pageItems = p.picked(indexes)
	p.marks = pick(p.marks, indexes)
	p.next, p.end = 0, len(indexes)
}

// picked returns the items at indexes.
func (p *pageItems) picked(indexes []int32) pageItems {
	return pageItems{p.items.pick(indexes), pick(p.fingerprints, indexes), pick(p.order, indexes)}
}

// pick returns the elements of list at indexes, or nil if list is nil.
func pick[E any](list []E, indexes []int32) []E {
	if list == nil {
		return nil
	}
	picked := make([]E, len(indexes))
	for n, index := range indexes {
		picked[n] = list[index]
	}
	return picked
}
