package main

import (
	"slices"
	"strings"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/ops"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// column is a column of a table for people.
type column[T any] struct {
	title string
	text  func(T) string

	uuid     bool // shortened to host:pid if the table is too wide
	dropRank int  // a table that is too wide drops the columns of the highest rank first; 0 is never dropped
	truncate bool // cut if the table is still too wide
	right    bool // aligned right, for numbers
	color    func(T, string) string
}

// grid is a table while it is fitted to the screen.
type grid struct {
	titles []string
	cells  [][]string
	widths []int
}

// render returns a table. If it is wider than the screen, it shortens uuids,
// then drops columns, which it names below, then cuts texts.
func render[T any](s screen, records []T, columns []column[T]) string {
	g, note := newGrid(records, columns, false), ""
	if s.width > 0 && g.width() > s.width {
		all := columns
		g, columns = fit(s, records, columns)
		note = leftOut(s, all, columns)
	}
	if s.color {
		paint(g, records, columns)
	}
	return strings.TrimSuffix(g.table(alignments(columns))+"\n"+note, "\n")
}

// fit returns a grid that fits the screen if possible, and its columns.
func fit[T any](s screen, records []T, columns []column[T]) (*grid, []column[T]) {
	g := newGrid(records, columns, true)
	for g.minWidth(truncatable(columns)) > s.width {
		i := firstToDrop(columns)
		if i < 0 {
			break
		}
		columns = slices.Delete(slices.Clone(columns), i, i+1)
		g = newGrid(records, columns, true)
	}
	for i, c := range columns {
		if excess := g.width() - s.width; c.truncate && excess > 0 {
			g.cut(i, max(g.widths[i]-excess, minTextWidth))
		}
	}
	return g, columns
}

func newGrid[T any](records []T, columns []column[T], short bool) *grid {
	g := &grid{widths: make([]int, len(columns)), cells: make([][]string, len(records))}
	for i, c := range columns {
		g.titles = append(g.titles, c.title)
		g.widths[i] = text.StringWidth(c.title)
	}
	for r, record := range records {
		for i, c := range columns {
			cell := c.text(record)
			if c.uuid && short {
				cell = ops.ServerName(cell)
			}
			cell = escape.Text(cell)
			g.cells[r] = append(g.cells[r], cell)
			g.widths[i] = max(g.widths[i], text.StringWidth(cell))
		}
	}
	return g
}

// width returns the width with a space on both sides of each cell.
func (g *grid) width() (n int) {
	for _, w := range g.widths {
		n += w + 2
	}
	return n
}

// minTextWidth is the least width of a column that is cut.
const minTextWidth = 16

// minWidth returns the width with the given columns cut.
func (g *grid) minWidth(cut []bool) (n int) {
	for i, w := range g.widths {
		if cut[i] {
			w = min(w, minTextWidth)
		}
		n += w + 2
	}
	return n
}

func truncatable[T any](columns []column[T]) []bool {
	cut := make([]bool, len(columns))
	for i, c := range columns {
		cut[i] = c.truncate
	}
	return cut
}

// cut limits the width of a column.
func (g *grid) cut(i, width int) {
	for _, row := range g.cells {
		if text.StringWidth(row[i]) > width {
			row[i] = text.Snip(row[i], width, "…")
		}
	}
	g.widths[i] = min(g.widths[i], width)
}

// firstToDrop returns the index of the column of the highest rank, or -1 if
// none may be dropped.
func firstToDrop[T any](columns []column[T]) int {
	at := -1
	for i, c := range columns {
		if c.dropRank > 0 && (at < 0 || c.dropRank > columns[at].dropRank) {
			at = i
		}
	}
	return at
}

func paint[T any](g *grid, records []T, columns []column[T]) {
	for r, record := range records {
		for i, c := range columns {
			if c.color != nil {
				g.cells[r][i] = c.color(record, g.cells[r][i])
			}
		}
	}
}

func alignments[T any](columns []column[T]) (configs []table.ColumnConfig) {
	for i, c := range columns {
		if c.right {
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

// newTable returns a table without lines, readable for people and for awk.
func newTable(columns ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleDefault)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.SuppressTrailingSpaces()
	t.AppendHeader(columns)
	return t
}
