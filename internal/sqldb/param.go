package sqldb

import (
	"encoding/json"
	"strings"
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

// maxText bounds a text from outside of Rota, such as the error of a dealer, in characters.
const maxText = 2_000

// Clean makes a text valid for every database: without NUL, valid UTF-8, and not too long for a column.
func Clean(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	if runes := []rune(s); len(runes) > maxText {
		s = string(runes[:maxText]) + "..."
	}
	return s
}
