// Package escape makes texts from the database and from errors safe to print. A terminal obeys control characters, and
// format and bidi characters change what a person reads.
//
// The program escapes values where it formats them. A filter in front of the output would be one place instead of many,
// but could not tell an escape sequence of the database from the program's own colours.
package escape

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Text returns s with each control, format and bidi character, line separator and invalid byte as a Go escape, such as
// \x1b, \n or \u202e. Other characters stay, the backslash too.
func Text(s string) string { return escape(s, false) }

// Lines returns s as Text does, but with its line ends.
func Lines(s string) string { return escape(s, true) }

func escape(s string, lines bool) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		part := s[:size]
		if unsafe(r, size) && (r != '\n' || !lines) {
			part = strconv.QuoteToASCII(part)
			part = part[1 : len(part)-1]
		}
		b.WriteString(part)
		s = s[size:]
	}
	return b.String()
}

// Name returns a key or a name as Text does, and as a quoted Go text of ASCII if a reader of a list could take it for
// another one: it has a space at an end, two spaces in a row or a space other than U+0020, its accents stand apart from
// their letters (it is not in Unicode's form NFC), or it begins with a quote itself. Letters of different scripts that
// look alike stay as they are.
func Name(s string) string {
	odd := func(r rune) bool { return unicode.IsSpace(r) && r != ' ' }
	if strings.TrimSpace(s) != s || strings.Contains(s, "  ") || strings.ContainsFunc(s, odd) ||
		strings.HasPrefix(s, `"`) || utf8.ValidString(s) && !norm.NFC.IsNormalString(s) {
		return strconv.QuoteToASCII(s)
	}
	return Text(s)
}

// Safe reports whether Text returns s unchanged.
func Safe(s string) bool { return Text(s) == s }

// unsafe reports whether a rune of the given size in bytes has to be escaped.
func unsafe(r rune, size int) bool {
	invalid := r == utf8.RuneError && size == 1
	return invalid || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
