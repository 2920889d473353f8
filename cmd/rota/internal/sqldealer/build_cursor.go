package sqldealer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dutyrota/rota/config"
)

var orderBy = regexp.MustCompile(`(?i)\bORDER\s+BY\b`)

// buildCursor checks the keys that {{cursor}} in select needs.
func (d *Dealer) buildCursor(c config.SQLDealer) error {
	if !d.sel.usesCursor() {
		return refuseCursorKeys(c, d.sel.uses(horizonName))
	}
	spec := &cursorSpec{names: c.Cursor, inOrder: c.CommitsInOrder, inRun: d.modeRun}
	if len(spec.names) == 0 {
		spec.names = []string{c.Key}
	}
	if err := checkCursor(c, d.sel, spec.names); err != nil {
		return err
	}
	spec.start = c.CursorStart
	for _, name := range spec.names {
		spec.at = append(spec.at, d.addColumn(name))
	}
	d.cursor = spec
	return d.buildHorizon(c)
}

// buildHorizon chooses how select is kept from rows that a later commit may precede.
func (d *Dealer) buildHorizon(c config.SQLDealer) error {
	used := d.sel.uses(horizonName)
	lags := c.CursorLag != 0 || c.CursorNewest != ""
	switch {
	case c.CommitsInOrder && (lags || used):
		return errors.New(".commits_in_order (true) excludes cursor_lag, cursor_newest and {{horizon}}: they are for rows that become visible in another order than the cursor's")
	case lags && d.modeRun:
		return fmt.Errorf(".cursor_lag (%s) has no effect in mode RUN: each run reads from cursor_start on; remove cursor_lag, cursor_newest and {{horizon}}", c.CursorLag)
	case lags && (c.CursorLag <= 0 || c.CursorNewest == ""):
		return fmt.Errorf(".cursor_lag (%s) must be positive, and cursor_newest (%q) must be a statement that selects the largest %s: SELECT max(%[3]s) FROM the_table", c.CursorLag, c.CursorNewest, d.cursor.names[0])
	case c.CommitsInOrder || d.modeRun && !used:
		return nil
	case !lags && !d.syntax.transactionIDs:
		return fmt.Errorf(".select uses {{cursor}}, and a row that is committed late, with a smaller %s than the last one read, would be lost: set cursor_lag and cursor_newest, or commits_in_order: true if that cannot happen", d.cursor.names[0])
	case !used && lags:
		return fmt.Errorf(".select must not read rows that are younger than cursor_lag: add %s <= {{horizon}}", d.cursor.names[0])
	case !used:
		return fmt.Errorf(".select uses {{cursor}}, and a row that is committed late, with a smaller %s than the last one read, would be lost: use a column of type xid8 and the condition xid < {{horizon}} (see the README), or set cursor_lag and cursor_newest, or commits_in_order: true if that cannot happen", d.cursor.names[0])
	case lags:
		newest, err := d.parse(c.CursorNewest, parameter, ownSign)
		if err != nil {
			return fmt.Errorf(".cursor_newest %w", err)
		}
		d.cursor.horizon = newLagHorizon(d.cursor.names[0], newest, c.CursorLag)
	default:
		d.cursor.horizon, d.cursor.digits = xidHorizon{d.cursor.names[0]}, true
	}
	return nil
}

// refuseCursorKeys refuses keys that only {{cursor}} gives a meaning.
func refuseCursorKeys(c config.SQLDealer, horizonUsed bool) error {
	for _, k := range []struct {
		name, value string
		set         bool
	}{
		{"cursor", strings.Join(c.Cursor, ", "), len(c.Cursor) > 0},
		{"cursor_start", strings.Join(c.CursorStart, ", "), len(c.CursorStart) > 0},
		{"cursor_lag", c.CursorLag.String(), c.CursorLag != 0},
		{"cursor_newest", c.CursorNewest, c.CursorNewest != ""},
		{"commits_in_order", "true", c.CommitsInOrder},
	} {
		if k.set {
			return fmt.Errorf(".%s (%s) has no effect: select does not use {{cursor}}", k.name, k.value)
		}
	}
	if horizonUsed {
		return errors.New(".select uses {{horizon}} without {{cursor}}: only rows behind a cursor can be lost")
	}
	return nil
}

// checkCursor checks what each select with a cursor needs.
func checkCursor(c config.SQLDealer, sel *statement, names []string) error {
	switch {
	case c.Key == "":
		return errors.New(".key is missing: it names the column that identifies a row, and whose last value {{cursor}} is without the key cursor")
	case len(c.CursorStart) == 0:
		return errors.New(".cursor_start is missing: it is the value of {{cursor}} before the first row, such as 0")
	case len(c.CursorStart) != len(names):
		return fmt.Errorf(".cursor_start (%s) must have a value for each column of the cursor (%s)", strings.Join(c.CursorStart, ", "), strings.Join(names, ", "))
	case slices.Contains(c.CursorStart, ""):
		return fmt.Errorf(".cursor_start (%s) must not have an empty value: for the empty text write \\s", strings.Join(c.CursorStart, ", "))
	case !sel.uses(limit):
		return errors.New(".select must use {{limit}}: with {{cursor}}, one more row than is executed shows whether the last one is unique")
	case !slices.ContainsFunc(sel.parts, orderBy.MatchString):
		return fmt.Errorf(".select must return its rows in the order of the cursor: add ORDER BY %s", strings.Join(names, ", "))
	}
	return checkCursorNames(sel, names)
}

// checkCursorNames checks that select compares all columns of the cursor.
func checkCursorNames(sel *statement, names []string) error {
	if len(names) == 1 && sel.uses(cursor) {
		names = nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(sel.names, func(used string) bool { return strings.EqualFold(used, cursor+"."+name) }) {
			return fmt.Errorf(".select must use {{cursor.%s}}: the cursor has the columns %s", name, strings.Join(names, ", "))
		}
	}
	for _, used := range sel.names {
		column, ofCursor := strings.CutPrefix(used, cursor+".")
		if ofCursor && !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, column) }) || used == cursor && len(names) > 1 {
			return fmt.Errorf(".select uses {{%s}}, but the cursor has the columns %s: write {{cursor.%s}}", used, strings.Join(names, ", "), names[0])
		}
	}
	return nil
}

// usesCursor reports whether the statement has {{cursor}} or {{cursor.COLUMN}}.
func (s *statement) usesCursor() bool {
	return slices.ContainsFunc(s.names, func(name string) bool { return name == cursor || strings.HasPrefix(name, cursor+".") })
}

// addColumn returns the index of a column that the dealer keeps.
func (d *Dealer) addColumn(name string) int {
	i := slices.IndexFunc(d.columns, func(c string) bool { return strings.EqualFold(c, name) })
	if i < 0 {
		i, d.columns = len(d.columns), append(d.columns, name)
	}
	return i
}
