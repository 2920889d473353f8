// Package records writes records of package ops as JSON and CSV, for the commands and for the console. The names are
// those of the JSON tags, which are the names of columns.
package records

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"time"
)

// Member is a name and a value of an object.
type Member struct {
	Name  string
	Value any
}

// M returns a member.
func M(name string, value any) Member { return Member{name, value} }

// Object is a JSON object whose members keep their order, or a line of CSV.
type Object []Member

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		for _, part := range []any{m.Name, m.Value} {
			if err := NewEncoder(&b).Encode(part); err != nil {
				return nil, err
			}
			b.Truncate(b.Len() - 1) // the line end
			b.WriteByte(':')
		}
		b.Truncate(b.Len() - 1)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// NewEncoder returns an encoder that leaves <, > and & as they are: the output is no HTML.
func NewEncoder(out io.Writer) *json.Encoder {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e
}

// Of returns the fields of a record that have JSON names. The zero time becomes null, as it is NULL in the database.
func Of(record any) (o Object) {
	v := reflect.ValueOf(record)
	names, fields := jsonFields(v.Type())
	for i, name := range names {
		value := v.FieldByIndex(fields[i]).Interface()
		if t, ok := value.(time.Time); ok && t.IsZero() {
			value = nil
		}
		o = append(o, Member{name, value})
	}
	return o
}

// JSON returns a value as it is encoded: a slice of records as objects, which is [] if it is empty and never null, and
// anything else unchanged.
func JSON(value any) any {
	if _, single := value.(Object); single {
		return value
	}
	if t := reflect.TypeOf(value); t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		return List(value)
	}
	return value
}

// List converts a slice of records.
func List(records any) []Object {
	v := reflect.ValueOf(records)
	list := make([]Object, v.Len())
	for i := range list {
		list[i] = Of(v.Index(i).Interface())
	}
	return list
}

// With appends a member, unless the object already has one of that name.
func (o Object) With(name string, value any) Object {
	if slices.ContainsFunc(o, func(m Member) bool { return m.Name == name }) {
		return o
	}
	return append(o, Member{name, value})
}

// csv returns the names and the line of an object. A member that is a list of records, which comes last, has a line
// for each record, below the names of their fields; an empty list has one line without values.
func (o Object) csv() (names []string, lines [][]string) {
	var line []string
	for _, m := range o {
		v := reflect.ValueOf(m.Value)
		if t := reflect.TypeOf(m.Value); t == nil || t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Struct {
			names, line = append(names, m.Name), append(line, cellOf(v))
			continue
		}
		more, fields := jsonFields(v.Type().Elem())
		for i := range v.Len() {
			one := slices.Clone(line)
			for _, field := range fields {
				one = append(one, cellOf(v.Index(i).FieldByIndex(field)))
			}
			lines = append(lines, one)
		}
		names, line = append(names, more...), append(line, make([]string, len(more))...)
	}
	if lines == nil {
		lines = [][]string{line}
	}
	return names, lines
}
