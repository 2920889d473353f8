package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/center"
)

// field is a column of a table for people.
type field[T any] struct {
	title string
	text  func(T) string

	uuid  bool // may be shortened where there is little room
	spare int  // the columns with the highest go first where there is little room; 0 never goes
	free  bool // may be cut where there is still too little room
	right bool // numbers
	color func(T, string) string
}

// grid is a table on its way to the screen.
type grid struct {
	titles []string
	cells  [][]string
	widths []int
}

// render makes a table that fits the screen, if it can.
func render[T any](s screen, records []T, fields []field[T]) string {
	g := newGrid(records, fields, false)
	if s.width > 0 && g.width() > s.width {
		g = newGrid(records, fields, true)
	}
	for s.width > 0 && g.least(freeColumns(fields)) > s.width {
		last := mostSpare(fields)
		if last < 0 {
			break
		}
		fields = append(append([]field[T]{}, fields[:last]...), fields[last+1:]...)
		g = newGrid(records, fields, true)
	}
	for i, f := range fields {
		if over := g.width() - s.width; s.width > 0 && f.free && over > 0 {
			g.cut(i, max(g.widths[i]-over, leastFree))
		}
	}
	if s.color {
		paint(g, records, fields)
	}
	return g.table(alignments(fields))
}

func newGrid[T any](records []T, fields []field[T], short bool) *grid {
	g := &grid{widths: make([]int, len(fields)), cells: make([][]string, len(records))}
	for i, f := range fields {
		g.titles = append(g.titles, f.title)
		g.widths[i] = text.StringWidth(f.title)
	}
	for r, record := range records {
		for i, f := range fields {
			cell := f.text(record)
			if f.uuid && short {
				cell = center.ServerName(cell)
			}
			g.cells[r] = append(g.cells[r], cell)
			g.widths[i] = max(g.widths[i], text.StringWidth(cell))
		}
	}
	return g
}

// width counts a space on both sides of each cell.
func (g *grid) width() (n int) {
	for _, w := range g.widths {
		n += w + 2
	}
	return n
}

// leastFree is to what a column is cut at the most.
const leastFree = 16

// least is the width when the free columns are cut.
func (g *grid) least(free []bool) (n int) {
	for i, w := range g.widths {
		if free[i] {
			w = min(w, leastFree)
		}
		n += w + 2
	}
	return n
}

func freeColumns[T any](fields []field[T]) []bool {
	free := make([]bool, len(fields))
	for i, f := range fields {
		free[i] = f.free
	}
	return free
}

// cut shortens the cells of a column.
func (g *grid) cut(column, width int) {
	for _, row := range g.cells {
		if text.StringWidth(row[column]) > width {
			row[column] = text.Snip(row[column], width, "…")
		}
	}
	g.widths[column] = min(g.widths[column], width)
}

func mostSpare[T any](fields []field[T]) (at int) {
	at = -1
	for i, f := range fields {
		if f.spare > 0 && (at < 0 || f.spare > fields[at].spare) {
			at = i
		}
	}
	return at
}

func paint[T any](g *grid, records []T, fields []field[T]) {
	for r, record := range records {
		for i, f := range fields {
			if f.color != nil {
				g.cells[r][i] = f.color(record, g.cells[r][i])
			}
		}
	}
}

func alignments[T any](fields []field[T]) (configs []table.ColumnConfig) {
	for i, f := range fields {
		if f.right {
			configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	return configs
}

func (g *grid) table(configs []table.ColumnConfig) string {
	header := make([]any, len(g.titles))
	for i, title := range g.titles {
		header[i] = title
	}
	t := newTable(header...)
	t.SetColumnConfigs(configs)
	for _, row := range g.cells {
		cells := make(table.Row, len(row))
		for i, cell := range row {
			cells[i] = cell
		}
		t.AppendRow(cells)
	}
	return t.Render()
}

// The colours, by meaning.
const (
	good    = "\x1b[32m"
	passing = "\x1b[33m" // it will change by itself, or somebody wanted it
	bad     = "\x1b[31m"
)

var meanings = map[string]string{
	"HELD": good, "SERVING": good, "OK": good, "RUNNING": good, "SUCCESS": good, "DONE": good, "ACTIVE": good,
	"WAITING": passing, "READY": passing, "PENDING": passing, "CANCELLED": passing, "SKIPPED": passing,
	"FAILED": bad, "DEPENDENT_FAILED": bad, "ERROR": bad,
	"MOVING": passing, "STANDBY": passing, "PAUSED": passing, "DRAINING": passing, "REMOVING": passing, "RETRY": passing, "NOTE": passing,
	"OVERDUE": bad, "ORPHAN": bad, "UNASSIGNED": bad, "DEAD": bad, "PROBLEM": bad, "EXPIRED": bad, "FORCED": bad, "ALERT": bad,
}

// byMeaning colours a state.
func byMeaning[T any](_ T, cell string) string {
	if color := meanings[cell]; color != "" {
		return color + cell + "\x1b[0m"
	}
	return cell
}

// badUnlessZero colours a number that should be 0.
func badUnlessZero[T any](_ T, cell string) string {
	if cell == "0" || cell == "" {
		return cell
	}
	return bad + cell + "\x1b[0m"
}

// deref is a text that may be missing.
func deref(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// age is a number of seconds for people, in two units at the most.
func age(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	d := time.Duration(math.Abs(*seconds) * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", *seconds)
	case d < 24*time.Hour:
		text := strings.Replace(d.Round(unitOf(d)).String(), "m0s", "m", 1)
		return strings.Replace(text, "h0m", "h", 1)
	}
	return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

func unitOf(d time.Duration) time.Duration {
	if d < time.Hour {
		return time.Second
	}
	return time.Minute
}

// when is a time for people and awk: UTC, without fractions.
func when(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// plural is a number of things.
func plural[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func number(n int64) string { return fmt.Sprint(n) }

// line is a text without line ends.
func line(s string) string { return strings.Join(strings.Fields(s), " ") }
