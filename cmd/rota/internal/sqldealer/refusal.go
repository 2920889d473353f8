package sqldealer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"
	"modernc.org/sqlite"
)

// refusal is the error of a database that refuses a statement.
type refusal struct {
	message string
	offset  int // of what the database refuses, in the text with marks; below 0 if unknown
	cause   error
}

func (r *refusal) Error() string { return r.message }
func (r *refusal) Unwrap() error { return r.cause }

// refusalOf returns what a database said about a text, or nil if the error is not
// about the text: a lost connection, a lock, a limit.
func refusalOf(err error, text string) *refusal {
	if e, ok := errors.AsType[*pq.Error](err); ok {
		if !aboutStatement(string(e.Code)) {
			return nil
		}
		if e.Code == "42P18" {
			const message = "could not determine the data type: give it one, as in CAST({{slot}} AS timestamptz)"
			return &refusal{message, offsetOfMark(text, e.Message), err}
		}
		return &refusal{e.Message, byteOffset(text, e.Position), err}
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		if !aboutStatement(string(e.SQLState[:])) {
			return nil
		}
		return &refusal{e.Message, offsetOfName(text, e.Message), err}
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == 1 {
		message := strings.TrimSuffix(strings.TrimPrefix(e.Error(), "SQL logic error: "), " (1)")
		return &refusal{message, offsetOfName(text, message), err}
	}
	return nil
}

// aboutStatement reports whether a state is about the text of a statement or the rights that it needs. The classes are
// syntax and access rules, data, features, cardinality and schema names; MySQL reports ambiguous columns in class 23.
func aboutStatement(state string) bool {
	return len(state) == 5 && slices.Contains([]string{"42", "22", "0A", "21", "3F", "23"}, state[:2])
}

// byteOffset returns the offset of PostgreSQL's position, which counts characters from 1.
func byteOffset(text, position string) int {
	n, err := strconv.Atoi(position)
	if err != nil {
		return -1
	}
	for offset := range text {
		if n--; n == 0 {
			return offset
		}
	}
	return -1
}

// offsetOfMark returns the offset of the mark that PostgreSQL names as "parameter $2", or -1.
func offsetOfMark(text, message string) int {
	mark := regexp.MustCompile(`\$\d+`).FindString(message)
	if at := regexp.MustCompile(regexp.QuoteMeta(mark) + `\b`).FindStringIndex(text); mark != "" && at != nil {
		return at[0]
	}
	return -1
}

// complaint finds the name or the text that MySQL and SQLite complain about.
var complaint = regexp.MustCompile(`(?s)no such \w+: ([^\s()]+)|near "([^"]+)"|near '(.+)' at line|'([^']+)'`)

// offsetOfName returns the offset of what a message names, or -1. The text after "near" may be cut.
func offsetOfName(text, message string) int {
	groups := complaint.FindStringSubmatch(message)
	if groups == nil {
		return -1
	}
	name := strings.Join(groups[1:], "") // one of them matched
	if i := strings.Index(text, name); groups[3] != "" && i >= 0 {
		return i
	}
	for _, candidate := range []string{name, name[strings.LastIndexByte(name, '.')+1:]} {
		word := regexp.MustCompile(`(?i)(^|\W)` + regexp.QuoteMeta(candidate) + `($|\W)`)
		if at := word.FindStringSubmatchIndex(text); at != nil {
			return at[3] // the end of what comes before it
		}
	}
	return -1
}

// place describes a position in the statement as the user wrote it, from an offset in
// the text with the marks of one key.
func (s *statement) place(offset int) string {
	const shown = 30
	if offset < 0 {
		return ""
	}
	source, at := s.source(offset)
	line := strings.Count(source[:at], "\n") + 1
	column := utf8.RuneCountInString(source[strings.LastIndexByte(source[:at], '\n')+1:at]) + 1
	rest := []rune(strings.Join(strings.Fields(source[at:]), " "))
	if len(rest) > shown {
		rest = append(rest[:shown], '.', '.', '.')
	}
	return fmt.Sprintf(", line %d, column %d (%s)", line, column, string(rest))
}

// source returns the statement as the user wrote it, and the offset in it of an
// offset in the text with the marks of one key.
func (s *statement) source(offset int) (source string, at int) {
	var b, marked strings.Builder
	at = -1
	add := func(original, generated string) {
		if at < 0 && offset < marked.Len()+len(generated) {
			at = b.Len() + min(offset-marked.Len(), len(original))
		}
		b.WriteString(original)
		marked.WriteString(generated)
	}
	n := 0
	for i := range s.names {
		add(s.parts[i], s.parts[i])
		var marks strings.Builder
		n += s.writeMarks(&marks, i, n, 1)
		add(s.sources[i], marks.String())
	}
	add(s.parts[len(s.names)], s.parts[len(s.names)])
	if at < 0 {
		at = b.Len()
	}
	return b.String(), at
}
