package sqldealer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/dutyrota/rota/processor"
)

// cursorSpec is what the file says about the cursor.
type cursorSpec struct {
	syntax  syntax
	names   []string // its columns
	at      []int    // for each of them, its index in Dealer.columns
	start   []string // their values before the first row
	inOrder bool     // rows become visible in the order of the cursor
	inRun   bool     // the file says mode RUN: each run reads from the start
	horizon horizon  // nil if inOrder, or in a run
	digits  bool     // the driver returns the numbers of the first column as text
}

// Cursor implements processor.Cursored. A cursor of several columns is a JSON array.
func (d *Dealer) Cursor(r Row) string { return d.cursor.of(r) }

// of returns the cursor of a row.
func (c *cursorSpec) of(r Row) string {
	texts := c.texts(r)
	if len(texts) == 1 {
		return texts[0]
	}
	b, _ := json.Marshal(texts) // strings can always be marshaled
	return string(b)
}

func (c *cursorSpec) texts(r Row) []string {
	texts := make([]string, len(c.at))
	for i, at := range c.at {
		texts[i] = encode(r.values[at])
	}
	return texts
}

// position returns the texts of a saved cursor. The empty cursor is the start.
func (c *cursorSpec) position(saved string) ([]string, error) {
	if saved == "" {
		return c.start, nil
	}
	texts := []string{saved}
	if len(c.names) > 1 {
		texts = nil
		if json.Unmarshal([]byte(saved), &texts) != nil || len(texts) != len(c.names) {
			return nil, fmt.Errorf("the saved cursor %q (cursor_value of the queue) does not have the columns %s of the "+
				"file: delete the task type or restore the columns", saved, listed(c.names))
		}
	}
	return texts, nil
}

// errRunOnly refuses a cursor without a horizon when the database overrides the mode.
var errRunOnly = errors.New("the database says mode CONTINUOUS and the file says RUN: with {{cursor}}, " +
	"rows that are committed late would be lost; see docs/sql-dealer.md for {{horizon}}")

// selectBehind returns the rows behind the cursor. It asks for one row more, which shows whether the cursor of the last
// row is unique.
func (d *Dealer) selectBehind(ctx context.Context, s processor.Selection) ([]Row, error) {
	spec, wanted := d.cursor, s.Limit
	position, err := spec.position(s.Queue.Cursor)
	if err != nil {
		return nil, err
	}
	if spec.horizon == nil && !spec.inOrder && s.Run == nil {
		return nil, errRunOnly
	}
	var bound any
	if spec.horizon != nil {
		if bound, err = spec.horizon.read(ctx, d, position[0], &s); err != nil || bound == nil {
			return nil, err
		}
	}
	s.Limit++
	rows, err := d.query(ctx, args{&s, &d.shape, spec, position, bound})
	if err != nil {
		return nil, err
	}
	if err := spec.checkPage(rows, position, bound); err != nil {
		return nil, fmt.Errorf("run select%s: %w", in(d.name), err)
	}
	return rows[:min(wanted, len(rows))], nil
}

// checkPage returns an error if a cursor would lose some of the rows. They are in another
// order, have equal cursors or none, or are above the horizon.
func (c *cursorSpec) checkPage(rows []Row, position []string, bound any) error {
	names := listed(c.names)
	last := make([]any, len(position))
	for i, text := range position {
		last[i] = decode(text, c.syntax)
	}
	for i, r := range rows {
		for j, at := range c.at {
			if r.values[at] == nil {
				return fmt.Errorf("row %d has no cursor: column %q is NULL", i+1, c.names[j])
			}
		}
		switch order, known := c.compare(last, r); {
		case known && order == 0 && i == 0:
			return fmt.Errorf("row 1 is not behind the cursor: %s is %s again; select must compare with > {{cursor}}", names,
				c.of(r))
		case known && order == 0:
			return fmt.Errorf("rows %d and %d have the same cursor: %s is %s, and one of them could be lost; "+
				"add a unique column to cursor and to ORDER BY", i, i+1, names, c.of(r))
		case known && order > 0:
			return fmt.Errorf("row %d is out of order: %s is %s, which is not behind the row or the cursor before it; "+
				"select must return rows > {{cursor}}, ORDER BY %s", i+1, names, c.of(r), names)
		}
		if bound != nil && c.isAbove(r, bound) {
			return fmt.Errorf("row %d has the %s %s, which is not below the horizon %v: select needs the condition on "+
				"{{horizon}}", i+1, c.names[0], encode(r.values[c.at[0]]), bound)
		}
		for j, at := range c.at {
			last[j] = r.values[at]
		}
	}
	return nil
}

func (c *cursorSpec) isAbove(r Row, bound any) bool {
	order, known := compareValues(r.values[c.at[0]], bound, c.digits)
	return known && (order > 0 || order == 0 && !c.horizon.included())
}

// compare compares the cursors of two rows. The order is not known if it depends on a collation.
func (c *cursorSpec) compare(last []any, r Row) (order int, known bool) {
	for i, at := range c.at {
		if order, known = compareValues(last[i], r.values[at], c.digits && i == 0); !known || order != 0 {
			return order, known
		}
	}
	return 0, true
}

// compareValues compares two values, or their stored texts. With digits, texts of digits are numbers.
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
