package sqldealer

import (
	"regexp"
	"slices"
	"strings"
)

// servingIndex is the index with which a select reads no other rows than those that
// it returns, except those of other queues: first the columns that it compares with
// a value, then those that it sorts by.
type servingIndex struct {
	table   string
	equal   []string
	ordered []string
}

// CREATE INDEX for the table.
func (x servingIndex) String() string {
	return "CREATE INDEX ON " + x.table + " (" + strings.Join(slices.Concat(x.equal, x.ordered), ", ") + ")"
}

var (
	clauses  = regexp.MustCompile(`(?is)^\s*SELECT\s.*?\sFROM\s+([\w."` + "`" + `]+)(?:\s+(?:AS\s+)?(\w+))?\s+WHERE\s(.*?)(?:\sORDER\s+BY\s(.*?))?(?:\s(?:LIMIT|FETCH|OFFSET|FOR)\s.*)?;?\s*$`)
	conjunct = regexp.MustCompile(`(?i)\s+AND\s+`)
	equality = regexp.MustCompile(`(?is)^([\w."` + "`" + `]+)\s*(?:=\s*([^=<>]+)|IS\s+NULL|IN\s*\(.*\))$`)
	between  = regexp.MustCompile(`(?is)\b(BETWEEN|OR|JOIN|UNION|GROUP|HAVING|WITH|EXISTS|SELECT)\b`)
	sortItem = regexp.MustCompile(`(?is)^([\w."` + "`" + `]+)(?:\s+(ASC|DESC))?$`)
)

// findServingIndex returns the index that would serve a select of a single table, and
// false if the select has a form for which it cannot tell.
func findServingIndex(source string) (x servingIndex, ok bool) {
	parts := clauses.FindStringSubmatch(source)
	if parts == nil || between.MatchString(parts[3]) {
		return x, false
	}
	x.table = parts[1]
	for _, c := range conjunct.Split(parts[3], -1) {
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

func appendColumn(list []string, column string) []string {
	if column = unqualified(column); slices.Contains(list, column) {
		return list
	}
	return append(list, column)
}

// unqualified returns a column without the name of its table.
func unqualified(column string) string { return column[strings.LastIndexByte(column, '.')+1:] }
