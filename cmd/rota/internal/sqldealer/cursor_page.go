package sqldealer

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// checkPage returns an error if a cursor would lose some of the rows. They are in another
// order, have equal cursors or none, or are above the horizon.
func (c cursored) checkPage(rows []Row, position []string, bound any) error {
	names := strings.Join(c.cursor.names, ", ")
	last := make([]any, len(position))
	for i, text := range position {
		last[i] = decode(text, c.syntax)
	}
	for i, r := range rows {
		for j, at := range c.cursor.at {
			if r.values[at] == nil {
				return fmt.Errorf("row %d has no cursor: column %q is NULL", i+1, c.cursor.names[j])
			}
		}
		switch order, known := c.compare(last, r); {
		case known && order == 0 && i == 0:
			return fmt.Errorf("row 1 is not behind the cursor: %s is %s again; select must compare with > {{cursor}}", names,
				c.Cursor(r))
		case known && order == 0:
			return fmt.Errorf("rows %d and %d have the same cursor: %s is %s, and one of them could be lost; "+
				"add a unique column to cursor and to ORDER BY", i, i+1, names, c.Cursor(r))
		case known && order > 0:
			return fmt.Errorf("row %d is out of order: %s is %s, which is not behind the row or the cursor before it; "+
				"select must return rows > {{cursor}}, ORDER BY %s", i+1, names, c.Cursor(r), names)
		}
		if bound != nil && c.cursor.isAbove(r, bound) {
			return fmt.Errorf("row %d has the %s %s, which is not below the horizon %v: select needs the condition on "+
				"{{horizon}}", i+1, c.cursor.names[0], encode(r.values[c.cursor.at[0]]), bound)
		}
		for j, at := range c.cursor.at {
			last[j] = r.values[at]
		}
	}
	return nil
}

func (c *cursorSpec) isAbove(r Row, bound any) bool {
	order, known := compareValues(r.values[c.at[0]], bound, c.digits)
	return known && (order > 0 || order == 0 && !c.horizon.included())
}

// compare compares the cursors of two rows. The order is not known if it depends on
// a collation.
func (c cursored) compare(last []any, r Row) (order int, known bool) {
	for i, at := range c.cursor.at {
		if order, known = compareValues(last[i], r.values[at], c.cursor.digits && i == 0); !known || order != 0 {
			return order, known
		}
	}
	return 0, true
}

// compareValues compares two values, or their stored texts. With digits, texts of
// digits are numbers.
func compareValues(a, b any, digits bool) (order int, known bool) {
	switch x := a.(type) {
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y), true
		}
	case []byte:
		if y, ok := b.([]byte); ok {
			return bytes.Compare(x, y), true
		}
	case time.Time:
		if y, ok := b.(time.Time); ok {
			return x.Compare(y), true
		}
	}
	if digits || isWhole(a) || isWhole(b) {
		x, okX := new(big.Int).SetString(encode(a), 10)
		y, okY := new(big.Int).SetString(encode(b), 10)
		if okX && okY {
			return x.Cmp(y), true
		}
	}
	return 0, encode(a) == encode(b)
}

func isWhole(v any) bool {
	switch v.(type) {
	case int64, uint64:
		return true
	}
	return false
}
