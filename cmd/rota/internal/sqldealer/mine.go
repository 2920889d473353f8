package sqldealer

import (
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// isMine reports whether a placeholder is {{mine EXPRESSION}} or {{mine_hash EXPRESSION}}.
func isMine(name string) bool {
	return strings.HasPrefix(name, mine) || strings.HasPrefix(name, mineHash)
}

// countMine returns how often the statement has {{mine EXPRESSION}} or {{mine_hash EXPRESSION}}.
func (s *statement) countMine() (n int) {
	for _, name := range s.names {
		if isMine(name) {
			n++
		}
	}
	return n
}

// writeMine writes the condition of the rows of a queue (N4), with the marks of {{total}} and {{index}}. The expression
// is the user's own SQL, as what stands around the placeholder.
func (s *statement) writeMine(b *strings.Builder, name string, n int) (count int) {
	condition := s.syntax.dialect.Mine
	if strings.HasPrefix(name, mineHash) {
		condition = s.syntax.dialect.MineHash
	}
	_, expression, _ := strings.Cut(name, " ")
	b.WriteByte('(')
	b.WriteString(condition(expression, n+1))
	b.WriteByte(')')
	return 2
}

// mineIndex returns the part of an index that finds the rows of one of so many queues; empty if the statement has no
// {{mine EXPRESSION}}, or the database would not use that part.
func (s *statement) mineIndex(total int) string {
	i := slices.IndexFunc(s.names, isMine)
	if i < 0 || s.syntax.dialect.Family() != schema.Postgres {
		return ""
	}
	of := s.syntax.dialect.MineIndex
	if strings.HasPrefix(s.names[i], mineHash) {
		of = s.syntax.dialect.MineHashIndex
	}
	_, expression, _ := strings.Cut(s.names[i], " ")
	return fmt.Sprintf("then on (%s), which {{%s}} compares for %d queues, ", of(expression, total), s.names[i], total)
}

// checkExpression returns an error for the expression of {{mine EXPRESSION}} if it would change what stands around it:
// by a comment, a string without an end, or a bracket too many. The error continues the path of the statement.
func checkExpression(expression string, sy syntax) error {
	refuse := func(why string) error { return fmt.Errorf("has {{mine %s}}, whose expression %s", expression, why) }
	depth := 0
	for i := 0; i < len(expression); {
		part := literal(expression, i, sy)
		switch c := expression[i]; {
		case part != "" && isComment(part):
			return refuse("must not have a comment")
		case part != "" && (len(part) < 2 || !strings.HasSuffix(part, part[:1])):
			return refuse("has a quote without an end")
		case part != "":
			i += len(part)
			continue
		case isMark(expression, i, sy) || strings.HasPrefix(expression[i:], "{{"):
			return refuse("must not have a parameter")
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0 && (c == ',' || c == ';'):
			return refuse("must be one expression")
		}
		if depth < 0 {
			return refuse("has a bracket too many")
		}
		i++
	}
	if depth > 0 {
		return refuse("has an open bracket")
	}
	return nil
}

// checkMine refuses {{mine}} for queues that have names.
func (b builder) checkMine(s *statement) error {
	if len(b.settings.QueueNames) > 0 && s.countMine() > 0 {
		return fmt.Errorf("uses {{mine}}, which divides the rows among numbered queues, and the queues have names (%s): "+
			"compare a column with {{queue}}", listed(b.settings.QueueNames))
	}
	return nil
}

// noNumber matches the types whose values are no numbers. In SQLite, a type may have any name with such a word in it.
var noNumber = regexp.MustCompile(`CHAR|TEXT|CLOB|UUID|BLOB|BINARY|BYTEA|ENUM|DATE|TIME`)

// checkMineTypes refuses {{mine COLUMN}} for a column of the result that holds no numbers. PostgreSQL would refuse the
// first of its values, and other databases would give all of them to one queue.
func (s *statement) checkMineTypes(rows *sql.Rows) error {
	types, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	for _, name := range s.names {
		expression, ok := strings.CutPrefix(name, mine)
		column := expression[strings.LastIndexByte(expression, '.')+1:]
		for _, t := range types {
			if ok && strings.EqualFold(t.Name(), column) && noNumber.MatchString(strings.ToUpper(t.DatabaseTypeName())) {
				return fmt.Errorf("{{mine %s}} divides the rows by whole numbers, and column %q is of type %s: "+
					"write {{mine_hash %[1]s}}", expression, t.Name(), t.DatabaseTypeName())
			}
		}
	}
	return nil
}

// errNamed refuses a statement with {{mine}} for a named queue, which the database has and the file has not.
var errNamed = errors.New("{{mine}} divides the rows among numbered queues, and this queue has a name: " +
	"compare a column with {{queue}}")

// checkNumbered returns errNamed if the statement cannot have the rows of a queue.
func (s *statement) checkNumbered(q processor.Queue) error {
	if q.ID != strconv.Itoa(q.Index) && s.countMine() > 0 {
		return fmt.Errorf("queue %s: %w", q.ID, errNamed)
	}
	return nil
}
