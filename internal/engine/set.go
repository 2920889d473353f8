package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/processor"
)

// setDealer is the TaskDealer and the Peeker that a SetSelector stands for.
type setDealer[T any] struct {
	processor.TaskDealer[T] // its Select is not called
	set                     processor.SetSelector[T]
}

// Select selects the items of one queue.
func (d setDealer[T]) Select(ctx context.Context, s processor.Selection) ([]T, error) {
	q := s.Queue
	list, err := d.selectSet(ctx, s, []processor.Queue{q})
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		if of := d.set.QueueOf(item); of != q.ID {
			return nil, fmt.Errorf("SelectSet was asked for queue %s alone and returned an item of queue %q", q.ID, of)
		}
	}
	return list, nil
}

// Peek selects an item for each idle queue, with one statement for the queues of each total.
func (d setDealer[T]) Peek(ctx context.Context, idle []processor.Selection) (named []string, err error) {
	for len(idle) > 0 {
		s, rest := idle[0], []processor.Selection(nil)
		var owned []processor.Queue
		for _, other := range idle {
			if other.Total == s.Total {
				owned = append(owned, other.Queue)
			} else {
				rest = append(rest, other)
			}
		}
		some, err := d.peekAt(ctx, s, owned)
		if err != nil {
			return nil, err
		}
		named, idle = append(named, some...), rest
	}
	return named, nil
}

// peekAt names those of the queues that have items. A select that ends at its limit says nothing about the queues
// without an item in it, so that it asks for these again.
func (d setDealer[T]) peekAt(ctx context.Context, s processor.Selection, owned []processor.Queue) ([]string, error) {
	var named []string
	for len(owned) > 0 {
		s.Limit = len(owned)
		list, err := d.selectSet(ctx, s, slices.Clone(owned))
		if err != nil {
			return nil, err
		}
		busy := make(map[string]bool, len(list))
		for _, item := range list {
			busy[d.set.QueueOf(item)] = true
		}
		rest := owned[:0:0]
		for _, q := range owned {
			if busy[q.ID] {
				named = append(named, q.ID)
			} else {
				rest = append(rest, q)
			}
		}
		if len(list) < s.Limit || len(rest) == len(owned) { // the latter is an error of the dealer
			break
		}
		owned = rest
	}
	return named, nil
}

func (d setDealer[T]) selectSet(ctx context.Context, s processor.Selection, owned []processor.Queue) ([]T, error) {
	s.Queue = processor.Queue{}
	return d.set.SelectSet(ctx, s, owned)
}
