package sqldb

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Marks returns n parameter marks: "?, ?, ?".
func Marks(n int) string {
	return strings.TrimSuffix(strings.Repeat("?, ", n), ", ")
}

// Args returns strings as parameters.
func Args(list []string) []any {
	args := make([]any, len(list))
	for i, s := range list {
		args[i] = s
	}
	return args
}

// JSON returns a JSON array of strings.
func JSON(list []string) (string, error) {
	doc, err := json.Marshal(list)
	return string(doc), err
}

// Null returns NULL for an empty string.
func Null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// NullIf0 returns a parameter that is NULL for 0.
func NullIf0(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

// LastOfEach returns the last element of each key, in the order in which the keys first occur. PostgreSQL refuses a
// statement that would insert or update a row twice.
func LastOfEach[T any, K comparable](list []T, key func(T) K) []T {
	last, index := make([]T, 0, len(list)), make(map[K]int, len(list))
	for _, element := range list {
		i, ok := index[key(element)]
		if !ok {
			i, last = len(last), append(last, element)
			index[key(element)] = i
		}
		last[i] = element
	}
	return last
}

// maxText bounds a text for people that comes from outside of Rota, such as the error of a dealer, in characters.
const maxText = 2_000

// Clean makes a text for people valid for every database: without NUL, valid UTF-8, and not too long for a column
// (X12). What is compared later must not be cleaned, but checked with CheckText.
func Clean(s string) string { return CleanTo(s, maxText) }

// CleanTo does what Clean does for a column of most characters and three more.
func CleanTo(s string, most int) string {
	if len(s) > 4*most+4 { // a letter has at most four bytes
		s = s[:4*most+4]
	}
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "..."
	}
	return s
}

// Actor makes the name of an operator or a server valid for the columns that have one.
func Actor(s string) string { return CleanTo(s, 252) }

// MaxText is the length of the longest text that is stored as it is, in bytes. It fits into the text columns of every
// database.
const MaxText = 60_000

// TextError says why a text cannot be stored as it is.
type TextError struct{ text string }

// Error implements error.
func (e *TextError) Error() string { return e.text }

// CheckText returns a *TextError unless every database can hold a text as it is: it must be UTF-8 without NUL, of at
// most most bytes (X12). what begins the error.
func CheckText(what, text string, most int) error {
	switch {
	case len(text) > most:
		return &TextError{fmt.Sprintf("%s must have at most %d bytes, not %d", what, most, len(text))}
	case !utf8.ValidString(text) || strings.Contains(text, "\x00"):
		return &TextError{what + " must be UTF-8 without NUL"}
	}
	return nil
}
