package processor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// source is a TaskDealer whose type of item is erased, so that all but this file is plain code.
type source interface {
	powers() powers
	fetch(ctx context.Context, s Selection, owned []Queue) (items, error)
}

// items is what one select returned. The dealer's slice is handed on as it is, in pieces, never item by item.
type items interface {
	size() int
	execute(ctx context.Context, from, to int) error
	// assign says for each item which of the queues in index it belongs to, -1 for none of them; stranger is the
	// first queue that is not in index.
	assign(index map[string]int32) (of []int32, stranger string, err error)
	// pick returns the items at places, in a slice of their own: the dealer's is never written to.
	pick(places []int32) items
	// keys appends the keys of the items between from and to, which are cursors if the dealer has no keys.
	keys(dst []string, from, to int) ([]string, error)
	cursor(i int) (string, error)
	discard(ctx context.Context, i int, cause error) error
}

// typed is the source that calls a dealer of T. What the dealer has not is nil.
type typed[T any] struct {
	dealer    TaskDealer[T]
	set       SetSelector[T]
	keyed     Keyed[T]
	cursored  Cursored[T]
	discarder Discarder[T]
}

func newTyped[T any](d TaskDealer[T]) *typed[T] {
	t := &typed[T]{dealer: d}
	t.set, _ = d.(SetSelector[T])
	t.keyed, _ = d.(Keyed[T])
	t.cursored, _ = d.(Cursored[T])
	t.discarder, _ = d.(Discarder[T])
	return t
}

func (t *typed[T]) powers() powers {
	return powers{keyed: t.keyed != nil, cursored: t.cursored != nil, discards: t.discarder != nil, set: t.set != nil}
}

func (t *typed[T]) fetch(ctx context.Context, s Selection, owned []Queue) (_ items, err error) {
	defer recovered(&err)
	var list []T
	if t.set != nil {
		list, err = t.set.SelectSet(ctx, s, owned)
	} else {
		list, err = t.dealer.Select(ctx, s)
	}
	return &itemsOf[T]{t, list}, err
}

// itemsOf is a selected slice together with the dealer that it came from.
type itemsOf[T any] struct {
	*typed[T]
	list []T
}

func (i *itemsOf[T]) size() int { return len(i.list) }

func (i *itemsOf[T]) execute(ctx context.Context, from, to int) (err error) {
	defer recovered(&err)
	return i.dealer.Execute(ctx, i.list[from:to:to])
}

func (i *itemsOf[T]) assign(index map[string]int32) (of []int32, stranger string, err error) {
	defer recovered(&err)
	of = make([]int32, len(i.list))
	for n, item := range i.list {
		id := i.set.QueueOf(item)
		q, ok := index[id]
		if !ok {
			q = -1
			if stranger == "" {
				stranger = fmt.Sprintf("%q", id)
			}
		}
		of[n] = q
	}
	return of, stranger, nil
}

func (i *itemsOf[T]) pick(places []int32) items {
	list := make([]T, len(places))
	for n, place := range places {
		list[n] = i.list[place]
	}
	return &itemsOf[T]{i.typed, list}
}

func (i *itemsOf[T]) keys(dst []string, from, to int) (_ []string, err error) {
	defer recovered(&err)
	for _, item := range i.list[from:to] {
		if i.keyed != nil {
			dst = append(dst, i.keyed.Key(item))
		} else {
			dst = append(dst, i.cursored.Cursor(item))
		}
	}
	return dst, nil
}

func (i *itemsOf[T]) cursor(n int) (_ string, err error) {
	defer recovered(&err)
	return i.cursored.Cursor(i.list[n]), nil
}

func (i *itemsOf[T]) discard(ctx context.Context, n int, cause error) (err error) {
	defer recovered(&err)
	return i.discarder.Discard(ctx, i.list[n], cause)
}

// errExited is the result of a call that never returned one: the dealer ended the executor's goroutine, as a
// test's FailNow does. The processor starts another executor.
var errExited = errors.New("the dealer called runtime.Goexit")

// panicError is a panic of the dealer, kept with the stack that shows where.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// recovered turns a panic into the error of the call that it is deferred by.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = &panicError{v, debug.Stack()}
	}
}
