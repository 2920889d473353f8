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
)

// Row has the columns of a selected row that Execute needs.
type Row struct {
	from   *processor.Selection // shared by all rows of a select
	values []any                // one for each of the dealer's columns
}

// key returns the first column as text that the database converts back to the
// same value.
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

// rowsPerBlock is how many rows share one allocation of values.
const rowsPerBlock = 64

// read returns the rows of a result.
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
			values = make([]any, width*rowsPerBlock)
		}
		own := values[:width:width]
		values = values[width:]
		if err := r.scan(rows, own); err != nil {
			return nil, err
		}
		if d.keyed && own[0] == nil {
			return nil, fmt.Errorf("row %d has no key: column %q is NULL", len(list)+1, d.columns[0])
		}
		list = append(list, Row{from: s, values: own})
	}
	return list, rows.Err()
}

// reader scans the columns that the dealer keeps and skips the others.
type reader struct {
	into     []any  // one per column of the result
	position []int  // for each kept column, its index in the result
	text     []bool // for each kept column, whether its bytes are text
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
			return nil, fmt.Errorf("the result has no column %q: it has %s", column, names(types))
		}
		kind := strings.ToUpper(types[i].DatabaseTypeName())
		if d.syntax.parsesTimes && isTime(kind) {
			return nil, fmt.Errorf("column %q of type %s does not keep its stored text: select CAST(%[1]s AS TEXT) AS %[1]s", column, kind)
		}
		r.position = append(r.position, i)
		r.text = append(r.text, d.syntax.textAsBytes && !isBinary(kind))
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

// skipped scans a column that is not kept.
type skipped struct{}

// Scan implements sql.Scanner.
func (skipped) Scan(any) error { return nil }

// isBinary reports whether a column has bytes. Drivers return text as bytes, too:
// numeric, uuid and enum of PostgreSQL, and every string of MySQL. If such a text
// is bound as bytes, the driver sends it in the binary format, and it is another
// value or an error.
func isBinary(kind string) bool {
	return kind == "BYTEA" || kind == "BIT" || kind == "GEOMETRY" ||
		strings.HasSuffix(kind, "BLOB") || strings.HasSuffix(kind, "BINARY")
}

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
	return strings.Join(list, ", ")
}
