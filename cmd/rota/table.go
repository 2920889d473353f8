package main

import "github.com/jedib0t/go-pretty/v6/table"

// newTable returns a table without lines, for people and for awk.
func newTable(columns ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleDefault)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.SuppressTrailingSpaces()
	t.AppendHeader(columns)
	return t
}
