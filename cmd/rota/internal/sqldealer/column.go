package sqldealer

import (
	"fmt"
	"strings"
	"time"
)

// column is a column of the result that the dealer keeps.
type column struct {
	name    string
	kind    string // the database's name of its type, in capitals; empty if the driver does not know it
	text    bool   // the driver returns its text as bytes
	layout  string // the form of its times as text; empty if they stay times
	ordered bool   // select compares it with the value of an earlier row
}

func newColumn(name, kind string, sy syntax) column {
	c := column{name: name, kind: strings.ToUpper(kind)}
	c.text = sy.textAsBytes && !sy.isBinary(c.kind)
	if c.layout = sy.timeLayouts[c.kind]; c.layout == "" {
		c.layout = sy.timeLayouts[""]
	}
	return c
}

// value returns what is kept of a value that the driver has returned.
func (c *column) value(v any) any {
	switch v := v.(type) {
	case []byte:
		if c.text {
			return string(v)
		}
	case time.Time:
		if c.layout != "" && v.Day() == 2 && v.Year() == 0 { // PostgreSQL's time 24:00:00
			return "24" + v.Format(strings.TrimPrefix(c.layout, "15"))
		}
		if c.layout != "" {
			return v.Format(c.layout)
		}
	}
	return v
}

// refuseZeroDate returns an error for the date 0000-00-00 of MySQL. Its driver returns the zero time, which is another
// value when it is bound, and would find no row.
func (c *column) refuseZeroDate(v any, sy syntax) error {
	if at, ok := v.(time.Time); !ok || !sy.zeroDates || !at.IsZero() {
		return nil
	}
	return fmt.Errorf("column %q of type %s holds 0000-00-00, which is no date: "+
		"correct the row, or select NULLIF(%[1]s, 0) AS %[1]s", c.name, c.kind)
}

// refuseType returns an error for a column whose stored text does not give the same value again,
// or does not compare like it.
func (c *column) refuseType(sy syntax) error {
	role, solution := "a key", sy.inexact[c.kind]
	if solution == "" && c.ordered {
		role, solution = "{{cursor}} or {{after}}", sy.unordered[c.kind]
	}
	if solution == "" {
		return nil
	}
	return fmt.Errorf("column %q of type %s cannot be %s: %s", c.name, c.kind, role, fmt.Sprintf(solution, c.name))
}

// refuseValue returns an error for a value of an ordered column that SQLite compares in another
// way when it comes from its stored text. A column of SQLite may hold values of any type.
func (c *column) refuseValue(v any, sy syntax) error {
	if !c.ordered || !sy.dynamicTypes {
		return nil
	}
	switch v := v.(type) {
	case float64:
		return fmt.Errorf("column %q holds %v, which cannot be {{cursor}} or {{after}}: only whole numbers, "+
			"texts and blobs are exact", c.name, v)
	case string:
		if _, number := wholeNumber(v); number && (c.kind == "" || c.kind == "BLOB") {
			return fmt.Errorf("column %q holds the text %q and has no type: "+
				"declare it TEXT, or SQLite takes the text for a number", c.name, v)
		}
	}
	return nil
}
