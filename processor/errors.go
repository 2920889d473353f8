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
type Failures struct{ list []itemError }

// itemError is the error of the item at one position of a batch.
type itemError struct {
	index int
	err   error
}

// Add records that the item at index i of the batch failed. It ignores a nil error. Of several errors for one item it
// keeps the first. An i outside the batch turns the error into an error of the whole batch.
func (f *Failures) Add(i int, err error) {
	if err != nil {
		f.list = append(f.list, itemError{i, err})
	}
}

// Err returns the error that Execute should return, wrapped or not. It returns nil if no item failed. A later Add does
// not change a returned error. errors.Is and errors.As look into the errors of all items.
func (f *Failures) Err() error {
	if len(f.list) == 0 {
		return nil
	}
	list := slices.Clone(f.list)
	slices.SortStableFunc(list, func(a, b itemError) int { return cmp.Compare(a.index, b.index) })
	return &partialError{slices.CompactFunc(list, func(a, b itemError) bool { return a.index == b.index })}
}

// partialError is the error of Failures. It holds each failed item once, in the order of the batch.
type partialError struct{ list []itemError }

// Error says each text once, because in an outage all items have the same, and no place in the batch, which nobody but
// the dealer sees: the records of failed items have their keys.
func (e *partialError) Error() string {
	const limit = 3
	texts := []string{fmt.Sprintf("items failed: %d", len(e.list))}
	for _, f := range e.list {
		text := f.err.Error()
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
		all[i] = f.err
	}
	return all
}

// namedFailures returns the item errors that err carries, each of them brief, or nil if it carries none or one outside
// a batch of n items.
func namedFailures(err error, n int, redact func(string) string) []itemError {
	e, ok := errors.AsType[*partialError](err)
	if !ok || e.list[0].index < 0 || e.list[len(e.list)-1].index >= n {
		return nil
	}
	list := make([]itemError, len(e.list))
	for i, f := range e.list {
		list[i] = itemError{f.index, brief(f.err, redact)}
	}
	return list
}

// maxErrorText bounds the text of an error, in bytes: some fail with the page of a web server, once per item.
const maxErrorText = 2000

// briefError is an error whose text is cut or redacted. What it wraps still says what the error means.
type briefError struct {
	text string
	err  error
}

func (e *briefError) Error() string { return e.text }
func (e *briefError) Unwrap() error { return e.err }

// brief returns err with the text that redact makes of its own, of at most maxErrorText and with a remark if it was
// cut. A text is redacted before it is cut, because no one knows the half of a secret.
func brief(err error, redact func(string) string) error {
	if err == nil {
		return nil
	}
	text := redact(err.Error())
	if len(text) > maxErrorText {
		text = fmt.Sprintf("%s... (cut, %d bytes)", strings.ToValidUTF8(text[:maxErrorText], ""), len(text))
	}
	if text == err.Error() {
		return err
	}
	return &briefError{text, err}
}

// lasting returns what a record keeps of err: not more than its text if that was cut, because the error may hold it.
func lasting(err error) error {
	if e, ok := errors.AsType[*briefError](err); ok {
		return errors.New(e.text)
	}
	return err
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

func isPermanent(err error) bool {
	_, ok := errors.AsType[*permanentError](err)
	return ok
}

// allPermanent reports whether every failure in err is Permanent.
func allPermanent(err error) bool { return allFailures(err, isPermanent) }

// allFailures reports whether is holds for every failure in err.
func allFailures(err error, is func(error) bool) bool {
	e, ok := errors.AsType[*partialError](err)
	if !ok {
		return is(err)
	}
	return !slices.ContainsFunc(e.list, func(f itemError) bool { return !is(f.err) })
}

// RetryAfter adds to an error the pause before the next attempt, instead of the growing pause, up to Settings.RetryMax.
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

// retryAfter returns the pause that RetryAfter added to err, or 0.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*retryError](err); ok {
		return e.after
	}
	return 0
}

func isBusy(err error) bool {
	e, ok := errors.AsType[*retryError](err)
	return ok && e.busy
}
