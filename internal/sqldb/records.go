package sqldb

import (
	"context"
	"database/sql"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// Eacher runs a query: a DB on its store, or a Tx.
type Eacher interface {
	Each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error
}

// Records runs a SELECT and scans each row into a T, which is a struct or a single value. {columns} in the query stands
// for the list of T's columns, and {columns q} for the same list with the prefix q. The name of a column is the json
// tag of its field, or the db tag if the field has one. A field with the tag db:"-" has no column. Without {columns}
// the query lists the columns in the order of the fields. The fields of a field that is a struct stand in its place.
//
// A value that cannot be read is replaced (see [Target]), unless q is [Strict].
func Records[T any](ctx context.Context, q Eacher, query string, args ...any) (list []T, err error) {
	_, strict := q.(Strict)
	err = q.Each(ctx, func(rows *sql.Rows) error {
		record, err := scan[T](rows, strict)
		list = append(list, record)
		return err
	}, columnsOf[T]().expand(query), args...)
	return list, err
}

// Strict makes [Records] refuse what Target would replace: a number or a text that is NULL or cannot be read.
type Strict struct{ Eacher }

// Scan scans the present row of a query as [Records] does. If a value had to be replaced, unreadable says which.
func Scan[T any](rows *sql.Rows) (record T, unreadable, err error) {
	record, unreadable = scan[T](rows, true)
	if unreadable != nil {
		record, err = scan[T](rows, false)
	}
	return record, unreadable, err
}

func scan[T any](rows *sql.Rows, strict bool) (record T, err error) {
	err = rows.Scan(columnsOf[T]().targets(reflect.ValueOf(&record).Elem(), strict)...)
	return record, err
}

// Record is [Records] for a query that returns at most one row. It reports whether there is one.
func Record[T any](ctx context.Context, q Eacher, query string, args ...any) (record T, found bool, err error) {
	list, err := Records[T](ctx, q, query, args...)
	if err != nil || len(list) == 0 {
		return record, false, err
	}
	return list[0], true, nil
}

// One is [Record] for a query that must return a row. Without one it returns the error missing.
func One[T any](ctx context.Context, q Eacher, missing error, query string, args ...any) (T, error) {
	record, found, err := Record[T](ctx, q, query, args...)
	if err == nil && !found {
		err = missing
	}
	return record, err
}

// Value is [Record] for a query that always returns a row, such as a count, or for which the zero value means none.
func Value[T any](ctx context.Context, q Eacher, query string, args ...any) (T, error) {
	return One[T](ctx, q, nil, query, args...)
}

// Free is [Records] for a SELECT of rows of q. It locks and returns the rows that no other transaction holds (L5). If
// one of them is held and the database cannot skip it, Free locks none, and held is true.
func Free[T any](ctx context.Context, q Eacher, d *Dialect, query string, args ...any,
) (list []T, held bool, err error) {
	list, err = Records[T](ctx, q, query+d.SkipLocked, args...)
	if d.Class(err) == Held {
		return nil, true, nil
	}
	return list, false, err
}

// insertRows is how many rows one INSERT writes at most, and how many ids a statement has, so that the parameters stay
// below the limit of each database.
const insertRows = 500

// RecordsIn is [Records] for a query in which {ids} stands for a list of any length, behind the parameters args. It
// asks for 500 of them at a time, and so the order of the query holds for these.
func RecordsIn[T any](ctx context.Context, q Eacher, ids []string, query string, args ...any) (list []T, err error) {
	for part := range slices.Chunk(ids, insertRows) {
		text, all := withIDs(query, part, args)
		found, err := Records[T](ctx, q, text, all...)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

// ExecIn is Exec for a statement in which {ids} stands for a list of any length, as for [RecordsIn].
func (t Tx) ExecIn(ctx context.Context, ids []string, query string, args ...any) (matched int, err error) {
	for part := range slices.Chunk(ids, insertRows) {
		text, all := withIDs(query, part, args)
		n, err := t.Exec(ctx, text, all...)
		if err != nil {
			return matched, err
		}
		matched += n
	}
	return matched, nil
}

func withIDs(query string, ids []string, args []any) (text string, all []any) {
	return strings.Replace(query, "{ids}", Marks(len(ids)), 1), slices.Concat(args, Args(ids))
}

// Insert inserts records into a table, with a value for each of their columns, with one statement for each 500 records.
func Insert[T any](ctx context.Context, t Tx, table string, records ...T) error {
	for part := range slices.Chunk(records, insertRows) {
		var args []any
		rows := make([]string, len(part))
		for i, record := range part {
			fields := Fields(record)
			for _, f := range fields {
				args = append(args, f.Param(t.Dialect))
			}
			rows[i] = "(" + Marks(len(fields)) + ")"
		}
		query := "INSERT INTO " + table + columnsOf[T]().expand(" ({columns}) VALUES ") + strings.Join(rows, ", ")
		if _, err := t.Exec(ctx, query, args...); err != nil {
			return err
		}
	}
	return nil
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
	for _, c := range columnsOf[T]() {
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
	if f.null && (f.Value == "" || f.Value == Key("")) {
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

// columnLists has the columns of each type of record that was used: they are the same for all rows.
var columnLists sync.Map

// columnsOf returns the columns of a record, with those of structs in it.
func columnsOf[T any]() columnList {
	record := reflect.TypeFor[T]()
	list, known := columnLists.Load(record)
	if !known {
		list, _ = columnLists.LoadOrStore(record, listColumns(record))
	}
	return list.(columnList)
}

func listColumns(record reflect.Type) (list columnList) {
	if !hasColumns(record) {
		return columnList{{}}
	}
	for field := range record.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		own, option, _ := strings.Cut(field.Tag.Get("db"), ",")
		if own != "" {
			name = own
		}
		switch {
		case name == "-":
		case hasColumns(field.Type):
			for _, c := range listColumns(field.Type) {
				c.field = slices.Concat(field.Index, c.field)
				list = append(list, c)
			}
		default:
			list = append(list, column{name, field.Index, option == "null"})
		}
	}
	return list
}

// hasColumns reports whether a type is a record: a struct that is not itself the value of a column.
func hasColumns(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() == reflect.Struct && !p.Implements(reflect.TypeFor[sql.Scanner]()) &&
		!p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) // also time.Time
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
func (l columnList) targets(record reflect.Value, strict bool) []any {
	into := make([]any, len(l))
	for i, c := range l {
		value := record
		if c.field != nil {
			value = record.FieldByIndex(c.field)
		}
		into[i] = value.Addr().Interface()
		switch into[i].(type) {
		case *string, *int, *int64, *float64:
			if strict {
				continue
			}
		}
		into[i] = Target(into[i])
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
	case **int:
		return maybeNumeric[int]{p}
	case **int64:
		return maybeNumeric[int64]{p}
	case **float64:
		return maybeNumeric[float64]{p}
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
	case encoding.TextUnmarshaler:
		return parsed{p}
	}
	return p
}

// parsed scans a text. NULL is empty. What cannot be parsed is what the type makes of it.
type parsed struct{ to encoding.TextUnmarshaler }

// Scan implements sql.Scanner.
func (p parsed) Scan(src any) error {
	var t Text
	err := t.Scan(src)
	_ = p.to.UnmarshalText([]byte(t)) // the row was written by hand, and stops no other (S13)
	return err
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

// maybeNumeric scans a number that may be NULL. What cannot be read counts as NULL.
type maybeNumeric[T int | int64 | float64] struct{ to **T }

// Scan implements sql.Scanner.
func (n maybeNumeric[T]) Scan(src any) error {
	var v sql.Null[T]
	*n.to = nil
	if v.Scan(src) == nil && v.Valid {
		*n.to = &v.V
	}
	return nil
}

// mostCount bounds a count of items in a sum: the sum of thousands of them fits into an int64.
const mostCount = 1_000_000_000_000_000

// SumOf is the sum of a column of counts, as SQL. It leaves out what no program counts, because SQLite refuses a sum
// that overflows, and one row would hide the list of all (S13).
func SumOf(column string) string {
	return fmt.Sprintf("SUM(CASE WHEN %[1]s BETWEEN 0 AND %[2]d THEN %[1]s END)", column, mostCount)
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

// Contains adds the condition that one of the columns contains the text, unless that is empty. LIKE would need escapes,
// and on SQLite it takes a and A for equal.
func (w *Where) Contains(text string, columns ...string) {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	if text == "" {
		return
	}
	conditions, args := make([]string, len(columns)), make([]any, len(columns))
	for i, c := range columns {
		conditions[i], args[i] = "LENGTH(REPLACE("+c+", ?, '')) < LENGTH("+c+")", text
	}
	w.And("("+strings.Join(conditions, " OR ")+")", args...)
}

// Equal adds a condition unless the value is empty.
func (w *Where) Equal(column, value string) {
	if value != "" {
		w.And(column+" = ?", value)
	}
}
