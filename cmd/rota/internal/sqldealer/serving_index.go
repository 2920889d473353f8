package sqldealer

import (
	"regexp"
	"slices"
	"strings"
)

// servingIndex is the index with which a select reads only the rows that it returns,
// and rows of other queues. Its first columns are compared with a value. The others
// are sorted by.
type servingIndex struct {
	table   string
	equal   []string
	ordered []string
}

// String returns the statement that creates the index. The name is needed on MySQL and SQLite.
func (x servingIndex) String() string {
	name := strings.Trim(unqualified(x.table), "\"`") + "_work"
	return "CREATE INDEX " + name + " ON " + x.table + " (" + strings.Join(slices.Concat(x.equal, x.ordered), ", ") + ")"
}

var (
	clauses  = regexp.MustCompile(`(?is)^\s*SELECT\s.*?\sFROM\s+([\w."` + "`" + `]+)(?:\s+(?:AS\s+)?(\w+))?(?:\s+(?:USE|FORCE|IGNORE)\s+(?:INDEX|KEY)\s*\([^)]*\))?\s+WHERE\s(.*?)(?:\sORDER\s+BY\s(.*?))?(?:\s(?:LIMIT|FETCH|OFFSET|FOR)\s.*)?;?\s*$`)
	conjunct = regexp.MustCompile(`(?i)\s+AND\s+`)
	equality = regexp.MustCompile(`(?is)^([\w."` + "`" + `]+)\s*(?:=\s*([^=<>]+)|IS\s+NULL|IN\s*\(.*\))$`)
	between  = regexp.MustCompile(`(?is)\b(BETWEEN|OR|JOIN|UNION|GROUP|HAVING|WITH|EXISTS|SELECT)\b`)
	group    = regexp.MustCompile(`\([^()]*\)`)
	sortItem = regexp.MustCompile(`(?is)^([\w."` + "`" + `]+)(?:\s+(ASC|DESC))?$`)
)

// findServingIndex returns the index that would serve a select of a single table, and
// false if the select has a form for which it cannot tell.
func findServingIndex(source string) (x servingIndex, ok bool) {
	parts := clauses.FindStringSubmatch(source)
	if parts == nil {
		return x, false
	}
	where := withoutGroups(parts[3])
	if between.MatchString(where) {
		return x, false
	}
	x.table = parts[1]
	for _, c := range conjunct.Split(where, -1) {
		if m := equality.FindStringSubmatch(strings.TrimSpace(c)); m != nil {
			x.equal = appendColumn(x.equal, m[1])
		}
	}
	if parts[4] == "" {
		return x, len(x.equal) > 0
	}
	for item := range strings.SplitSeq(parts[4], ",") {
		m := sortItem.FindStringSubmatch(strings.TrimSpace(item))
		if m == nil {
			return x, false
		}
		if column := unqualified(m[1]); strings.EqualFold(m[2], "DESC") {
			x.ordered = append(x.ordered, column+" DESC")
		} else if !slices.Contains(x.equal, column) {
			x.ordered = appendColumn(x.ordered, m[1])
		}
	}
	return x, len(x.equal) > 0
}

// withoutGroups empties the parentheses of a condition, except those with a subquery: a group is one condition.
func withoutGroups(where string) string {
	for {
		next := group.ReplaceAllStringFunc(where, func(g string) string {
			if strings.Contains(strings.ToUpper(g), "SELECT") {
				return strings.NewReplacer("(", "[", ")", "]").Replace(g)
			}
			return "[]"
		})
		if next == where {
			return strings.NewReplacer("[", "(", "]", ")").Replace(where)
		}
		where = next
	}
}

func appendColumn(list []string, column string) []string {
	if column = unqualified(column); slices.Contains(list, column) {
		return list
	}
	return append(list, column)
}

// unqualified returns a column without the name of its table.
func unqualified(column string) string { return column[strings.LastIndexByte(column, '.')+1:] }
