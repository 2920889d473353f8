package engine_test

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"github.com/dutyrota/rota/processor"
)

// orderOf returns the order key of an item: one of three of its queue, or none.
func orderOf(item string) string {
	n, _ := strconv.Atoi(item[1:])
	if n%7 == 6 {
		return ""
	}
	return item[:1] + strconv.Itoa(n%3)
}

// equal reports whether the database takes keys for equal: if it folds, those with 0 and 1, as it may be with a and A.
func (k kind) equal(key, other string) bool {
	return key == other || k.folds && strings.Replace(key, "1", "0", 1) == strings.Replace(other, "1", "0", 1)
}

// waitsFor reports whether an item is not executed while another one holds its key.
func (k kind) waitsFor(item, other string) bool {
	return (other < item || k.folds) && k.equal(orderOf(other), orderOf(item))
}

// checkKeys returns the first reason why a batch breaks the order of its keys (X10); empty if it does not. open has the
// items of the queue that are not done, in any order. passes says that an item holds no other back, for instance because
// it is dead.
func (k kind) checkKeys(batch, open []string, busy map[string]bool, passes func(string) bool) string {
	for i, item := range batch {
		key := orderOf(item)
		if key == "" {
			continue
		}
		for _, other := range open {
			at := slices.Index(batch, other)
			switch {
			case other == item || orderOf(other) != key:
			case at >= 0 && !k.atomic:
				return "items " + item + " and " + other + " of one order key share a batch"
			case at >= 0 && (at < i) != (other < item):
				return "items " + item + " and " + other + " are out of order in their batch"
			case at >= 0:
			case busy[other]:
				return "item " + item + " is executed beside " + other + " of its order key"
			case other < item && !passes(other):
				return "item " + item + " is executed before " + other + " of its order key"
			}
		}
	}
	return ""
}

// inOrder returns what a select of an Ordered dealer returns of the open items.
func (k kind) inOrder(open []string, s processor.Selection) (page []string) {
	for _, item := range open {
		leftOut := k.leavesOut && slices.ContainsFunc(s.Held, func(key string) bool { return k.equal(key, orderOf(item)) })
		if !leftOut && (!k.paged || item > s.After) {
			page = append(page, item)
		}
	}
	slices.Sort(page)
	return page[:min(len(page), s.Limit)]
}

// drawOrder draws how an Ordered dealer works.
func (k *kind) drawOrder(rt *rapid.T) {
	if k.ordered {
		k.atomic, k.leavesOut, k.passes = rapid.Bool().Draw(rt, "atomic"), rapid.Bool().Draw(rt, "leaves out"), rapid.Bool().Draw(rt, "passes")
		k.folds = k.leavesOut && rapid.Bool().Draw(rt, "folds")
	}
}

// randomOptions is a keyed source with the other capabilities of its kind.
type randomOptions struct{ randomBin }

func (f randomOptions) Capabilities() processor.Capabilities {
	return processor.Capabilities{Keyed: true, Paged: f.kind.paged, Ordered: f.kind.ordered, Discarder: f.kind.discards}
}

func (randomOptions) OrderKey(item string) string { return orderOf(item) }
func (randomOptions) Position(item string) string { return item }
func (f randomOptions) Atomic() bool              { return f.kind.atomic }

func (f randomOptions) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	f.mu.Lock()
	page := f.kind.inOrder(f.open[s.Queue.ID], s)
	f.mu.Unlock()
	random, err := f.fetch(ctx, s.Limit, s.Queue.ID)
	if err == nil && !f.kind.ordered && !f.kind.paged {
		return random, nil
	}
	return page, err
}

// sweptOrdered are swept sources whose items have order keys.
type (
	sweptOrdered      struct{ sweptKeyed }
	sweptOrderedPaged struct{ sweptOrdered }
)

func (sweptOrdered) OrderKey(item string) string      { return orderOf(item) }
func (f sweptOrdered) Atomic() bool                   { return f.kind.atomic }
func (sweptOrderedPaged) Position(item string) string { return item }
