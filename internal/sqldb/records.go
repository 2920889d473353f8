package sqldb

import (
	"context"
	"database/sql"
	"reflect"
	"strings"
	"time"
)

// Eacher runs a query: a DB on its store, or a Tx.
type Eacher interface {
	Each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error
}

// Records runs a SELECT and scans each row into a T, which is a struct or a single value. {columns} in the query stands
// for the list of T's columns, and {columns q} for the same list with the prefix q. The name of a column is the json
// tag of its field, or the db tag if the field has one. A field with the tag db:"-" has no column. Without {columns}
// the query lists the columns in the order of the fields.
func Records[T any](ctx context.Context, q Eacher, query string, args ...any) (list []T, err error) {
	columns := columnsOf(reflect.TypeFor[T]())
	err = q.Each(ctx, func(rows *sql.Rows) error {
		var record T
		err := rows.Scan(columns.targets(reflect.ValueOf(&record).Elem())...)
		list = append(list, record)
		return err
	}, columns.expand(query), args...)
	return list, err
}

// Record is [Records] for a query that returns at most one row. It reports whether there is one.
func Record[T any](ctx context.Context, q Eacher, query string, args ...any) (record T, found bool, err error) {
	list, err := Records[T](ctx, q, query, args...)
	if err != nil || len(list) == 0 {
		return record, false, err
	}
	return list[0], true, nil
}

// Insert inserts records into a table, with a value for each of their columns, in one statement.
func Insert[T any](ctx context.Context, t Tx, table string, records ...T) error {
	if len(records) == 0 {
		return nil
	}
	columns := columnsOf(reflect.TypeFor[T]())
	row := "(" + Marks(len(columns)) + ")"
	var args []any
	for _, record := range records {
		for _, f := range Fields(record) {
			args = append(args, f.Param(t.Dialect))
		}
	}
	_, err := t.Exec(ctx, "INSERT INTO "+table+columns.expand(" ({columns}) VALUES ")+row+strings.Repeat(", "+row,
		len(records)-1), args...)
	return err
}

// Update writes all columns of a record into the rows that a condition selects, and returns their number.
func Update[T any](ctx context.Context, t Tx, table string, record T, where string, args ...any) (int, error) {
	var set []string
	var values []any
	for _, f := range Fields(record) {
		set, values = append(set, f.Column+" = ?"), append(values, f.Param(t.Dialect))
	}
	return t.Exec(ctx, "UPDATE "+table+" SET "+strings.Join(set, ", ")+" WHERE "+where, append(values, args...)...)
}

// Field is a column of a record and its value.
type Field struct {
	Column string
	Value  any
	null   bool
}

// Fields returns the columns of a record with their values.
func Fields[T any](record T) (fields []Field) {
	for _, c := range columnsOf(reflect.TypeFor[T]()) {
		fields = append(fields, Field{c.name, reflect.ValueOf(record).FieldByIndex(c.field).Interface(), c.null})
	}
	return fields
}

// Param returns the parameter that writes the value, the inverse of [Target]. The zero time and an empty list are NULL,
// and so is an empty string in a field with the tag db:",null".
func (f Field) Param(d *Dialect) any {
	switch v := f.Value.(type) {
	case time.Time:
		return d.TimeOrNull(v)
	case time.Duration:
		return v.Milliseconds()
	case []string:
		return List(v)
	case map[string]string:
		return Texts(v)
	}
	if f.null && f.Value == "" {
		return nil
	}
	return f.Value
}

// column is a column and the field of a record that holds its value.
type column struct {
	name  string
	field []int // nil if the record is a single value
	null  bool  // an empty string is NULL
}

type columnList []column

// columnsOf returns the columns of a record, with those of embedded records.
func columnsOf(record reflect.Type) (list columnList) {
	if record.Kind() != reflect.Struct || record == reflect.TypeFor[time.Time]() {
		return columnList{{}}
	}
	for _, field := range reflect.VisibleFields(record) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		own, option, _ := strings.Cut(field.Tag.Get("db"), ",")
		if own != "" {
			name = own
		}
		if name != "-" && !field.Anonymous {
			list = append(list, column{name, field.Index, option == "null"})
		}
	}
	return list
}

// expand puts the list of columns into a query.
func (l columnList) expand(query string) string {
	before, rest, found := strings.Cut(query, "{columns")
	prefix, after, closed := strings.Cut(rest, "}")
	if !found || !closed {
		return query
	}
	if prefix = strings.TrimSpace(prefix); prefix != "" {
		prefix += "."
	}
	var names []string
	for _, c := range l {
		names = append(names, prefix+c.name)
	}
	return before + strings.Join(names, ", ") + after
}

// targets returns the destinations of a row in a record.
func (l columnList) targets(record reflect.Value) []any {
	into := make([]any, len(l))
	for i, c := range l {
		value := record
		if c.field != nil {
			value = record.FieldByIndex(c.field)
		}
		into[i] = Target(value.Addr().Interface())
	}
	return into
}

// Target returns the destination for Scan that puts a column into *p. It reads any value, because a statement also
// returns what other rows hold, and must not fail for one of them (S13): a number that cannot be read counts as 0.
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
