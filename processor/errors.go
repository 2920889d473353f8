package processor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Failures collects which items of a batch have failed, where the others are done. The zero value is ready; it is
// not safe for concurrent use. Without it, an error of Execute does not say which items failed.
type Failures struct{ list []failure }

type failure struct {
	index int
	err   error
}

// Add notes that the item at place i of the batch has failed. A nil error is no failure; of several errors for one
// item the first stays. An i that is not in the batch makes the error one of the whole batch.
func (f *Failures) Add(i int, err error) {
	if err != nil {
		f.list = append(f.list, failure{i, err})
	}
}

// Err returns the error that Execute is to return, wrapped or not: nil if no item has failed. Add does not change
// it afterwards. errors.Is and errors.As look into the errors of all items.
func (f *Failures) Err() error {
	if len(f.list) == 0 {
		return nil
	}
	list := slices.Clone(f.list)
	slices.SortStableFunc(list, func(a, b failure) int { return cmp.Compare(a.index, b.index) })
	return &partialError{slices.CompactFunc(list, func(a, b failure) bool { return a.index == b.index })}
}

// partialError is what Failures return, in the order of the items, each once.
type partialError struct{ list []failure }

func (e *partialError) Error() string {
	const most = 3
	var b strings.Builder
	fmt.Fprintf(&b, "items failed: %d", len(e.list))
	for _, f := range e.list[:min(len(e.list), most)] {
		fmt.Fprintf(&b, "; item %d: %v", f.index, f.err)
	}
	if len(e.list) > most {
		b.WriteString("; ...")
	}
	return b.String()
}

func (e *partialError) Unwrap() []error {
	all := make([]error, len(e.list))
	for i, f := range e.list {
		all[i] = f.err
	}
	return all
}

// partial returns the failures that err names, nil if it does not name items of a batch of n.
func partial(err error, n int) []failure {
	e, ok := errors.AsType[*partialError](err)
	if !ok || e.list[0].index < 0 || e.list[len(e.list)-1].index >= n {
		return nil
	}
	return e.list
}

// Permanent says of an item's error that trying again is in vain: the item is dead at once. It is for an item that
// fails alone or in Failures; as the error of a batch of several items it does not say which of them is meant, so
// they are executed one by one first. Dealers that are neither Keyed nor Cursored have no dead items: there it is a
// failure like any other. Sweeps have none, either; but when all failures of a sweep are Permanent, that of a select
// or of the function of Each included, then the queue is not swept again, and the run fails. Nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

func isPermanent(err error) bool {
	_, ok := errors.AsType[*permanentError](err)
	return ok
}

// hopeless reports that all failures that err tells of are Permanent.
func hopeless(err error) bool {
	e, ok := errors.AsType[*partialError](err)
	if !ok {
		return isPermanent(err)
	}
	return !slices.ContainsFunc(e.list, func(f failure) bool { return !isPermanent(f.err) })
}

// RetryAfter says of an error when the next attempt makes sense, in place of the growing pause: of an item, of a
// batch, or of a select, whose queue then rests. It counts as an attempt like any other. In a sweep it changes
// nothing, nor does a d of 0 or less; nil stays nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil || d <= 0 {
		return err
	}
	return &retryError{d, err}
}

type retryError struct {
	after time.Duration
	err   error
}

func (e *retryError) Error() string { return fmt.Sprintf("%v (retry after %s)", e.err, e.after) }
func (e *retryError) Unwrap() error { return e.err }

// retryAfter returns the wish of RetryAfter, 0 for none.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*retryError](err); ok {
		return e.after
	}
	return 0
}
