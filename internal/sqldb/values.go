package sqldb

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Key is a text in a record that a statement compares with an id, such as that of a server.
type Key string

// Values returns {values} of a statement of the dialect: a table v that has a row for each record, with the columns of
// [Fields]. Its text is the same for any number of records, except in a database that cannot read a list from one
// parameter (TiDB). Fields are a Key, a string, an int64, a duration or a time. The zero time is NULL.
func Values[T any](d *Dialect, records []T) (table string, args []any, err error) {
	var columns []string
	rows := make([]map[string]any, len(records))
	selects := make([]string, len(records))
	for i, record := range records {
		rows[i] = map[string]any{}
		var row []string
		for _, f := range Fields(record) {
			value := f.value(d)
			row, args = append(row, "? AS "+f.Column), append(args, value)
			if t, ok := value.(time.Time); ok {
				value = t.Format(d.ValueTime)
			}
			rows[i][f.Column] = value
			if i == 0 {
				columns = append(columns, strings.ReplaceAll(d.ValueColumns[kindOf(f)], "{name}", f.Column))
			}
		}
		selects[i] = "SELECT " + strings.Join(row, ", ")
	}
	before, after, selected := strings.Cut(d.Values, "{rows}")
	if selected {
		return before + strings.Join(selects, " UNION ALL ") + after, args, nil
	}
	doc, err := json.Marshal(rows)
	args = []any{string(doc)}
	if strings.Contains(d.Values, "{limit}") {
		args = append(args, len(records))
	}
	return strings.NewReplacer("{columns}", strings.Join(columns, ", "), "{limit}", "?").Replace(d.Values), args, err
}

// value returns the value of the field as a parameter.
func (f Field) value(d *Dialect) any {
	value := f.Param(d)
	if key, ok := value.(Key); ok {
		return string(key)
	}
	return value
}

// ValueKind is what a column of [Values] holds.
type ValueKind int

// The kinds of values.
const (
	KeyValue ValueKind = iota
	TextValue
	NumberValue
	TimeValue
	valueKinds // their number
)

// kindOf returns the kind of a field.
func kindOf(f Field) ValueKind {
	switch f.Value.(type) {
	case Key:
		return KeyValue
	case string:
		return TextValue
	case int64, time.Duration:
		return NumberValue
	case time.Time:
		return TimeValue
	}
	panic(fmt.Sprintf("column %s of a table of values is a %T", f.Column, f.Value)) // a defect of the caller
}

// UpdateServers returns an UPDATE of schedule_server AS s with the records as v, whose column id is the key.
func UpdateServers[T any](d *Dialect, records []T, set, where string) (query string, args []any, err error) {
	if len(records) == 1 {
		query, args = inPlace(d, records[0], `UPDATE schedule_server AS s SET `+set+` WHERE s.uuid = v.id AND `+where)
		return query, args, nil
	}
	table, args, err := Values(d, records)
	return strings.NewReplacer("{values}", table, "{set}", set, "{where}", where).Replace(d.UpdateServers), args, err
}

// SelectServers returns a SELECT of schedule_server AS s with the records as v, whose column id is the key. The joins
// look up rows for those of s.
func SelectServers[T any](d *Dialect, records []T, columns, where, joins string) (query string, args []any, err error) {
	where = ` s.uuid = v.id AND ` + where
	if len(records) == 1 {
		query, args = inPlace(d, records[0], `SELECT `+columns+` FROM schedule_server AS s`+joins+` WHERE`+where)
		return query, args, nil
	}
	table, args, err := Values(d, records)
	return `SELECT ` + columns + ` FROM ` + table + d.JoinInOrder + `schedule_server AS s ON` + where + joins, args, err
}

var columnOfV = regexp.MustCompile(`\bv\.(\w+)`)

// inPlace puts the values of one record into a statement, where it has the columns of v. Most processes have one task
// type: to them a table of one row costs more on MySQL and MariaDB than all the rest of a heartbeat.
func inPlace[T any](d *Dialect, record T, query string) (text string, args []any) {
	params, values := map[string]string{}, map[string]any{}
	for _, f := range Fields(record) {
		params[f.Column], values[f.Column] = d.Param[kindOf(f)], f.value(d)
	}
	text = columnOfV.ReplaceAllStringFunc(query, func(column string) string {
		name := strings.TrimPrefix(column, "v.")
		args = append(args, values[name])
		return params[name]
	})
	return text, args
}
