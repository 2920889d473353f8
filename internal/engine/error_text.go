package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/processor"
)

// namedFailures returns the item errors that err carries, each of them brief, or nil if it carries none or one outside
// a batch of n items.
func namedFailures(err error, n int, redact func(string) string) []processor.ItemError {
	list := slices.Clone(processor.ItemErrors(err))
	if len(list) == 0 || list[0].Index < 0 || list[len(list)-1].Index >= n {
		return nil
	}
	for i := range list {
		list[i].Err = brief(list[i].Err, redact)
	}
	return list
}

// allPermanent reports whether every failure in err is Permanent.
func allPermanent(err error) bool { return allFailures(err, processor.IsPermanent) }

// allFailures reports whether is holds for every failure in err.
func allFailures(err error, is func(error) bool) bool {
	list := processor.ItemErrors(err)
	if list == nil {
		return is(err)
	}
	return !slices.ContainsFunc(list, func(f processor.ItemError) bool { return !is(f.Err) })
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
// cut. A text is redacted before it is cut, because no one knows the half of a secret. If the text panics, as that of a
// nil pointer may, which a dealer has returned as an error, brief returns the panic.
func brief(err error, redact func(string) string) (result error) {
	if err == nil {
		return nil
	}
	defer recovered(&result)
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
