package demo

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// report prints what was asked, the answers and what they say. It returns an error with a line for each claim that
// is refuted.
func report(out io.Writer, findings []finding) error {
	var b, end strings.Builder
	var errs []error
	for i, f := range findings {
		fmt.Fprintf(&b, "%d. %s\n", i+1, f.claim)
		for i, query := range f.queries {
			b.WriteString(indent(text.Faint.Sprint(query)) + indent(f.answers[i].String()))
		}
		b.WriteString("\n")
		fmt.Fprintf(&end, "%s  %-42s  %s\n", f.verdict.grade.badge(), f.claim, f.verdict.text)
		if f.verdict.grade == refuted {
			errs = append(errs, fmt.Errorf("it is not so that %s: %s", f.claim, f.verdict.text))
		}
	}
	_, err := io.WriteString(out, b.String()+end.String())
	return errors.Join(append(errs, err)...)
}

func (g grade) badge() string {
	return map[grade]text.Color{proved: text.FgGreen, slow: text.FgYellow, refuted: text.FgHiRed}[g].Sprintf("%-4s", g)
}

// String is the answer as a table.
func (a answer) String() string {
	if len(a.rows) == 0 {
		return "(no rows)"
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Options.SeparateHeader = true
	t.Style().Format.Header = text.FormatDefault
	t.SuppressTrailingSpaces()
	t.AppendHeader(tableRow(a.columns))
	for _, row := range a.rows {
		t.AppendRow(tableRow(row))
	}
	return t.Render()
}

// tableRow keeps numbers as such: they are set to the right.
func tableRow(cells []string) table.Row {
	row := make(table.Row, len(cells))
	for i, c := range cells {
		row[i] = c
		if n, err := strconv.Atoi(c); err == nil {
			row[i] = n
		}
	}
	return row
}

func indent(s string) string {
	return "   " + strings.ReplaceAll(s, "\n", "\n   ") + "\n"
}
