package engine

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
	handout handout           // of its items: sequence, or the chains of an Ordered dealer
	batches int               // number of batches taken so far
	ended   int               // number of batches that have ended
	cut     bool              // some items were dropped, or cancelled
	readyAt time.Time         // when its first batch could be taken

	sequence sequence
}

// pageItems are the items of a page and what belongs to each of them. Removing items from a page replaces them, so that
// a running batch keeps its own.
type pageItems struct {
	items        items
	fingerprints []uint64 // nil outside of sweeps, and if the items cannot be distinguished
	order        []string // the order keys; nil if the dealer is not Ordered
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
	p := &page{pageItems: pageItems{items: list}, ctx: ctx, fetched: n, sequence: sequence{to: n}}
	p.handout = &p.sequence
	return p
}

// markOf returns the mark of an item.
func (p *page) markOf(i int32) mark {
	if p.marks == nil {
		return ordinary
	}
	return p.marks[i]
}

// unstarted returns how many items are left to execute; none if there is no page.
func (p *page) unstarted() int {
	if p == nil {
		return 0
	}
	return p.handout.unstarted()
}

// startable reports whether a batch may begin now; not if there is no page.
func (p *page) startable() bool { return p.unstarted() > 0 && p.handout.startable() }

// take starts the next batch, which has n items.
func (p *page) take(n int) span {
	p.batches++
	return p.handout.take(p, n)
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
	p.cut = p.cut || n > 0
	p.handout.drop(p)
	return n
}

// keep makes the items at indexes, in that order, the unstarted ones.
func (p *page) keep(indexes []int32) {
	p.pageItems = p.picked(indexes)
	p.marks = pick(p.marks, indexes)
	p.sequence = sequence{to: len(indexes)}
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

// handout gives the items of a page to batches. The scheduler's lock guards it.
type handout interface {
	unstarted() int                         // how many items are left to execute
	startable() bool                        // whether a batch may begin now, if items are left
	peek(p *page, n int) (size int, m mark) // the size and the mark of the next batch, which has at most n items
	take(p *page, n int) span               // starts the next batch, which has n items
	end(b *batch) (dropped int)             // ends a batch, and drops the items that must not follow it
	drop(p *page)                           // drops all unstarted items
}

// sequence hands out the items in the order of the page.
type sequence struct {
	next int // index of the first unstarted item
	to   int // number of items
}

func (s *sequence) unstarted() int { return s.to - s.next }

func (s *sequence) startable() bool { return true }

func (s *sequence) peek(p *page, n int) (size int, m mark) {
	if m = p.markOf(int32(s.next)); m != ordinary {
		n = min(n, max(1, int(m)))
	}
	n = min(n, s.unstarted())
	if p.marks != nil {
		if i := slices.IndexFunc(p.marks[s.next:s.next+n], func(other mark) bool { return other != m }); i > 0 {
			n = i
		}
	}
	return n, m
}

func (s *sequence) take(p *page, n int) span {
	s.next += n
	return span{pageItems: p.pageItems, from: s.next - n, to: s.next}
}

func (s *sequence) end(*batch) (dropped int) { return 0 }

func (s *sequence) drop(*page) { s.next = s.to }
