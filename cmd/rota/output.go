package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// The formats of -o.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatCSV   = "csv"
)

var formats = []string{formatTable, formatJSON, formatCSV}

// output is how a command shows its result.
type output struct {
	format choice
	watch  time.Duration // 0: once
}

// addOutputFlags adds -o.
func addOutputFlags(cmd *cobra.Command, o *output) {
	o.format = choice{value: formatTable, values: formats}
	addChoice(cmd, &o.format, "output", "o", "output format")
}

// addWatchFlags adds -o and --watch.
func addWatchFlags(cmd *cobra.Command, o *output) {
	addOutputFlags(cmd, o)
	cmd.Flags().DurationVarP(&o.watch, "watch", "w", 0, "refresh every 2s until Ctrl-C; --watch=5s sets the interval")
	cmd.Flags().Lookup("watch").NoOptDefVal = "2s"
}

// result is what a command shows: records and their text for -o table. The JSON
// names of the records are the names of the columns in the database.
type result struct {
	records any // for CSV a slice of structs, an object, or something with csvRecords
	text    func(screen) string
}

// csvRecorder is a result whose CSV has only a part of what its JSON has.
type csvRecorder interface{ csvRecords() any }

// tableResult is a result that is a table of its records.
func tableResult[T any](records []T, columns []column[T]) result {
	return result{records, func(s screen) string { return render(s, records, columns) }}
}

func (o output) isTable() bool { return o.format.value == formatTable }

// write writes the result in the chosen format.
func (o output) write(out io.Writer, r result) error {
	switch o.format.value {
	case formatJSON:
		return writeJSON(out, r.records)
	case formatCSV:
		if p, ok := r.records.(csvRecorder); ok {
			return writeCSV(out, p.csvRecords(), true)
		}
		return writeCSV(out, r.records, true)
	}
	_, err := fmt.Fprintln(out, strings.TrimRight(r.text(screenOf(out)), "\n"))
	return err
}

// writeJSON writes an empty slice of structs as [], never as null.
func writeJSON(out io.Writer, records any) error {
	_, single := records.(object)
	if t := reflect.TypeOf(records); !single && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		records = objectsOf(records)
	}
	e := newEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(records)
}

func newEncoder(out io.Writer) *json.Encoder {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e
}

// writeJSONLine writes one record on one line.
func writeJSONLine(out io.Writer, record any) error {
	return newEncoder(out).Encode(record)
}

// writeCSV writes a line for each record, after a header if wanted.
func writeCSV(out io.Writer, records any, header bool) error {
	w := csv.NewWriter(out)
	if o, ok := records.(object); ok {
		names, values := o.csv()
		return w.WriteAll([][]string{names, values})
	}
	list := reflect.ValueOf(records)
	names, fields := jsonFields(list.Type().Elem())
	if header {
		_ = w.Write(names) // w.Error returns the error
	}
	for i := range list.Len() {
		line := make([]string, len(fields))
		for j, field := range fields {
			line[j] = csvText(list.Index(i).FieldByIndex(field))
		}
		_ = w.Write(line)
	}
	w.Flush()
	return w.Error()
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

// csvText returns a value as CSV has it: NULL is empty, times and objects are
// as in JSON, and spaces separate the elements of a list.
func csvText(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch value := v.Interface().(type) {
	case time.Time:
		if value.IsZero() {
			return ""
		}
		return value.Format(time.RFC3339Nano)
	case []string:
		return strings.Join(value, " ")
	case map[string]string:
		doc, err := json.Marshal(value)
		if err != nil || value == nil {
			return ""
		}
		return string(doc)
	}
	return fmt.Sprint(v.Interface())
}
