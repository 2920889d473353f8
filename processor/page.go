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
	of      []int32 // the part that each item belongs to; nil if there is only one
	fetched int     // items that the select returned
	next    int     // the first item that is not started
	running int     // batches being executed
	cuts    int     // batches cut so far
	trouble bool    // something of it failed: the lane pauses

	told atomic.Bool // a failure of it was logged; not under the lock
}

// part is a queue of the page's selection and the context for batches of it alone.
type part struct {
	held  *held
	ctx   context.Context
	bound bool
	cut   int // the last batch that holds items of it
}

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
		g.trouble = true
		return fmt.Errorf("QueueOf: %w", err)
	case n > 0:
		g.trouble = true
		return fmt.Errorf("QueueOf names queue %s, which was not selected; items skipped: %d", stranger, n)
	}
	return nil
}

// bind gives every part that has items the context that its batches get.
func (g *page) bind(bind func(context.Context, []Queue) context.Context) {
	one := func(p *part) {
		if !p.bound {
			p.ctx, p.bound = bind(p.ctx, []Queue{p.held.queue}), true
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

// cut takes the next batch of at most n items.
func (g *page) cut(n int) (from, to int) {
	from = g.next
	g.next = min(from+n, g.items.size())
	g.running++
	g.cuts++
	return from, g.next
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

// filter keeps the unstarted items of the parts that keep says, and returns how many it dropped. Batches that are
// running have their own hold of the items they were cut from.
func (g *page) filter(keep func(part int32) bool) int {
	if !slices.ContainsFunc(g.of[g.next:], func(i int32) bool { return !keep(i) }) {
		return 0
	}
	all := g.unstarted()
	places, of := make([]int32, 0, all), make([]int32, 0, all)
	for n, i := range g.of[g.next:] {
		if keep(i) {
			places, of = append(places, int32(g.next+n)), append(of, i)
		}
	}
	g.items, g.of, g.next = g.items.pick(places), of, 0
	return all - len(places)
}
