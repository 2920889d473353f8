package main

import (
	"bytes"
	"reflect"
	"slices"
	"time"

	"github.com/dutyrota/rota/center"
)

// member is a name and a value of an object.
type member struct {
	name  string
	value any
}

// object is a JSON object whose members keep their order, or a line of CSV.
type object []member

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		for _, part := range []any{m.name, m.value} {
			if err := newEncoder(&b).Encode(part); err != nil {
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

// objectOf returns the fields of a record that have JSON names. The zero time
// becomes null, as it is NULL in the database.
func objectOf(record any) (o object) {
	v := reflect.ValueOf(record)
	names, fields := jsonFields(v.Type())
	for i, name := range names {
		value := v.FieldByIndex(fields[i]).Interface()
		if t, ok := value.(time.Time); ok && t.IsZero() {
			value = nil
		}
		o = append(o, member{name, value})
	}
	return o
}

// objectsOf converts a slice of records.
func objectsOf(records any) []object {
	v := reflect.ValueOf(records)
	list := make([]object, v.Len())
	for i := range list {
		list[i] = objectOf(v.Index(i).Interface())
	}
	return list
}

// withSettings appends settings under the names of their columns. It skips the
// names that the object already has.
func (o object) withSettings(settings []center.SettingRecord) object {
	for _, s := range settings {
		if !o.has(s.Column) {
			o = append(o, member{s.Column, s.Value})
		}
	}
	return o
}

func (o object) has(name string) bool {
	return slices.ContainsFunc(o, func(m member) bool { return m.name == name })
}

func (o object) csv() (names, values []string) {
	for _, m := range o {
		names, values = append(names, m.name), append(values, csvText(reflect.ValueOf(m.value)))
	}
	return names, values
}
