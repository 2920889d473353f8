package sqldealer

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strings"
)

// OrderKey implements processor.Ordered. A row whose column is NULL is in no order.
func (d *Dealer) OrderKey(r Row) string {
	if v := r.values[d.shape.order]; v != nil {
		return encode(v)
	}
	return ""
}

// Atomic implements processor.Atomic: Execute is one transaction, unless it calls a program.
func (d *Dealer) Atomic() bool { return !d.external }

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// buildOrder checks the order key of the file, and {{held}} in select.
func (b builder) buildOrder() error {
	column := b.file.OrderKey
	switch {
	case column == "" && b.sel.uses(held):
		return errors.New(".select uses {{held}}, which needs order_key")
	case column == "":
		return nil
	case b.cursor != nil:
		return fmt.Errorf(".order_key (%s) has no effect: the rows of {{cursor}} are executed in order", column)
	case len(b.file.Key) == 0:
		return fmt.Errorf("%w: order_key needs it, to know the rows that failed", errNoKey)
	}
	if b.sel.uses(held) && !identifier.MatchString(column) {
		return fmt.Errorf(".order_key (%s) must be a plain name for {{held}}: letters, digits and underscores", column)
	}
	b.shape.order = b.shape.add(column)
	return nil
}

// heldValues returns the values of {{held}}: the keys, and the last of them again up to a power of two. So few
// different statements are enough.
func (sh *shape) heldValues(keys []string) (values []any) {
	for _, key := range keys {
		values = append(values, decode(key, sh.syntax))
	}
	for len(values) > 0 && bits.OnesCount(uint(len(values))) != 1 {
		values = append(values, values[len(keys)-1])
	}
	return values
}

// writeHeld writes {{held}}: a condition that is true for the rows of the held keys, and never NULL, so that NOT
// {{held}} is true for a row without a key. On MySQL most collations take different texts for equal, such as a and A.
// So texts are compared by their bytes. Other types are not: a UUID that is compared with bytes is NULL, and NOT
// {{held}} would be true for no row.
func (s *statement) writeHeld(b *strings.Builder, n, count int) {
	if count == 0 {
		b.WriteString("(1 = 0)")
		return
	}
	column, before, behind := s.orderKey, "", ""
	if s.heldFolds { // the column may have another character set than the values
		column, before, behind = "CAST(CONVERT("+column+" USING utf8mb4) AS BINARY)", "CAST(", " AS BINARY)"
	}
	fmt.Fprintf(b, "(%s IS NOT NULL AND %s IN (", s.orderKey, column)
	for i := range count {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(before)
		s.writeMark(b, n+i+1)
		b.WriteString(behind)
	}
	b.WriteString("))")
}
