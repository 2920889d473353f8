package sqldealer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var orderBy = regexp.MustCompile(`(?i)\bORDER\s+BY\b`)

// buildAfter checks the keys of the file that {{after}} in select needs.
func (b builder) buildAfter() error {
	key, start := b.file.Key, b.file.AfterStart
	if !b.sel.usesColumns(after) {
		if len(start) > 0 {
			return fmt.Errorf(".after_start (%s) has no effect: select does not use {{after}}", listed(start))
		}
		return nil
	}
	switch {
	case b.cursor != nil:
		return errors.New(".select uses both {{after}} and {{cursor}}: with {{cursor}} no row is selected again, " +
			"so remove {{after}}")
	case len(key) == 0:
		return errors.New(".key is missing: it names the column by which select is ordered, and whose value {{after}} is")
	case len(start) == 0:
		return errors.New(".after_start is missing: it is the value of {{after}} before the first row, such as 0")
	case len(start) != len(key):
		return fmt.Errorf(".after_start (%s) must have a value for each column of the key (%s)", listed(start), listed(key))
	case slices.Contains(start, ""):
		return fmt.Errorf(".after_start (%s) must not have an empty value: for the empty text write \\s", listed(start))
	case !slices.ContainsFunc(b.sel.parts, orderBy.MatchString):
		return fmt.Errorf(".select must return its rows in the order of the key: add ORDER BY %s", listed(key))
	}
	for i := range key {
		b.shape.ordered = append(b.shape.ordered, i)
	}
	return checkColumns(b.sel, after, "key", key)
}

// checkColumns checks that select compares all columns behind which it goes on: those of the cursor, or of the key.
// A single one may be {{cursor}} or {{after}} alone.
func checkColumns(sel *statement, placeholder, of string, columns []string) error {
	for _, c := range columns {
		if !sel.usesColumn(placeholder, c) && (len(columns) > 1 || !sel.uses(placeholder)) {
			return fmt.Errorf(".select must use {{%s.%s}}: the %s has the columns %s", placeholder, c, of, listed(columns))
		}
	}
	for _, used := range sel.names {
		column, isColumn := strings.CutPrefix(used, placeholder+".")
		if isColumn && indexFold(columns, column) < 0 || used == placeholder && len(columns) > 1 {
			return fmt.Errorf(".select uses {{%s}}, but the %s has the columns %s: write {{%s.%s}}", used, of, listed(columns),
				placeholder, columns[0])
		}
	}
	return checkRowValues(sel, placeholder, columns)
}

// checkRowValues refuses (a, b) > ({{after.a}}, {{after.b}}) where no index serves it: each select would read all rows
// before that position.
func checkRowValues(sel *statement, placeholder string, columns []string) error {
	if !sel.syntax.rowsUnordered {
		return nil
	}
	for i, name := range sel.names[1:] {
		last := sel.names[i]
		if strings.TrimSpace(sel.parts[i+1]) == "," && strings.HasPrefix(last, placeholder+".") &&
			strings.HasPrefix(name, placeholder+".") {
			return fmt.Errorf(".select compares with ({{%s}}, {{%s}}), for which this database uses no index: write (%s)", last,
				name, behind(placeholder, columns))
		}
	}
	return nil
}

// behind returns the condition for rows behind a position, without row values.
func behind(placeholder string, columns []string) string {
	c := columns[0]
	condition := fmt.Sprintf("%s > {{%s.%[1]s}}", c, placeholder)
	if len(columns) == 1 {
		return condition
	}
	rest := behind(placeholder, columns[1:])
	if len(columns) > 2 {
		rest = "(" + rest + ")"
	}
	return fmt.Sprintf("%s OR %s = {{%s.%[2]s}} AND %[4]s", condition, c, placeholder, rest)
}
