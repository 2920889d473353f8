package processor

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// page is the result of one select, and how far it has been started. Its executor owns it until the select is finished.
// Then the scheduler's lock guards it.
type page struct {
	pageItems
	marks   []mark    // of each item; nil if all are ordinary
	fetched int       // number of items that the select returned
	retries int       // number of items that have failed alone before
	next    int       // index of the first unstarted item
	end     int       // number of items
	batches int       // number of batches taken so far
	ended   int       // number of batches that have ended
	cut     bool      // some items were dropped, or cancelled
	readyAt time.Time // when its first batch could be taken
}

// pageItems are the items of a page and what belongs to each of them. Removing items from a page replaces them, so that
// a running batch keeps its own.
type pageItems struct {
	items        items
	parts        []part
	partOf       []int32  // index of the item's part; nil if there is only one part
	fingerprints []uint64 // nil outside of sweeps, and if the items cannot be distinguished
}

// grantOf returns the queue of the item at an index.
func (p *pageItems) grantOf(i int) *grant {
	if p.partOf == nil {
		return p.parts[0].grant
	}
	return p.parts[p.partOf[i]].grant
}

// span is a batch of items.
type span struct {
	pageItems
	from, to int
}

func (s *span) size() int { return s.to - s.from }

// grantOf returns the queue of the item at index i of the batch.
func (s *span) grantOf(i int) *grant { return s.pageItems.grantOf(s.from + i) }

// part is one queue of a page, with the context for the batches of that queue alone.
type part struct {
	grant *grant
	ctx   context.Context
	bound bool // Env.Bind was applied to ctx
	batch int  // number of the last batch that holds items of it
}

// mark says how an item is executed. All items of a batch have the same mark. A positive mark is the largest size of
// the batch: the item is a suspect, or has failed if the mark is single.
type mark int32

const (
	ordinary   mark = 0  // in a batch with others
	single     mark = 1  // alone
	discardDue mark = -1 // not executed: only its Discard is missing
	passed     mark = -2 // not executed: it is dead, and only the cursor has to move
)

func newPage(list items, n int, parts []part) *page {
	return &page{pageItems: pageItems{items: list, parts: parts}, fetched: n, end: n}
}

// assignQueues finds the queue of each item of a set. It drops the items of other queues and returns an error that
// names the first such queue.
func (p *page) assignQueues() error {
	index := make(map[string]int32, len(p.parts))
	for i, part := range p.parts {
		index[part.grant.queue.ID] = int32(i)
	}
	of, unknown, err := p.items.queuesOf(index)
	p.partOf = of
	switch n := p.keepParts(func(part int32) bool { return err == nil && part >= 0 }); {
	case err != nil:
		return fmt.Errorf("QueueOf: %w", err)
	case n > 0:
		return &foreignError{unknown, n}
	}
	return nil
}

// bind applies Env.Bind to the context of every part that has items.
func (p *page) bind(bind func(context.Context, []Queue, *string) context.Context) {
	one := func(part *part) {
		if !part.bound {
			part.ctx, part.bound = bind(part.ctx, []Queue{part.grant.queue}, nil), true
		}
	}
	if p.partOf == nil {
		one(&p.parts[0])
	}
	for _, i := range p.partOf {
		one(&p.parts[i])
	}
}

// unstarted returns how many items are left to execute; none if there is no page.
func (p *page) unstarted() int {
	if p == nil {
		return 0
	}
	return p.end - p.next
}

// peek returns the end and the mark of the next batch, which has at most n items.
func (p *page) peek(n int) (end int, m mark) {
	if p.marks == nil {
		return min(p.next+n, p.end), ordinary
	}
	m = p.marks[p.next]
	if m != ordinary {
		n = min(n, max(1, int(m)))
	}
	end = min(p.next+n, p.end)
	if i := slices.IndexFunc(p.marks[p.next:end], func(other mark) bool { return other != m }); i > 0 {
		end = p.next + i
	}
	return end, m
}

// take starts the next batch, which ends at end.
func (p *page) take(end int) span {
	s := span{p.pageItems, p.next, end}
	p.next = end
	p.batches++
	return s
}

// grants appends the queues of the batch that was just taken to dst. It also returns the context of the first of them.
func (p *page) grants(dst []*grant, s *span) ([]*grant, context.Context) {
	if p.partOf == nil {
		return append(dst, p.parts[0].grant), p.parts[0].ctx
	}
	for _, i := range p.partOf[s.from:s.to] {
		if part := &p.parts[i]; part.batch != p.batches {
			part.batch = p.batches
			dst = append(dst, part.grant)
		}
	}
	return dst, p.parts[p.partOf[s.from]].ctx
}

// endBatch counts the end of a batch. whole says that the batch was executed to its end. endBatch reports whether all
// batches of the page were, so that the queues have survived the page (S14).
func (p *page) endBatch(whole bool) bool {
	p.ended++
	p.cut = p.cut || !whole
	return !p.cut && p.unstarted() == 0 && p.ended == p.batches
}

// drop drops all unstarted items and returns their number.
func (p *page) drop() int {
	n := p.unstarted()
	p.next, p.cut = p.end, p.cut || n > 0
	return n
}

// dropDraining drops the unstarted items of draining queues and returns their number.
func (p *page) dropDraining() int {
	if p.partOf == nil {
		if p.parts[0].grant.draining {
			return p.drop()
		}
		return 0
	}
	return p.keepParts(func(i int32) bool { return !p.parts[i].grant.draining })
}

// keepParts drops the unstarted items of the parts for which keep is false, and returns their number.
func (p *page) keepParts(keep func(part int32) bool) int {
	if !slices.ContainsFunc(p.partOf[p.next:], func(i int32) bool { return !keep(i) }) {
		return 0
	}
	all := p.unstarted()
	indexes := make([]int32, 0, all)
	for n, i := range p.partOf[p.next:] {
		if keep(i) {
			indexes = append(indexes, int32(p.next+n))
		}
	}
	p.keep(indexes)
	return all - len(indexes)
}

// keep makes the items at indexes, in that order, the unstarted ones.
func (p *page) keep(indexes []int32) {
	p.pageItems = pageItems{p.items.pick(indexes), p.parts, pick(p.partOf, indexes), pick(p.fingerprints, indexes)}
	p.marks = pick(p.marks, indexes)
	p.next, p.end = 0, len(indexes)
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
