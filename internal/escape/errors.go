package escape

import (
	"errors"
	"strings"
)

// Errors returns one safe line for each error that errors.Join has joined in err, with what an error around them says
// of all. A line end within an error is an escape, and does not make a second line.
func Errors(err error) []string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // this error itself, not one inside
		var lines []string
		var texts []string
		for _, e := range joined.Unwrap() {
			texts, lines = append(texts, e.Error()), append(lines, Errors(e)...)
		}
		if strings.Join(texts, "\n") == err.Error() {
			return lines
		}
	}
	inner := errors.Unwrap(err)
	if inner == nil {
		return []string{Text(err.Error())}
	}
	before, after, ok := strings.Cut(err.Error(), inner.Error())
	if !ok {
		return []string{Text(err.Error())}
	}
	lines := Errors(inner)
	for i, line := range lines {
		lines[i] = Text(before) + line + Text(after)
	}
	return lines
}
