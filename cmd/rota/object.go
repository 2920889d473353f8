package main

import (
	"bytes"
	"reflect"
	"time"

	"github.com/dutyrota/rota/center"
)

// pair is a name and a value of a JSON object that no struct describes.
type pair struct {
	name  string
	value any
}

// pairs is a JSON object in the order in which it was made, and a line of CSV.
type pairs []pair

// MarshalJSON implements json.Marshaler.
func (p pairs) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, entry := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		for _, part := range []any{entry.name, entry.value} {
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

// recordsOf takes a record apart.
func recordsOf(record any) (p pairs) {
	v := reflect.ValueOf(record)
	names, fields := jsonFields(v.Type())
	for i, name := range names {
		value := v.FieldByIndex(fields[i]).Interface()
		if t, ok := value.(time.Time); ok && t.IsZero() {
			value = nil // as in the database
		}
		p = append(p, pair{name, value})
	}
	return p
}

// listOf takes a slice of records apart.
func listOf(records any) []pairs {
	v := reflect.ValueOf(records)
	list := make([]pairs, v.Len())
	for i := range list {
		list[i] = recordsOf(v.Index(i).Interface())
	}
	return list
}

// object adds settings to a record, by the names of their columns.
func object(p pairs, settings []center.SettingRecord) pairs {
	for _, s := range settings {
		if !p.has(s.Column) {
			p = append(p, pair{s.Column, s.Value})
		}
	}
	return p
}

func (p pairs) has(name string) bool {
	for _, entry := range p {
		if entry.name == name {
			return true
		}
	}
	return false
}

func (p pairs) csv() (names, values []string) {
	for _, entry := range p {
		names, values = append(names, entry.name), append(values, plain(reflect.ValueOf(entry.value)))
	}
	return names, values
}
