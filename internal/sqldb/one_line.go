package sqldb

import "strings"

// OneLine returns an error whose text is that of err in one line: the errors of drivers may have several.
func OneLine(err error) error { return lineError{err} }

type lineError struct{ error }

func (e lineError) Error() string { return JoinLines(e.error.Error()) }

func (e lineError) Unwrap() error { return e.error }

// JoinLines returns a text in one line, with semicolons between its lines.
func JoinLines(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
