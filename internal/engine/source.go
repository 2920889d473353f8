package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/dutyrota/rota/processor"
)

// source is a TaskDealer without its type parameter. Only this file is generic.
type source interface {
	capabilities() capabilities
	selectItems(ctx context.Context, s processor.Selection) (items, error)
	// peek calls Peek of a Peeker.
	peek(ctx context.Context, idle []processor.Selection) ([]string, error)
}

// capabilities are all capabilities that a dealer offers.
type capabilities struct {
	processor.Capabilities
	peeker, atomic bool
}

// tracksItems reports whether failures are counted per item rather than per queue.
func (a capabilities) tracksItems() bool { return a.Keyed || a.Cursored }

// items is the result of one select. Batches are sub-slices of the dealer's slice: no item is copied or boxed.
type items interface {
	size() int
	execute(ctx context.Context, from, to int) error
	// pick returns the items at indexes in a new slice: the dealer's slice is never written to.
	pick(indexes []int32) items
	// keys appends the keys of the items between from and to, or their cursors if the dealer is not Keyed.
	keys(dst []string, from, to int) ([]string, error)
	// orderKeys returns the order key of each item.
	orderKeys() ([]string, error)
	// place returns the cursor of an item, or its position if the dealer is Paged.
	place(i int) (string, error)
	// fingerprints returns a hash of each of the first n items that is equal for equal items. It returns nil if it cannot
	// distinguish items.
	fingerprints(n int) ([]uint64, error)
	discard(ctx context.Context, i int, cause error) error
	// traceParents returns the trace contexts of the items between from and to that have one.
	traceParents(from, to int) ([]string, error)
}

// typedSource is the source that calls a dealer of T. A capability that it does not offer is nil.
type typedSource[T any] struct {
	dealer      processor.TaskDealer[T]
	keyed       processor.Keyed[T]
	cursored    processor.Cursored[T]
	discarder   processor.Discarder[T]
	paged       processor.Paged[T]
	peeker      processor.Peeker
	ordered     processor.Ordered[T]
	traced      processor.Traced[T]
	atomic      bool
	slotless    bool
	sets        bool // the dealer is a SetSelector
	seed        maphash.Seed
	fingerprint func(T) uint64
	redact      func(string) string
}

func newSource[T any](d processor.TaskDealer[T], redact func(string) string) (t *typedSource[T], err error) {
	defer recovered(&err)
	t = &typedSource[T]{dealer: d, seed: maphash.MakeSeed(), redact: redact}
	offers := processor.Capabilities{
		Keyed: true, Cursored: true, Paged: true, Ordered: true, Discarder: true, SetSelector: true,
	}
	if c, ok := d.(processor.Capable); ok {
		offers = c.Capabilities()
	}
	t.slotless = offers.Slotless
	t.keyed = offered[processor.Keyed[T]](d, offers.Keyed)
	t.cursored = offered[processor.Cursored[T]](d, offers.Cursored)
	t.discarder = offered[processor.Discarder[T]](d, offers.Discarder)
	t.paged = offered[processor.Paged[T]](d, offers.Paged)
	t.ordered = offered[processor.Ordered[T]](d, offers.Ordered)
	t.peeker, _ = d.(processor.Peeker)
	if set := offered[processor.SetSelector[T]](d, offers.SetSelector); set != nil {
		adapter := setDealer[T]{d, set}
		t.dealer, t.sets = adapter, true
		if t.peeker == nil {
			t.peeker = adapter
		}
	}
	t.traced, _ = d.(processor.Traced[T])
	if a, ok := d.(processor.Atomic); ok {
		t.atomic = a.Atomic()
	}
	t.fingerprint = t.newFingerprint()
	return t, nil
}

// offered returns the dealer as a capability, or nil if it does not offer that.
func offered[C any](dealer any, offers bool) (c C) {
	if offers {
		c, _ = dealer.(C)
	}
	return c
}

// newFingerprint returns the function that distinguishes the items of a sweep: by key, else by cursor, else by value if
// values contain no references. It returns nil if none of these applies.
func (t *typedSource[T]) newFingerprint() func(T) uint64 {
	switch {
	case t.keyed != nil:
		return func(item T) uint64 { return maphash.String(t.seed, t.keyed.Key(item)) }
	case t.cursored != nil:
		return func(item T) uint64 { return maphash.String(t.seed, t.cursored.Cursor(item)) }
	case reflect.TypeFor[T]().Size() > 0 && isValue(reflect.TypeFor[T]()):
		return func(item T) uint64 { return maphash.Comparable(t.seed, any(item)) }
	}
	return nil
}

