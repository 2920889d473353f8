package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
)

// The formats of -o.
const (
	FormatTable = "table"
	FormatJSON  = "json"
	FormatCSV   = "csv"
	FormatYAML  = "yaml" // of rota task show
)

var formats = []string{FormatTable, FormatJSON, FormatCSV}

// Output is how a command shows its result.
type Output struct {
	Format Choice
	Watch  time.Duration // 0: once

	screen func(ctx context.Context, c *ops.Client, args []string) error // shows a watch on a terminal; nil: a table
}

// AddOutputFlags adds -o.
func AddOutputFlags(cmd *cobra.Command, o *Output) {
	o.Format = Choice{Value: FormatTable, Values: formats}
	AddChoice(cmd, &o.Format, "output", "o", "output format")
}

// Result is what a command shows: records and their text for -o table. The JSON
// names of the records are the names of the columns in the database.
type Result struct {
	Records any // for CSV a slice of structs, an object, or something with CSVRecords
	Text    func(Screen) string
	YAML    func() ([]byte, error)
	Final   bool // it will not change any more: a watch ends
}

// csvRecorder is a result whose CSV has only a part of what its JSON has.
type csvRecorder interface{ CSVRecords() any }

// TableResult is a result that is a table with a row for each record.
func TableResult[T any](records []T, row func(T) Row) Result {
	return Result{Records: records, Text: func(s Screen) string { return Render(s, records, row) }}
}

// IsTable reports whether the result is for people.
func (o Output) IsTable() bool { return o.Format.Value == FormatTable }

// Write writes the result in the chosen format.
func (o Output) Write(out io.Writer, r Result) error {
	switch o.Format.Value {
	case FormatJSON:
		return writeJSON(out, r.Records)
	case FormatCSV:
		if p, ok := r.Records.(csvRecorder); ok {
			return records.WriteCSV(out, p.CSVRecords(), true)
		}
		return records.WriteCSV(out, r.Records, true)
	case FormatYAML:
		text, err := r.YAML()
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	_, err := fmt.Fprintln(out, strings.TrimRight(r.Text(ScreenOf(out)), "\n"))
	return err
}

// writeJSON writes an empty slice of structs as [], never as null.
func writeJSON(out io.Writer, value any) error {
	e := records.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(records.JSON(value))
}

// WriteJSONLine writes one record on one line.
func WriteJSONLine(out io.Writer, record any) error {
	return records.NewEncoder(out).Encode(record)
}

// SayError writes a line to stderr, escaped.
func SayError(cmd *cobra.Command, line string) {
	fmt.Fprintln(cmd.ErrOrStderr(), escape.Text(line)) //nolint:errcheck // stderr is the last channel
}
