package sqldealer

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dutyrota/rota/processor"
)

// Row has the columns of a selected row that Execute needs.
type Row struct {
	from   *processor.Selection // shared by all rows of a select
	values []any                // one for each column of the dealer's shape, and then for the others if it is whole
	names  []string             // of all values, as keys of a JSON object, if the shape is whole; shared as from
}

// shape is what the dealer keeps of each row.
type shape struct {
	syntax  syntax
	columns []string // the columns that a Row keeps; those of the key are first
	key     int      // how many of them are the key
	ordered []int    // the indexes of the columns that select compares with an earlier row
	xid     int      // the index of the column that is compared with a horizon of transactions, or -1
	order   int      // the index of the order key, or -1
	start   []string // the values of {{after}} at the start of the table
	whole   bool     // a Row keeps all columns of the result, because a program gets them

	orderFolds atomic.Bool // the order key is of a type of syntax.folding, as the last result says
}

// add returns the index of a column, which it adds if the shape does not have it.
func (sh *shape) add(name string) int {
	i := indexFold(sh.columns, name)
	if i < 0 {
		i, sh.columns = len(sh.columns), append(sh.columns, name)
	}
	return i
}

// keyOf returns the key of a row as a stored text.
func (sh *shape) keyOf(r Row) string { return encodeKey(r.values[:sh.key]) }

// afterValue returns the value of a column of the key at a position. The empty position is the start.
func (sh *shape) afterValue(at int, position string) any {
	if position == "" {
		return decode(sh.start[at], sh.syntax)
	}
	texts := splitKey(position, sh.key)
	if null := slices.Index(texts, nullMark); sh.syntax.nullsFirst && null >= 0 && null <= at {
		return decode(sh.start[at], sh.syntax) // the rows with values follow, and nothing is greater than NULL
	}
	return decode(texts[at], sh.syntax)
}

// checkKeys returns an error that is final if the key of a row has NULL: no statement finds the row by it. The
// processor executes the others without it, and records it as dead.
func (sh *shape) checkKeys(rows []Row) error {
	for _, r := range rows {
		if i := slices.Index(r.values[:sh.key], nil); i >= 0 {
			return processor.Permanent(fmt.Errorf("the row %s has no key: column %q is NULL", sh.keyOf(r), sh.columns[i]))
		}
	}
	return nil
}

// rowsPerBlock is how many rows share one allocation of values.
const rowsPerBlock = 64

// read returns the rows of a result.
func (sh *shape) read(rows *sql.Rows, s *processor.Selection) ([]Row, error) {
	r, err := sh.newReader(rows)
	if err != nil {
		return nil, err
	}
	var list []Row
	var values []any
	width := len(r.columns)
	for rows.Next() {
		if len(values) < width {
			values = make([]any, width*rowsPerBlock)
		}
		own := values[:width:width]
		values = values[width:]
		if err := r.scan(rows, own); err != nil {
			return nil, err
		}
		list = append(list, Row{from: s, values: own, names: r.names})
	}
	return list, rows.Err()
}

// reader scans the columns that the dealer keeps and skips the others.
type reader struct {
	syntax   syntax
	into     []any    // one per column of the result
	position []int    // for each kept column, its index in the result
	columns  []column // the kept columns
	names    []string // their names as Row has them; nil if the shape is not whole
}

func (sh *shape) newReader(rows *sql.Rows) (*reader, error) {
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	r := &reader{syntax: sh.syntax, into: make([]any, len(types))}
	for i := range r.into {
		r.into[i] = skipped{}
	}
	for at, column := range sh.columns {
		named := func(t *sql.ColumnType) bool { return strings.EqualFold(t.Name(), column) }
		i := slices.IndexFunc(types, named)
		if i < 0 {
			return nil, fmt.Errorf("the result has no column %q: it has %s", column, names(types))
		}
		if slices.ContainsFunc(types[i+1:], named) {
			return nil, errTwice(column)
		}
		c := newColumn(column, types[i].DatabaseTypeName(), sh.syntax)
		if sh.syntax.parsesTimes && isTime(c.kind) {
			return nil, fmt.Errorf("column %q of type %s does not keep its stored text: select CAST(%[1]s AS TEXT) AS %[1]s",
				column, c.kind)
		}
		if at == sh.order {
			sh.orderFolds.Store(slices.Contains(sh.syntax.folding, c.kind))
		}
		if err := sh.checkColumn(&c, at); err != nil {
			return nil, err
		}
		r.position, r.columns = append(r.position, i), append(r.columns, c)
	}
	if sh.whole {
		return r, r.addOthers(types)
	}
	return r, nil
}

// errTwice refuses a column whose name another one has, as in SELECT c.*, o.*: the dealer cannot tell them apart.
func errTwice(column string) error {
	return fmt.Errorf("the result has two columns %q: give one of them another name", column)
}

// addOthers keeps the columns that the shape does not name, too.
func (r *reader) addOthers(types []*sql.ColumnType) error {
	for i, t := range types {
		if !slices.Contains(r.position, i) {
			r.position = append(r.position, i)
			r.columns = append(r.columns, newColumn(t.Name(), t.DatabaseTypeName(), r.syntax))
		}
	}
	for _, at := range r.position {
		name := string(appendText(nil, types[at].Name())) + ":"
		if slices.Contains(r.names, name) {
			return errTwice(types[at].Name())
		}
		r.names = append(r.names, name)
	}
	return nil
}

// checkColumn returns an error for a column that cannot be a key or a cursor.
func (sh *shape) checkColumn(c *column, at int) error {
	c.ordered = slices.Contains(sh.ordered, at)
	switch {
	case !c.ordered && at >= sh.key:
		return nil
	case at == sh.xid && c.kind != "": // the driver has no name for xid8
		return fmt.Errorf("column %q of type %s cannot be compared with {{horizon}}: it must be of type xid8, "+
			"with the default pg_current_xact_id()", c.name, c.kind)
	}
	return c.refuseType(sh.syntax)
}

func (r *reader) scan(rows *sql.Rows, values []any) error {
	for i, at := range r.position {
		r.into[at] = &values[i]
	}
	if err := rows.Scan(r.into...); err != nil {
		return err
	}
	for i := range values {
		if err := r.columns[i].refuseZeroDate(values[i], r.syntax); err != nil {
			return err
		}
		values[i] = r.columns[i].value(values[i])
		if err := r.columns[i].refuseValue(values[i], r.syntax); err != nil {
			return err
		}
	}
	return nil
}

// skipped scans a column that is not kept.
type skipped struct{}

// Scan implements sql.Scanner.
func (skipped) Scan(any) error { return nil }

// isTime reports whether SQLite's driver parses the texts of a column as times. It
// writes such a time in another form, so that an UPDATE finds no row.
func isTime(kind string) bool {
	return kind == "DATE" || kind == "DATETIME" || kind == "TIMESTAMP"
}

func names(types []*sql.ColumnType) string {
	list := make([]string, len(types))
	for i, t := range types {
		list[i] = t.Name()
	}
	return listed(list)
}
