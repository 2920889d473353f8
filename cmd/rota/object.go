package main

import (
	"bytes"
	"encoding/json"
	"reflect"

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
		value, err := json.Marshal(entry.value)
		if err != nil {
			return nil, err
		}
		name, err := json.Marshal(entry.name)
		if err != nil {
			return nil, err
		}
		b.Write(append(append(name, ':'), value...))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// recordsOf takes a record apart.
func recordsOf(record any) (p pairs) {
	v := reflect.ValueOf(record)
	names, fields := jsonFields(v.Type())
	for i, name := range names {
		p = append(p, pair{name, v.Field(fields[i]).Interface()})
	}
	return p
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