// isValue reports whether a type contains no references. A reference does not identify an item: its target may change,
// and its address may be used again.
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

func (t *typedSource[T]) capabilities() capabilities {
	return capabilities{
		Capabilities: processor.Capabilities{
			Keyed: t.keyed != nil, Cursored: t.cursored != nil, Paged: t.paged != nil, Ordered: t.ordered != nil,
			Discarder: t.discarder != nil, SetSelector: t.sets, Slotless: t.slotless,
		},
		peeker: t.peeker != nil, atomic: t.ordered != nil && t.atomic,
	}
}

func (t *typedSource[T]) selectItems(ctx context.Context, s processor.Selection) (_ items, err error) {
	defer t.caught(&err)
	list, err := t.dealer.Select(ctx, s)
	return &typedItems[T]{t, list}, err
}

func (t *typedSource[T]) peek(ctx context.Context, idle []processor.Selection) (named []string, err error) {
	defer t.caught(&err)
	return t.peeker.Peek(ctx, idle)
}

// typedItems is the slice that a select returned, with its dealer.
type typedItems[T any] struct {
	*typedSource[T]
	list []T
}

func (i *typedItems[T]) size() int { return len(i.list) }

func (i *typedItems[T]) execute(ctx context.Context, from, to int) (err error) {
	defer i.caught(&err)
	return i.dealer.Execute(ctx, i.list[from:to:to])
}

func (i *typedItems[T]) pick(indexes []int32) items {
	list := make([]T, len(indexes))
	for n, index := range indexes {
		list[n] = i.list[index]
	}
	return &typedItems[T]{i.typedSource, list}
}

func (i *typedItems[T]) keys(dst []string, from, to int) (_ []string, err error) {
	defer i.caught(&err)
	for _, item := range i.list[from:to] {
		if i.keyed != nil {
			dst = append(dst, i.keyed.Key(item))
		} else {
			dst = append(dst, i.cursored.Cursor(item))
		}
	}
	return dst, nil
}

func (i *typedItems[T]) place(n int) (_ string, err error) {
	defer i.caught(&err)
	if i.paged != nil {
		return i.paged.Position(i.list[n]), nil
	}
	return i.cursored.Cursor(i.list[n]), nil
}

func (i *typedItems[T]) orderKeys() (keys []string, err error) {
	defer i.caught(&err)
	keys = make([]string, len(i.list))
	for n, item := range i.list {
		keys[n] = i.ordered.OrderKey(item)
	}
	return keys, nil
}

func (i *typedItems[T]) fingerprints(n int) (all []uint64, err error) {
	if i.fingerprint == nil {
		return nil, nil
	}
	defer i.caught(&err)
	all = make([]uint64, n)
	for k, item := range i.list[:n] {
		all[k] = i.fingerprint(item)
	}
	return all, nil
}

func (i *typedItems[T]) discard(ctx context.Context, n int, cause error) (err error) {
	defer i.caught(&err)
	return i.discarder.Discard(ctx, i.list[n], cause)
}

func (i *typedItems[T]) traceParents(from, to int) (parents []string, err error) {
	if i.traced == nil {
		return nil, nil
	}
	defer i.caught(&err)
	for _, item := range i.list[from:to] {
		if parent := i.traced.TraceParent(item); parent != "" {
			parents = append(parents, parent)
		}
	}
	return parents, nil
}

// errExited is the error of a call that did not return: the dealer ended the executor's goroutine, as FailNow of a test
// does. The processor starts a new executor.
var errExited = errors.New("the dealer called runtime.Goexit")

// panicError is a panic of the dealer with its stack.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// recovered turns a panic into an error. The caller defers it.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = &panicError{v, debug.Stack()}
	}
}

// caught turns a panic into an error, and redacts and cuts the text of an error. It does so here, where errors enter
// the package, so that they are short and without secrets wherever they are logged or stored. The caller defers it.
func (t *typedSource[T]) caught(err *error) {
	if v := recover(); v != nil {
		*err = &panicError{v, debug.Stack()}
	}
	*err = brief(*err, t.redact)
}
