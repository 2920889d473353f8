package sqldealer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// statement is an SQL text cut at its placeholders. It reads
// parts[0] names[0] parts[1] ... and has one part more than names.
type statement struct {
	syntax  syntax
	parts   []string
	names   []string
	sources []string // the placeholders as the user wrote them

	keyWidth  int    // how many columns a key of {{keys}} has; 0 is one
	orderKey  string // the column of {{held}}
	heldFolds bool   // it is of a type of syntax.folding
}

// The names of placeholders.
const (
	total, index, queue   = "total", "index", "queue"
	queueParameter, limit = "queue_parameter", "limit"
	cursor, after         = "cursor", "after" // and "cursor.COLUMN", "after.COLUMN"
	held                  = "held"
	horizonName           = "horizon"
	parameter, ownSign    = "parameter", "own_sign"
	runKey                = "run_key"
	keys, server          = "keys", "server"
	lastError             = "error"
	row                   = "row."                // and a column's name
	mine, mineHash        = "mine ", "mine_hash " // and an expression of SQL
)

var placeholder = regexp.MustCompile(`\{\{\s*([A-Za-z_][\w.]*|mine(_hash)?\s[^}]*)\s*\}\}`)

// parse cuts text at its placeholders. Each must be one of known; a known name that ends with a dot or a space accepts
// all names that start with it. The errors continue the path of the statement.
func parse(text string, sy syntax, known ...string) (*statement, error) {
	s := &statement{syntax: sy}
	start := 0
	var errs []error
	for i := 0; i < len(text); {
		switch part := literal(text, i, sy); {
		case part != "":
			if inside := placeholder.FindString(part); inside != "" && !isComment(part) {
				errs = append(errs, fmt.Errorf("has %s between quotes, where no value can be bound: remove the quotes", inside))
			}
			i += len(part)
		case strings.HasPrefix(text[i:], "{{"):
			name, size, err := named(text[i:], sy, known)
			if err != nil {
				errs = append(errs, err)
			}
			if size == 0 {
				return nil, errors.Join(errs...)
			}
			s.parts, s.names = append(s.parts, text[start:i]), append(s.names, name)
			s.sources = append(s.sources, text[i:i+size])
			i += size
			start = i
		case isMark(text, i, sy):
			own := mark(text[i:])
			errs = append(errs, fmt.Errorf("has the database's own parameter mark %q: use a {{name}} instead", own))
			i += max(1, len(own))
		default:
			i++
		}
	}
	s.parts = append(s.parts, text[start:])
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return s, nil
}

// named reads the placeholder at the start of s. The size is 0 if the placeholder has no end.
func named(s string, sy syntax, known []string) (name string, size int, err error) {
	end := strings.Index(s, "}}")
	if end < 0 {
		return "", 0, fmt.Errorf("has a placeholder without }}: %.20q", s)
	}
	name = strings.TrimSpace(s[2:end])
	if word := strings.Fields(name); len(word) > 1 {
		name = word[0] + " " + strings.TrimSpace(name[len(word[0]):])
	}
	for _, k := range known {
		rest, matches := strings.CutPrefix(name, k)
		if !matches || (rest != "") != strings.ContainsAny(k[len(k)-1:], ". ") {
			continue
		}
		if strings.HasSuffix(k, " ") {
			err = checkExpression(rest, sy)
		}
		return name, end + 2, err
	}
	return "", end + 2, fmt.Errorf("has the unknown placeholder {{%s}}: known are %s", name, placeholders(known))
}

// placeholders lists the names as the user writes them.
func placeholders(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		switch {
		case name == runParam:
			name += "NAME"
		case strings.HasSuffix(name, "."):
			name += "COLUMN"
		case strings.HasSuffix(name, " "):
			name += "EXPRESSION"
		}
		list[i] = "{{" + name + "}}"
	}
	return listed(list)
}

// isMark reports whether text[i] starts a parameter mark of the database. The
// database would count it among the marks of the placeholders.
func isMark(text string, i int, sy syntax) bool {
	if !sy.numberedMarks {
		return text[i] == '?'
	}
	return text[i] == '$' && len(mark(text[i:])) > 1 && !wordBefore(text, i)
}

