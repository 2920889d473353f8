package processor

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"runtime/debug"
	"time"
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
	// sums returns a fingerprint of each item, the same for the same item; nil if items cannot be told apart.
	sums() ([]uint64, error)
	discard(ctx context.Context, i int, cause error) error
}

// typed is the source that calls a dealer of T. What the dealer has not is nil.
type typed[T any] struct {
	dealer    TaskDealer[T]
	set       SetSelector[T]
	keyed     Keyed[T]
	cursored  Cursored[T]
	discarder Discarder[T]
	sum       func(T) uint64
}

func newTyped[T any](d TaskDealer[T]) *typed[T] {
	t := &typed[T]{dealer: d}
	t.set, _ = d.(SetSelector[T])
	t.keyed, _ = d.(Keyed[T])
	t.cursored, _ = d.(Cursored[T])
	t.discarder, _ = d.(Discarder[T])
	t.sum = t.fingerprint()
	return t
}

// fingerprint returns what tells items apart in a sweep: by their keys, or cursors, or else their values, if these hold
// no references. It is nil if none of that does.
func (t *typed[T]) fingerprint() func(T) uint64 {
	seed := maphash.MakeSeed()
	switch {
	case t.keyed != nil:
		return func(item T) uint64 { return maphash.String(seed, t.keyed.Key(item)) }
	case t.cursored != nil:
		return func(item T) uint64 { return maphash.String(seed, t.cursored.Cursor(item)) }
	case reflect.TypeFor[T]().Size() > 0 && isValue(reflect.TypeFor[T]()):
		return func(item T) uint64 { return maphash.Comparable(seed, any(item)) }
	}
	return nil
}

// isValue reports whether equal values of a type are the same to whoever looks. References are not: what they point to
// may have changed, and an address may be used again.
func isValue(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			if t != reflect.TypeFor[time.Time]() && !isValue(f.Type) {
				return false
			}
		}
	case reflect.Array:
		return isValue(t.Elem())
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer, reflect.Slice, reflect.UnsafePointer:
		return false
	}
	return true
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

func (i *itemsOf[T]) sums() (_ []uint64, err error) {
	if i.sum == nil {
		return nil, nil
	}
	defer recovered(&err)
	all := make([]uint64, len(i.list))
	for n, item := range i.list {
		all[n] = i.sum(item)
	}
	return all, nil
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
