package sqldealer

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// Row is a selected row: those of its columns that Execute needs.
type Row struct {
	from   *processor.Selection // shared by all rows of a select
	values []any                // one for each of the dealer's columns
}

// key is the first column as text, which the database reads back as the same
// value.
func (r Row) key() string {
	switch v := r.values[0].(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case []byte:
		return hex.EncodeToString(v)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	default:
		return fmt.Sprint(v)
	}
}

// block is the number of rows whose values are allocated together.
const block = 64

// read turns a result into rows.
func (d *Dealer) read(rows *sql.Rows, s *processor.Selection) ([]Row, error) {
	r, err := d.newReader(rows)
	if err != nil {
		return nil, err
	}
	var list []Row
	var values []any
	width := len(d.columns)
	for rows.Next() {
		if len(values) < width {
			values = make([]any, width*block)
		}
		mine := values[:width:width]
		values = values[width:]
		if err := r.scan(rows, mine); err != nil {
			return nil, err
		}
		list = append(list, Row{from: s, values: mine})
	}
	return list, rows.Err()
}

// reader scans the columns that the dealer keeps and skips the others.
type reader struct {
	into     []any  // one for each column of the result
	position []int  // for each column that is kept, its place in the result
	text     []bool // for each column that is kept: bytes of it are text
}

func (d *Dealer) newReader(rows *sql.Rows) (*reader, error) {
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	r := &reader{into: make([]any, len(types))}
	for i := range r.into {
		r.into[i] = skipped{}
	}
	for _, column := range d.columns {
		i := slices.IndexFunc(types, func(t *sql.ColumnType) bool { return strings.EqualFold(t.Name(), column) })
		if i < 0 {
			return nil, fmt.Errorf("the result has no column %q; it has %s", column, names(types))
		}
		kind := strings.ToUpper(types[i].DatabaseTypeName())
		if d.dialect == schema.SQLite && changesTimes(kind) {
			return nil, fmt.Errorf("column %q is declared %s and would not come back as it is stored: select CAST(%[1]s AS TEXT) AS %[1]s", column, kind)
		}
		r.position = append(r.position, i)
		r.text = append(r.text, d.dialect != schema.SQLite && !isBinary(kind))
	}
	return r, nil
}

func (r *reader) scan(rows *sql.Rows, values []any) error {
	for i, at := range r.position {
		r.into[at] = &values[i]
	}
	if err := rows.Scan(r.into...); err != nil {
		return err
	}
	for i, v := range values {
		if bytes, ok := v.([]byte); ok && r.text[i] {
			values[i] = string(bytes)
		}
	}
	return nil
}

// skipped is a column that nobody asked for.
type skipped struct{}

// Scan does nothing.
func (skipped) Scan(any) error { return nil }

// isBinary tells bytes from text that a driver delivers as bytes (numeric, uuid
// and enum of PostgreSQL, every string of MySQL). Bound as bytes, text would be
// sent in the binary format, and is another value or an error.
func isBinary(kind string) bool {
	return kind == "BYTEA" || kind == "BIT" || kind == "GEOMETRY" ||
		strings.HasSuffix(kind, "BLOB") || strings.HasSuffix(kind, "BINARY")
}

// changesTimes names the types whose text SQLite's driver turns into a
// time.Time, and writes back in another form: an UPDATE would find no row.
func changesTimes(kind string) bool {
	return kind == "DATE" || kind == "DATETIME" || kind == "TIMESTAMP"
}

func names(types []*sql.ColumnType) string {
	list := make([]string, len(types))
	for i, t := range types {
		list[i] = t.Name()
	}
	return strings.Join(list, ", ")
}
