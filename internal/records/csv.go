package records

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dutyrota/rota/internal/escape"
)

// WriteCSV writes a line for each record of a slice, after a header if wanted. It writes an Object below its names.
func WriteCSV(out io.Writer, records any, header bool) error {
	var b strings.Builder
	switch list := records.(type) {
	case Object:
		addObjects(&b, []Object{list})
	case []Object:
		addObjects(&b, list)
	default:
		addRecords(&b, reflect.ValueOf(records), header)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// addObjects writes the objects of a list, which have the same names.
func addObjects(b *strings.Builder, list []Object) {
	for i, o := range list {
		names, lines := o.csv()
		if i == 0 {
			addLine(b, names)
		}
		for _, line := range lines {
			addLine(b, line)
		}
	}
}

func addRecords(b *strings.Builder, list reflect.Value, header bool) {
	names, fields := jsonFields(list.Type().Elem())
	if header {
		addLine(b, names)
	}
	for i := range list.Len() {
		line := make([]string, len(fields))
		for j, field := range fields {
			line[j] = cellOf(list.Index(i).FieldByIndex(field))
		}
		addLine(b, line)
	}
}

// addLine quotes more cells than encoding/csv, which knows one separator: a
// spreadsheet may also split lines at semicolons and tabs, and find a formula
// behind one.
func addLine(b *strings.Builder, cells []string) {
	for i, cell := range cells {
		if i > 0 {
			b.WriteByte(',')
		}
		if strings.ContainsAny(cell, ",;\t\"\n") || strings.HasPrefix(cell, " ") {
			cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		}
		b.WriteString(cell)
	}
	b.WriteByte('\n')
}

// jsonFields returns the fields that have JSON names, including those of
// embedded records.
func jsonFields(record reflect.Type) (names []string, fields [][]int) {
	for _, field := range reflect.VisibleFields(record) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" && !field.Anonymous {
			names, fields = append(names, name), append(fields, field.Index)
		}
	}
	return names, fields
}

// cellOf returns a value as CSV has it: NULL is empty, times and objects are
// as in JSON, and spaces separate the elements of a list.
func cellOf(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		v = v.Elem() // invalid for nil
	}
	if !v.IsValid() {
		return ""
	}
	switch value := v.Interface().(type) {
	case time.Time:
		if value.IsZero() {
			return ""
		}
		return value.Format(time.RFC3339Nano)
	case []string:
		return safeCell(strings.Join(value, " "))
	}
	if v.Kind() == reflect.Map {
		doc, err := json.Marshal(v.Interface())
		if err != nil || v.IsNil() {
			return ""
		}
		return safeCell(string(doc))
	}
	text := fmt.Sprint(v.Interface())
	if v.Kind() == reflect.String {
		return safeCell(text)
	}
	return text
}

// formulaStarts are the characters with which a cell is a formula to some
// spreadsheet, according to OWASP's page on CSV injection.
const formulaStarts = "=+-@\t\r\n＝＋－＠"

// safeCell escapes a text, and puts an apostrophe in front of one that starts
// like a formula. Numbers are no texts: -1.5 stays a number.
func safeCell(text string) string {
	safe := escape.Lines(text)
	if first, _ := utf8.DecodeRuneInString(text); text != "" && strings.ContainsRune(formulaStarts, first) {
		return "'" + safe
	}
	return safe
}
