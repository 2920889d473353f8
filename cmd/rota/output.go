package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/internal/records"
)

// The formats of -o.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatCSV   = "csv"
	formatYAML  = "yaml" // of rota task show
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
	yaml    func() ([]byte, error)
	final   bool // it will not change any more: a watch ends
}

// csvRecorder is a result whose CSV has only a part of what its JSON has.
type csvRecorder interface{ csvRecords() any }

// tableResult is a result that is a table of its records.
func tableResult[T any](records []T, columns []column[T]) result {
	return result{records: records, text: func(s screen) string { return render(s, records, columns) }}
}

func (o output) isTable() bool { return o.format.value == formatTable }

// write writes the result in the chosen format.
func (o output) write(out io.Writer, r result) error {
	switch o.format.value {
	case formatJSON:
		return writeJSON(out, r.records)
	case formatCSV:
		if p, ok := r.records.(csvRecorder); ok {
			return records.WriteCSV(out, p.csvRecords(), true)
		}
		return records.WriteCSV(out, r.records, true)
	case formatYAML:
		text, err := r.yaml()
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	_, err := fmt.Fprintln(out, strings.TrimRight(r.text(screenOf(out)), "\n"))
	return err
}

// writeJSON writes an empty slice of structs as [], never as null.
func writeJSON(out io.Writer, value any) error {
	e := records.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(records.JSON(value))
}

// writeJSONLine writes one record on one line.
func writeJSONLine(out io.Writer, record any) error {
	return records.NewEncoder(out).Encode(record)
}