func mark(s string) string {
	return s[:1+len(s[1:])-len(strings.TrimLeft(s[1:], "0123456789"))]
}

// uses reports whether the statement has one of the placeholders.
func (s *statement) uses(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(s.names, name) })
}

// count returns how often the statement has a placeholder.
func (s *statement) count(name string) (n int) {
	for _, other := range s.names {
		if other == name {
			n++
		}
	}
	return n
}

// usesColumns reports whether the statement has {{name}} or {{name.COLUMN}}.
func (s *statement) usesColumns(name string) bool {
	return slices.ContainsFunc(s.names,
		func(used string) bool { return used == name || strings.HasPrefix(used, name+".") })
}

// usesColumn reports whether the statement has {{name.COLUMN}} for a column, in any case.
func (s *statement) usesColumn(name, column string) bool {
	return slices.ContainsFunc(s.names, func(used string) bool { return strings.EqualFold(used, name+"."+column) })
}

// text returns the statement with marks for keyCount keys, or order keys of {{held}}. Each occurrence of a name
// has its own marks, because PostgreSQL gives a mark one type for all its places.
func (s *statement) text(keyCount int) string {
	var b strings.Builder
	s.write(&b, 0, keyCount)
	return b.String()
}

// write writes the statement behind the first n marks of a text, and returns how many marks it has.
func (s *statement) write(b *strings.Builder, n, keyCount int) (count int) {
	for i := range s.names {
		b.WriteString(s.parts[i])
		count += s.writeMarks(b, i, n+count, keyCount)
	}
	b.WriteString(s.parts[len(s.names)])
	return count
}

// values returns what arg returns for each placeholder: a []any of any length for {{held}}, and the values of {{total}}
// and {{index}} for {{mine EXPRESSION}}.
func (s *statement) values(arg func(name string) any) []any {
	values := make([]any, 0, len(s.names))
	for _, name := range s.names {
		switch {
		case name == held:
			list, _ := arg(name).([]any)
			values = append(values, list...)
		case isMine(name):
			values = append(values, arg(total), arg(index))
		default:
			values = append(values, arg(name))
		}
	}
	return values
}

// markCount returns the number of marks in the text for keyCount keys, or order keys of {{held}}.
func (s *statement) markCount(keyCount int) int {
	return len(s.names) + s.count(keys)*(keyCount*max(1, s.keyWidth)-1) + s.count(held)*(keyCount-1) + s.countMine()
}

// is matches what follows a value whose type a database with numbered marks cannot infer, as that before IS NULL.
var is = regexp.MustCompile(`(?i)^\s*(IS|ISNULL|NOTNULL)\b`)

// writeMarks writes the marks of the placeholder i behind the first n marks of the text, and returns their number.
// A key of several columns is a row value: (?, ?).
func (s *statement) writeMarks(b *strings.Builder, i, n, keyCount int) (count int) {
	switch name := s.names[i]; {
	case name == keys:
	case name == held:
		s.writeHeld(b, n, keyCount)
		return keyCount
	case isMine(name):
		return s.writeMine(b, name, n)
	case s.syntax.numberedMarks && is.MatchString(s.parts[i+1]):
		b.WriteString("CAST(")
		s.writeMark(b, n+1)
		b.WriteString(" AS text)")
		return 1
	default:
		s.writeMark(b, n+1)
		return 1
	}
	for i := range keyCount {
		if i > 0 {
			b.WriteString(", ")
		}
		count += s.writeKey(b, n+count)
	}
	return count
}

func (s *statement) writeKey(b *strings.Builder, n int) (count int) {
	if s.keyWidth <= 1 {
		s.writeMark(b, n+1)
		return 1
	}
	b.WriteByte('(')
	for i := range s.keyWidth {
		if i > 0 {
			b.WriteString(", ")
		}
		s.writeMark(b, n+i+1)
	}
	b.WriteByte(')')
	return s.keyWidth
}

func (s *statement) writeMark(b *strings.Builder, n int) {
	if !s.syntax.numberedMarks {
		b.WriteByte('?')
		return
	}
	b.WriteByte('$')
	b.WriteString(strconv.Itoa(n))
}
