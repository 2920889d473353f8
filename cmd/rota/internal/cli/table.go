package cli

import (
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/ops"
)

// Column is a column of a table for people.
type Column[T any] struct {
	Title string
	Text  func(T) string

	UUID     bool // shortened to host:pid if the table is too wide
	DropRank int  // a table that is too wide drops the columns of the highest rank first; 0 is never dropped
	Truncate bool // cut if the table is still too wide
	Right    bool // aligned right, for numbers
	Color    func(T, string) string
}

// grid is a table while it is fitted to the screen.
type grid struct {
	titles []string
	cells  [][]string
	widths []int
}

// Render returns a table. If it is wider than the screen, it shortens uuids,
// then drops columns, which it names below, then cuts texts.
func Render[T any](s Screen, records []T, columns []Column[T]) string {
	g, note := newGrid(records, columns, false), ""
	if s.Width > 0 && g.width() > s.Width {
		all := columns
		g, columns = fit(s, records, columns)
		note = leftOut(s, all, columns)
	}
	if s.Color {
		paint(g, records, columns)
	}
	return strings.TrimSuffix(g.table(alignments(columns))+"\n"+note, "\n")
}

// fit returns a grid that fits the screen if possible, and its columns.
func fit[T any](s Screen, records []T, columns []Column[T]) (*grid, []Column[T]) {
	g := newGrid(records, columns, true)
	for g.minWidth(truncatable(columns)) > s.Width {
		i := firstToDrop(columns)
		if i < 0 {
			break
		}
		columns = slices.Delete(slices.Clone(columns), i, i+1)
		g = newGrid(records, columns, true)
	}
	for i, c := range columns {
		if excess := g.width() - s.Width; c.Truncate && excess > 0 {
			g.cut(i, max(g.widths[i]-excess, minTextWidth))
		}
	}
	return g, columns
}

func newGrid[T any](records []T, columns []Column[T], short bool) *grid {
	g := &grid{widths: make([]int, len(columns)), cells: make([][]string, len(records))}
	for i, c := range columns {
		g.titles = append(g.titles, c.Title)
		g.widths[i] = text.StringWidth(c.Title)
	}
	for r, record := range records {
		for i, c := range columns {
			cell := c.Text(record)
			if c.UUID && short {
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

func truncatable[T any](columns []Column[T]) []bool {
	cut := make([]bool, len(columns))
	for i, c := range columns {
		cut[i] = c.Truncate
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
func firstToDrop[T any](columns []Column[T]) int {
	at := -1
	for i, c := range columns {
		if c.DropRank > 0 && (at < 0 || c.DropRank > columns[at].DropRank) {
			at = i
		}
	}
	return at
}

func paint[T any](g *grid, records []T, columns []Column[T]) {
	for r, record := range records {
		for i, c := range columns {
			if c.Color != nil {
				g.cells[r][i] = c.Color(record, g.cells[r][i])
			}
		}
	}
}

func alignments[T any](columns []Column[T]) (configs []table.ColumnConfig) {
	for i, c := range columns {
		if c.Right {
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

// leftOutPrefix begins the note below a table that lacks columns.
const leftOutPrefix = "Left out: "

// leftOut returns a note that names the columns that were dropped, and how to
// see them. It is empty if none was.
func leftOut[T any](s Screen, all, shown []Column[T]) string {
	var titles []string
	for _, c := range all {
		if !slices.ContainsFunc(shown, func(d Column[T]) bool { return d.Title == c.Title }) {
			titles = append(titles, c.Title)
		}
	}
	if len(titles) == 0 {
		return ""
	}
	return text.WrapSoft(leftOutPrefix+strings.Join(titles, ", ")+" (a wider terminal, | less -S or -o json shows all)",
		s.Width)
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
