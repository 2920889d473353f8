package cli

import (
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/ops"
)

// grid is a table while it is fitted to the screen. The cells of the head have the properties of the columns.
type grid struct {
	head   Row
	rows   []Row
	widths []int
}

// Render returns a table with a row for each record. If the table is wider than the screen, it shortens uuids, then
// drops columns, which it names below, then cuts texts. The row of a zero record gives the titles.
func Render[T any](s Screen, records []T, row func(T) Row) string {
	var zero T
	g := &grid{head: row(zero)}
	for _, r := range records {
		g.rows = append(g.rows, row(r))
	}
	return g.render(s)
}

func (g *grid) render(s Screen) string {
	g.change(func(c *Cell) { c.text = escape.Text(c.text) })
	g.measure()
	note := ""
	if s.Width > 0 && g.width() > s.Width {
		note = g.fit(s)
	}
	if s.Color {
		g.change(func(c *Cell) { c.text = strings.Replace(c.text, c.colored, c.color+c.colored+noColor, 1) })
	}
	return strings.TrimSuffix(g.text()+"\n"+note, "\n")
}

// change changes the cells of all rows.
func (g *grid) change(f func(*Cell)) {
	for _, row := range g.rows {
		for i := range row {
			f(&row[i])
		}
	}
}

func (g *grid) measure() {
	g.widths = make([]int, len(g.head))
	for i, c := range g.head {
		g.widths[i] = text.StringWidth(c.Title)
	}
	for _, row := range g.rows {
		for i, c := range row {
			g.widths[i] = max(g.widths[i], text.StringWidth(c.text))
		}
	}
}

// fit makes the table fit the screen if possible, and returns a note if it drops columns.
func (g *grid) fit(s Screen) (note string) {
	all := slices.Clone(g.head)
	g.change(func(c *Cell) {
		if c.uuid {
			c.text = ops.ServerName(c.text)
		}
	})
	g.measure()
	for i := g.firstToDrop(); i >= 0 && g.minWidth() > s.Width; i = g.firstToDrop() {
		g.drop(i)
	}
	for i, c := range g.head {
		if excess := g.width() - s.Width; c.long && excess > 0 {
			g.cut(i, max(g.widths[i]-excess, minTextWidth))
		}
	}
	return leftOut(s, all, g.head)
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

// minWidth returns the width with long texts cut.
func (g *grid) minWidth() (n int) {
	for i, w := range g.widths {
		if g.head[i].long {
			w = min(w, minTextWidth)
		}
		n += w + 2
	}
	return n
}

// firstToDrop returns the index of the column of the highest rank, or -1 if none may be dropped.
func (g *grid) firstToDrop() int {
	at := -1
	for i, c := range g.head {
		if c.dropRank > 0 && (at < 0 || c.dropRank > g.head[at].dropRank) {
			at = i
		}
	}
	return at
}

func (g *grid) drop(i int) {
	g.head, g.widths = slices.Delete(g.head, i, i+1), slices.Delete(g.widths, i, i+1)
	for r, row := range g.rows {
		g.rows[r] = slices.Delete(row, i, i+1)
	}
}

// cut limits the width of a column.
func (g *grid) cut(i, width int) {
	for _, row := range g.rows {
		if text.StringWidth(row[i].text) > width {
			row[i].text = text.Snip(row[i].text, width, "…")
		}
	}
	g.widths[i] = min(g.widths[i], width)
}

// text returns the table without lines, readable for people and for awk.
func (g *grid) text() string {
	t := table.NewWriter()
	t.SetStyle(table.StyleDefault)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.SuppressTrailingSpaces()
	var titles table.Row
	var configs []table.ColumnConfig
	for i, c := range g.head {
		titles = append(titles, c.Title)
		if c.right {
			configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	t.AppendHeader(titles)
	t.SetColumnConfigs(configs)
	for _, row := range g.rows {
		cells := make(table.Row, len(row))
		for i, c := range row {
			cells[i] = c.text
		}
		t.AppendRow(cells)
	}
	return t.Render()
}

// leftOutPrefix begins the note below a table that lacks columns.
const leftOutPrefix = "Left out: "

// leftOut returns a note that names the columns that were dropped, and how to see them. It is empty if none was.
func leftOut(s Screen, all, shown Row) string {
	var titles []string
	for _, c := range all {
		if !slices.ContainsFunc(shown, func(d Cell) bool { return d.Title == c.Title }) {
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
