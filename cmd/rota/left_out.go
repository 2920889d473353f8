package main

import (
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// leftOutPrefix begins the note below a table that lacks columns.
const leftOutPrefix = "Left out: "

// leftOut returns a note that names the columns that were dropped, and how to
// see them. It is empty if none was.
func leftOut[T any](s screen, all, shown []column[T]) string {
	var titles []string
	for _, c := range all {
		if !slices.ContainsFunc(shown, func(d column[T]) bool { return d.title == c.title }) {
			titles = append(titles, c.title)
		}
	}
	if len(titles) == 0 {
		return ""
	}
	return text.WrapSoft(leftOutPrefix+strings.Join(titles, ", ")+" (a wider terminal, | less -S or -o json shows all)",
		s.width)
}

// splitNote splits the note off the lines of a table, so that a screen that is
// too low for the table still shows it.
func splitNote(lines []string) (table, note []string) {
	for i, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, leftOutPrefix) {
			return lines[:i], lines[i:]
		}
	}
	return lines, nil
}
