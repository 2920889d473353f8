package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// The formats of -o.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatCSV   = "csv"
)

var formats = []string{formatTable, formatJSON, formatCSV}

// choice is a flag with a few values.
type choice struct {
	value string
	of    []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "word" }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.of, s) {
		return fmt.Errorf("must be %s", alternatives(c.of))
	}
	c.value = s
	return nil
}

func alternatives(list []string) string {
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// addChoice adds a flag that takes one of a few values, and completes them.
func addChoice(cmd *cobra.Command, c *choice, name, short, usage string) {
	cmd.Flags().VarP(c, name, short, usage+": "+alternatives(c.of))
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.of, cobra.ShellCompDirectiveNoFileComp)) // fails for unknown flags only
}

// output is how a command shows what it has found.
type output struct {
	format choice
	watch  time.Duration // 0: once
}

// addOutputFlags adds -o, and --watch for what changes by itself.
func addOutputFlags(cmd *cobra.Command, o *output, watch bool) {
	o.format = choice{value: formatTable, of: formats}
	addChoice(cmd, &o.format, "output", "o", "how to show it")
	if watch {
		cmd.Flags().DurationVarP(&o.watch, "watch", "w", 0, "show it again and again, every 2s or --watch=5s, until SIGINT")
		cmd.Flags().Lookup("watch").NoOptDefVal = "2s"
	}
}

// reply is what a command has found: records, whose JSON names are those of the columns, and their form for people.
type reply struct {
	records any // a slice of structs, or whatever JSON can tell; CSV wants the slice
	text    func(screen) string
}

// screen is where a table is to be read.
type screen struct {
	width, height int  // 0: no limit, it is not a terminal
	color         bool // by meaning
}

func screenOf(out io.Writer) screen {
	if !isTerminal(out) {
		return screen{}
	}
	s := screen{width: 80, height: 24, color: os.Getenv("NO_COLOR") == ""}
	if w, h, err := term.GetSize(int(out.(*os.File).Fd())); err == nil && w > 0 {
		s.width, s.height = w, h
	}
	return s
}

// write writes the answer in the wanted format.
func (o output) write(out io.Writer, a reply) error {
	switch o.format.value {
	case formatJSON:
		return writeJSON(out, a.records)
	case formatCSV:
		if p, ok := a.records.(interface{ rows() any }); ok {
			return writeCSV(out, p.rows(), true)
		}
		return writeCSV(out, a.records, true)
	}
	_, err := fmt.Fprintln(out, strings.TrimRight(a.text(screenOf(out)), "\n"))
	return err
}

func writeJSON(out io.Writer, records any) error {
	_, one := records.(pairs)
	if t := reflect.TypeOf(records); !one && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		records = listOf(records) // never null
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

// writeCSV writes a line for each record, and their names above if there is to be a header.
func writeCSV(out io.Writer, records any, header bool) error {
	w := csv.NewWriter(out)
	if p, ok := records.(pairs); ok {
		names, values := p.csv()
		return w.WriteAll([][]string{names, values})
	}
	list := reflect.ValueOf(records)
	names, fields := jsonFields(list.Type().Elem())
	if header {
		_ = w.Write(names) // Flush keeps the error
	}
	for i := range list.Len() {
		line := make([]string, len(fields))
		for j, field := range fields {
			line[j] = plain(list.Index(i).FieldByIndex(field))
		}
		_ = w.Write(line)
	}
	w.Flush()
	return w.Error()
}

// jsonFields are the fields of a record that are told, those of embedded records among them.
func jsonFields(record reflect.Type) (names []string, fields [][]int) {
	for _, field := range reflect.VisibleFields(record) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" && !field.Anonymous {
			names, fields = append(names, name), append(fields, field.Index)
		}
	}
	return names, fields
}

// plain is a value in CSV: NULL is empty, times and objects are as in JSON, lists are joined with spaces.
func plain(v reflect.Value) string {
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
