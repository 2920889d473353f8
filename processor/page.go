package processor

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
)

// page is what one select returned, and how far it has been worked. It is guarded by the processor's lock, once
// the executor that selected it has handed it in.
type page struct {
	items   items
	parts   []part
	of      []int32  // the part that each item belongs to; nil if there is only one
	marks   []mark   // how each item is executed; nil if there is nothing special
	sums    []uint64 // the items' fingerprints, in a sweep that can tell them apart
	fetched int      // items that the select returned
	next    int      // the first item that is not started
	cuts    int      // batches cut so far

	told atomic.Bool // a failure of it was logged; not under the lock
}

// part is a queue of the page's selection and the context for batches of it alone.
type part struct {
	held  *held
	ctx   context.Context
	bound bool
	cut   int // the last batch that holds items of it
}

// mark is how an item is to be executed. Above 0 it is a suspect, or has failed if it is single: its batch is of at
// most so many, all with that mark.
type mark int32

const (
	ordinary mark = 0  // in a batch with others
	single   mark = 1  // alone
	owed     mark = -1 // not at all, only its Discard is missing
	passed   mark = -2 // not at all, it is dead and only the cursor has to move
)

// sort finds out which queue each item of a set belongs to. Items of a queue that was not asked for are left out,
// and are an error that names the first such queue.
func (g *page) sort() error {
	index := make(map[string]int32, len(g.parts))
	for i, p := range g.parts {
		index[p.held.queue.ID] = int32(i)
	}
	of, stranger, err := g.items.assign(index)
	g.of = of
	switch n := g.filter(func(part int32) bool { return err == nil && part >= 0 }); {
	case err != nil:
		return fmt.Errorf("QueueOf: %w", err)
	case n > 0:
		return fmt.Errorf("QueueOf names queue %s, which was not selected; items skipped: %d", stranger, n)
	}
	return nil
}

// bind gives every part that has items the context that its batches get.
func (g *page) bind(bind func(context.Context, []Queue, *string) context.Context) {
	one := func(p *part) {
		if !p.bound {
			p.ctx, p.bound = bind(p.ctx, []Queue{p.held.queue}, nil), true
		}
	}
	if g.of == nil {
		one(&g.parts[0])
	}
	for _, i := range g.of {
		one(&g.parts[i])
	}
}

func (g *page) unstarted() int { return g.items.size() - g.next }

// peek says how far the next batch of at most n items goes, and how it is executed.
func (g *page) peek(n int) (to int, how mark) {
	if g.marks == nil {
		return min(g.next+n, g.items.size()), ordinary
	}
	how = g.marks[g.next]
	if how != ordinary {
		n = min(n, max(1, int(how)))
	}
	to = min(g.next+n, g.items.size())
	if i := slices.IndexFunc(g.marks[g.next:to], func(m mark) bool { return m != how }); i > 0 {
		to = g.next + i
	}
	return to, how
}

// cut takes the next batch, which ends at to.
func (g *page) cut(to int) (from int) {
	from, g.next = g.next, to
	g.cuts++
	return from
}

// queues appends the queues of the batch that was just cut to dst. The context is theirs if there is only one.
func (g *page) queues(dst []*held, from, to int) ([]*held, context.Context) {
	if g.of == nil {
		return append(dst, g.parts[0].held), g.parts[0].ctx
	}
	for _, i := range g.of[from:to] {
		if p := &g.parts[i]; p.cut != g.cuts {
			p.cut = g.cuts
			dst = append(dst, p.held)
		}
	}
	return dst, g.parts[g.of[from]].ctx
}

// drop forgets all unstarted items and returns their number.
func (g *page) drop() int {
	n := g.unstarted()
	g.next = g.items.size()
	return n
}

// dropDraining forgets the unstarted items of queues that drain, and returns their number.
func (g *page) dropDraining() int {
	if g.of == nil {
		if g.parts[0].held.draining {
			return g.drop()
		}
		return 0
	}
	return g.filter(func(i int32) bool { return !g.parts[i].held.draining })
}

// filter keeps the unstarted items of the parts that keep says, and returns how many it dropped.
func (g *page) filter(keep func(part int32) bool) int {
	if !slices.ContainsFunc(g.of[g.next:], func(i int32) bool { return !keep(i) }) {
		return 0
	}
	all := g.unstarted()
	places := make([]int32, 0, all)
	for n, i := range g.of[g.next:] {
		if keep(i) {
			places = append(places, int32(g.next+n))
		}
	}
	g.take(places)
	return all - len(places)
}

// take keeps the items at places, in that order, as the unstarted ones. Batches that are running have their own hold
// of what they were cut from.
func (g *page) take(places []int32) {
	g.items, g.of, g.marks, g.sums = g.items.pick(places), at(g.of, places), at(g.marks, places), at(g.sums, places)
	g.next = 0
}

// at returns what a list has at places; nil of nil.
func at[E any](list []E, places []int32) []E {
	if list == nil {
		return nil
	}
	picked := make([]E, len(places))
	for n, place := range places {
		picked[n] = list[place]
	}
	return picked
}
