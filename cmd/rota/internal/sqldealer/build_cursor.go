package sqldealer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/config"
)

// buildCursor checks the keys of the file that {{cursor}} in select needs.
func (b builder) buildCursor() error {
	c := b.file
	if !b.sel.usesColumns(cursor) {
		return refuseCursorKeys(c, b.sel.uses(horizonName))
	}
	spec := &cursorSpec{names: c.Cursor, start: c.CursorStart, inOrder: c.CommitsInOrder, inRun: b.inRun()}
	if len(spec.names) == 0 {
		spec.names = c.Key
	}
	if err := checkCursor(c, b.sel, spec.names); err != nil {
		return err
	}
	for _, name := range spec.names {
		spec.at = append(spec.at, b.shape.add(name))
	}
	b.cursor, b.shape.ordered = spec, spec.at
	return b.buildHorizon()
}

// buildHorizon chooses how select leaves out the rows that a later commit may precede.
func (b builder) buildHorizon() error {
	c, first := b.file, b.cursor.names[0]
	used := b.sel.uses(horizonName)
	lags := c.CursorLag != 0 || c.CursorNewest != ""
	switch {
	case c.CommitsInOrder && (lags || used):
		return errors.New(".commits_in_order (true) excludes cursor_lag, cursor_newest and {{horizon}}: " +
			"they are for rows that become visible in another order than the cursor's")
	case lags && b.inRun():
		return fmt.Errorf(".cursor_lag (%s) has no effect in mode RUN: each run reads from cursor_start on; "+
			"remove cursor_lag, cursor_newest and {{horizon}}", c.CursorLag)
	case lags && (c.CursorLag <= 0 || c.CursorNewest == ""):
		return fmt.Errorf(".cursor_lag (%s) must be positive, and cursor_newest (%q) must be a statement that selects the "+
			"largest %s: SELECT max(%[3]s) FROM the_table", c.CursorLag, c.CursorNewest, first)
	case c.CommitsInOrder || b.inRun() && !used:
		return nil
	case !lags && !b.syntax.transactionIDs:
		return fmt.Errorf(".select uses {{cursor}}, and a row that is committed late, with a smaller %s than the last one "+
			"read, would be lost: set cursor_lag and cursor_newest, or commits_in_order: true if that cannot happen", first)
	case !used && lags:
		return fmt.Errorf(".select must not read rows that are younger than cursor_lag: add %s <= {{horizon}}", first)
	case !used:
		return fmt.Errorf(".select uses {{cursor}}, and a row that is committed late, with a smaller %s than the last one "+
			"read, would be lost: use a column of type xid8 and the condition xid < {{horizon}} (see docs/sql-dealer.md), "+
			"or set cursor_lag and cursor_newest, or commits_in_order: true if that cannot happen", first)
	case lags:
		newest, err := b.parse(c.CursorNewest, parameter, ownSign)
		if err != nil {
			return fmt.Errorf(".cursor_newest %w", err)
		}
		b.cursor.horizon = newLagHorizon(first, newest, c.CursorLag)
	default:
		b.cursor.horizon, b.cursor.digits, b.shape.xid = xidHorizon{first}, true, b.cursor.at[0]
	}
	return nil
}

// refuseCursorKeys returns an error if the file has keys that need {{cursor}} in select.
func refuseCursorKeys(c config.SQLDealer, horizonUsed bool) error {
	for _, k := range []struct {
		name, value string
		set         bool
	}{
		{"cursor", listed(c.Cursor), len(c.Cursor) > 0},
		{"cursor_start", listed(c.CursorStart), len(c.CursorStart) > 0},
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
	case len(c.Key) == 0:
		return errors.New(".key is missing: it names the column that identifies a row, and whose last value {{cursor}} is " +
			"without the key cursor")
	case len(c.CursorStart) == 0:
		return errors.New(".cursor_start is missing: it is the value of {{cursor}} before the first row, such as 0")
	case len(c.CursorStart) != len(names):
		return fmt.Errorf(".cursor_start (%s) must have a value for each column of the cursor (%s)", listed(c.CursorStart),
			listed(names))
	case slices.Contains(c.CursorStart, ""):
		return fmt.Errorf(".cursor_start (%s) must not have an empty value: for the empty text write \\s",
			listed(c.CursorStart))
	case !sel.uses(limit):
		return errors.New(".select must use {{limit}}: with {{cursor}}, one more row than is executed shows whether the " +
			"last " +
			"one is unique")
	case !slices.ContainsFunc(sel.parts, orderBy.MatchString):
		return fmt.Errorf(".select must return its rows in the order of the cursor: add ORDER BY %s", listed(names))
	}
	return checkColumns(sel, cursor, "cursor", names)
}
