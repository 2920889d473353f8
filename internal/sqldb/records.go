package sqldb

import (
	"context"
	"database/sql"
	"reflect"
	"strings"
	"time"
)

// Records runs a SELECT and scans each row into a T. {columns} in the query stands for the list of T's columns. The name
// of a column is the json tag of its field, or the db tag if the field has one. A field with the tag db:"-" has no
// column.
func Records[T any](ctx context.Context, db *DB, query string, args ...any) (list []T, err error) {
	names, fields := readFields(reflect.TypeFor[T]())
	query = strings.Replace(query, "{columns}", strings.Join(names, ", "), 1)
	err = db.Each(ctx, func(rows *sql.Rows) error {
		var record T
		into := make([]any, len(fields))
		for i, field := range fields {
			into[i] = Target(reflect.ValueOf(&record).Elem().FieldByIndex(field).Addr().Interface())
		}
		err := rows.Scan(into...)
		list = append(list, record)
		return err
	}, query, args...)
	return list, err
}

// readFields returns the columns of a record, and the index of the field of each column. It includes the fields of
// embedded records.
func readFields(record reflect.Type) (names []string, fields [][]int) {
	for _, field := range reflect.VisibleFields(record) {
		name, read := field.Tag.Lookup("db")
		if !read {
			name, _, _ = strings.Cut(field.Tag.Get("json"), ",")
		}
		if name != "-" && !field.Anonymous {
			names, fields = append(names, name), append(fields, field.Index)
		}
	}
	return names, fields
}

// Target returns the destination for Scan that puts a column into *p. It reads any value, because a statement also returns
// what other rows hold, and must not fail for one of them (S13): a number that cannot be read counts as 0.
func Target(p any) any {
	switch p := p.(type) {
	case *string:
		return (*Text)(p)
	case *bool:
		return (*Flag)(p)
	case *int:
		return numeric[int]{p}
	case *int64:
		return numeric[int64]{p}
	case *float64:
		return numeric[float64]{p}
	case *time.Time:
		return (*Instant)(p)
	case **time.Time:
		return maybeInstant{p}
	case *time.Duration:
		return (*Millis)(p)
	case *[]string:
		return (*List)(p)
	case *map[string]string:
		return (*Texts)(p)
	}
	return p
}

// Targets returns the Target of each destination.
func Targets(into ...any) []any {
	for i, p := range into {
		into[i] = Target(p)
	}
	return into
}

// numeric scans a number. NULL is 0.
type numeric[T int | int64 | float64] struct{ to *T }

// Scan implements sql.Scanner.
func (n numeric[T]) Scan(src any) error {
	var v sql.Null[T]
	if v.Scan(src) != nil {
		v.V = 0
	}
	*n.to = v.V
	return nil
}

// maybeInstant scans a time that may be NULL.
type maybeInstant struct{ to **time.Time }

// Scan implements sql.Scanner.
func (m maybeInstant) Scan(src any) error {
	var i Instant
	if err := i.Scan(src); err != nil || src == nil {
		return err
	}
	*m.to = (*time.Time)(&i)
	return nil
}

// Where collects the conditions of a query.
type Where struct {
	Text string
	Args []any
}

// And adds a condition.
func (w *Where) And(condition string, args ...any) {
	w.Text += " AND " + condition
	w.Args = append(w.Args, args...)
}

// Equal adds a condition unless the value is empty.
func (w *Where) Equal(column, value string) {
	if value != "" {
		w.And(column+" = ?", value)
	}
}
