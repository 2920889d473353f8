package sqldb

import "strings"

// OneLine returns an error whose text is that of err in one line: the errors of drivers may have several.
func OneLine(err error) error { return lineError{err} }

type lineError struct{ error }

func (e lineError) Error() string {
	return strings.Join(strings.FieldsFunc(e.error.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

func (e lineError) Unwrap() error { return e.error }
