package sqldealer

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dutyrota/rota/schema"
)

// statement is an SQL text cut at its placeholders. parts has one element more
// than names: parts[0] names[0] parts[1] ...
type statement struct {
	dialect schema.Dialect
	parts   []string
	names   []string
}

// What may be bound.
const (
	total, index, queue   = "total", "index", "queue"
	queueParameter, limit = "queue_parameter", "limit"
	cursor                = "cursor"
	parameter, ownSign    = "parameter", "own_sign"
	runKey                = "run_key"
	keys, server          = "keys", "server"
	row                   = "row." // and a column's name
)

var placeholder = regexp.MustCompile(`\{\{\s*[A-Za-z_][\w.]*\s*\}\}`)

// parse cuts text at its placeholders, each of which must be one of known. A
// known name that ends with a dot stands for all names that begin with it.
func parse(text string, d schema.Dialect, known ...string) (*statement, error) {
	s := &statement{dialect: d}
	start := 0
	for i := 0; i < len(text); {
		switch part := literal(text, i, d); {
		case part != "":
			if inside := placeholder.FindString(part); inside != "" && !isComment(part) {
				return nil, fmt.Errorf("%s stands between quotes, where nothing can be bound: leave the quotes out", inside)
			}
			i += len(part)
		case strings.HasPrefix(text[i:], "{{"):
			name, size, err := named(text[i:], known)
			if err != nil {
				return nil, err
			}
			s.parts, s.names = append(s.parts, text[start:i]), append(s.names, name)
			i += size
			start = i
		case isMark(text, i, d):
			return nil, fmt.Errorf("%q is the database's own parameter mark: write a {{name}} instead", mark(text[i:]))
		default:
			i++
		}
	}
	s.parts = append(s.parts, text[start:])
	return s, nil
}

// named reads the placeholder that s begins with.
func named(s string, known []string) (name string, size int, err error) {
	end := strings.Index(s, "}}")
	if end < 0 {
		return "", 0, fmt.Errorf("%.20q is not closed with }}", s)
	}
	name = strings.TrimSpace(s[2:end])
	for _, k := range known {
		rest, matches := strings.CutPrefix(name, k)
		if matches && (rest != "") == strings.HasSuffix(k, ".") {
			return name, end + 2, nil
		}
	}
	return "", 0, fmt.Errorf("unknown placeholder {{%s}}; known are %s", name, list(known))
}

func list(names []string) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		if strings.HasSuffix(name, ".") {
			name += "COLUMN"
		}
		b.WriteString("{{" + name + "}}")
	}
	return b.String()
}

// isMark reports a parameter mark that the user wrote: it would take the place
// of one of ours.
func isMark(text string, i int, d schema.Dialect) bool {
	if d != schema.Postgres {
		return text[i] == '?'
	}
	return text[i] == '$' && len(mark(text[i:])) > 1 && !wordBefore(text, i)
}

func mark(s string) string {
	return s[:1+len(s[1:])-len(strings.TrimLeft(s[1:], "0123456789"))]
}

func (s *statement) mentions(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(s.names, name) })
}

// text returns the statement for so many keys. Each occurrence of a name has
// its own mark: PostgreSQL gives a mark one type, wherever it stands.
func (s *statement) text(keyCount int) string {
	var b strings.Builder
	n := 0
	for i, name := range s.names {
		b.WriteString(s.parts[i])
		count := 1
		if name == keys {
			count = keyCount
		}
		for j := range count {
			if j > 0 {
				b.WriteString(", ")
			}
			n++
			s.writeMark(&b, n)
		}
	}
	b.WriteString(s.parts[len(s.names)])
	return b.String()
}

func (s *statement) writeMark(b *strings.Builder, n int) {
	if s.dialect != schema.Postgres {
		b.WriteByte('?')
		return
	}
	b.WriteByte('$')
	b.WriteString(strconv.Itoa(n))
}
