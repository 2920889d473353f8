package processor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Failures collects the items of a batch that failed, when the other items are done. The zero value is ready to use. It
// is not safe for concurrent use. An error of Execute that does not come from Failures does not say which items failed.
type Failures struct{ list []ItemError }

// ItemError is the error of the item at one position of a batch.
type ItemError struct {
	Index int
	Err   error
}

// Add records that the item at index i of the batch failed. It ignores a nil error. Of several errors for one item it
// keeps the first. An i outside the batch turns the error into an error of the whole batch.
func (f *Failures) Add(i int, err error) {
	if err != nil {
		f.list = append(f.list, ItemError{i, err})
	}
}

// Err returns the error that Execute should return, wrapped or not. It returns nil if no item failed. A later Add does
// not change a returned error. errors.Is and errors.As look into the errors of all items.
func (f *Failures) Err() error {
	if len(f.list) == 0 {
		return nil
	}
	list := slices.Clone(f.list)
	slices.SortStableFunc(list, func(a, b ItemError) int { return cmp.Compare(a.Index, b.Index) })
	return &partialError{slices.CompactFunc(list, func(a, b ItemError) bool { return a.Index == b.Index })}
}

// partialError is the error of Failures. It holds each failed item once, in the order of the batch.
type partialError struct{ list []ItemError }

// Error says each text once, because in an outage all items have the same, and no place in the batch, which nobody but
// the dealer sees: the records of failed items have their keys.
func (e *partialError) Error() string {
	const limit = 3
	texts := []string{fmt.Sprintf("items failed: %d", len(e.list))}
	for _, f := range e.list {
		text := f.Err.Error()
		switch {
		case slices.Contains(texts[1:], text):
		case len(texts) > limit:
			return strings.Join(append(texts, "..."), "; ")
		default:
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

func (e *partialError) Unwrap() []error {
	all := make([]error, len(e.list))
	for i, f := range e.list {
		all[i] = f.Err
	}
	return all
}

// ItemErrors returns what err carries from Failures, each item once, in the order of the batch: nil if it carries
// nothing. The caller must not change it. A dealer that wraps another asks it, and so does the test of a dealer.
func ItemErrors(err error) []ItemError {
	if e, ok := errors.AsType[*partialError](err); ok {
		return e.list
	}
	return nil
}

// Permanent marks the error of an item as final: the item is dead at once. It works for an item that fails alone or in
// Failures. As the error of a batch of several items it does not say which item failed, so the items are executed in
// smaller batches first. A dealer that is neither Keyed nor Cursored has no dead items: there, Permanent is an error
// like any other. A sweep has no dead items either. But if all failures of a sweep are Permanent, including those of a
// select and of the function of Each, the queue is not swept again and the run fails. Permanent returns nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// IsPermanent reports whether err, or what it wraps, is Permanent. Of an error of Failures it says whether one of its
// items has such an error: ItemErrors has each.
func IsPermanent(err error) bool {
	_, ok := errors.AsType[*permanentError](err)
	return ok
}

// RetryAfter adds to an error the pause before the next attempt, instead of the growing pause, up to item_retry_max.
// It works for the error of an item, of a batch, or of a select, whose queue then pauses. The failure counts as an
// attempt like any other. In a sweep RetryAfter has no effect. It returns err itself if err is nil or d is not
// positive.
func RetryAfter(d time.Duration, err error) error {
	if err == nil || d <= 0 {
		return err
	}
	return &retryError{d, err, false}
}

// Busy is RetryAfter for an error that says nothing about the item: a service asks to come again later, as with the
// status 429 of HTTP. The failure counts as no attempt, so no item dies of it, however often it comes. The store keeps
// the pause and the error. Busy returns err itself if err is nil or d is not positive.
func Busy(d time.Duration, err error) error {
	if err == nil || d <= 0 {
		return err
	}
	return &retryError{d, err, true}
}

type retryError struct {
	after time.Duration
	err   error
	busy  bool // it is no attempt
}

func (e *retryError) Error() string { return fmt.Sprintf("%v (retry after %s)", e.err, e.after) }
func (e *retryError) Unwrap() error { return e.err }

// RetryOf returns the pause that RetryAfter or Busy has added to err, or to what it wraps, and whether it was Busy; 0
// for none.
func RetryOf(err error) (after time.Duration, busy bool) {
	if e, ok := errors.AsType[*retryError](err); ok {
		return e.after, e.busy
	}
	return 0, false
}
