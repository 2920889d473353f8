package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/plan"
)

// Table holds records as rows. NewTable escapes their texts and measures the columns, so that the columns stay where
// they are while a person scrolls. A screen can show some of the rows.
type Table struct {
	head   Row
	rows   []Row
	widths []int
	short  []int // the widths with uuids shortened
}

// NewTable returns a table with a row for each record. The row of a zero record gives the titles.
func NewTable[T any](records []T, row func(T) Row) *Table {
	var zero T
	t := &Table{head: row(zero), rows: make([]Row, len(records))}
	for i, r := range records {
		t.rows[i] = row(r)
	}
	t.widths = make([]int, len(t.head))
	for i, c := range t.head {
		t.widths[i] = text.StringWidth(c.Title)
	}
	t.short = slices.Clone(t.widths)
	for _, row := range t.rows {
		for i := range row {
			row[i].text = escape.Text(row[i].text)
			t.widths[i] = max(t.widths[i], text.StringWidth(row[i].text))
			t.short[i] = max(t.short[i], text.StringWidth(row[i].shortened()))
		}
	}
	for i, c := range t.head {
		if c.sameRank > 0 && t.same(i) {
			t.head[i].dropRank = c.sameRank
		}
	}
	return t
}

// same reports whether all rows have the same text in a column.
func (t *Table) same(column int) bool {
	return !slices.ContainsFunc(t.rows, func(r Row) bool { return r[column].text != t.rows[0][column].text })
}

// Render returns a table with a row for each record. If the table is wider than the screen, it shortens uuids, then
// drops columns, which it names below, then cuts texts.
func Render[T any](s Screen, records []T, row func(T) Row) string {
	t := NewTable(records, row)
	all := make([]int, t.Len())
	for i := range all {
		all[i] = i
	}
	p := t.Part(s, all)
	lines := append([]string{p.Head}, p.Lines...)
	if note := leftOut(s, t.head, p.Columns); note != "" {
		lines = append(lines, note)
	}
	return strings.Join(lines, "\n")
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Has reports whether the texts of a row have all the words, whatever their case. A narrow screen may not show the
// column. Figures do not count: 1 would be in most rows.
func (t *Table) Has(row int, words []string) bool {
	for _, word := range words {
		if !slices.ContainsFunc(t.rows[row], func(c Cell) bool { return !c.right && containsFold(c.text, word) }) {
			return false
		}
	}
	return true
}

// containsFold reports whether a text contains a word in lower case, whatever the case of the text.
func containsFold(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// Compare compares two rows by the column with a title. Texts compare in natural order, q2 before q10.
func (t *Table) Compare(title string, row, other int) int {
	i := slices.IndexFunc(t.head, func(c Cell) bool { return c.Title == title })
	if i < 0 {
		return 0
	}
	a, b := t.rows[row][i], t.rows[other][i]
	if a.ordered || b.ordered {
		return cmp.Compare(a.order, b.order)
	}
	return plan.CompareIDs(a.text, b.text)
}

// Fields returns the titles of all columns and the texts of a row.
func (t *Table) Fields(row int) (titles, texts []string) {
	for _, c := range t.rows[row] {
		titles, texts = append(titles, c.Title), append(texts, c.text)
	}
	return titles, texts
}

// Part is what a screen shows of a table.
type Part struct {
	Head    string
	Lines   []string
	Columns []string // the titles of the columns that are not left out
}

// Part returns the head and the given rows, fitted to the screen as Render does.
func (t *Table) Part(s Screen, rows []int) (p Part) {
	g := &grid{head: slices.Clone(t.head), widths: slices.Clone(t.widths)}
	for n, at := range rows {
		row := slices.Clone(t.rows[at])
		for i, c := range row {
			if n > 0 && c.once && c.text == t.rows[rows[n-1]][i].text {
				row[i].text = ""
			}
		}
		g.rows = append(g.rows, row)
	}
	if s.Width > 0 && g.width() > s.Width {
		g.widths = slices.Clone(t.short)
		g.fit(s)
	}
	if s.Color {
		g.change(func(c *Cell) { c.text = strings.Replace(c.text, c.colored, c.color+c.colored+noColor, 1) })
	}
	titles := slices.Clone(g.head)
	for i, c := range titles {
		p.Columns, titles[i].text = append(p.Columns, c.Title), c.Title
	}
	p.Head = g.line(titles)
	for _, row := range g.rows {
		p.Lines = append(p.Lines, g.line(row))
	}
	return p
}

// grid is a table while it is fitted to the screen. The cells of the head have the properties of the columns.
type grid struct {
	head   Row
	rows   []Row
	widths []int
}

// change changes the cells of all rows.
func (g *grid) change(f func(*Cell)) {
	for _, row := range g.rows {
		for i := range row {
			f(&row[i])
		}
	}
}

// fit makes the table fit the screen if possible. Its widths are those with uuids shortened.
func (g *grid) fit(s Screen) {
	g.change(func(c *Cell) { c.text = c.shortened() })
	for i := g.firstToDrop(); i >= 0 && g.minWidth() > s.Width; i = g.firstToDrop() {
		g.drop(i)
	}
	for i, c := range g.head {
		if excess := g.width() - s.Width; c.long && excess > 0 {
			g.cut(i, max(g.widths[i]-excess, minTextWidth))
		}
	}
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
			whole := row[i].colored == row[i].text
			row[i].text = text.Snip(row[i].text, width, "…")
			if whole {
				row[i].colored = row[i].text
			}
		}
	}
	g.widths[i] = min(g.widths[i], width)
}

// line returns a row without rules between its cells, readable for people and for awk.
func (g *grid) line(row Row) string {
	var b strings.Builder
	for i, c := range row {
		room := strings.Repeat(" ", max(0, g.widths[i]-text.StringWidthWithoutEscSequences(c.text)))
		if g.head[i].right {
			b.WriteString(" " + room + c.text + " ")
		} else {
			b.WriteString(" " + c.text + room + " ")
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// leftOutPrefix begins the note below a table that lacks columns.
const leftOutPrefix = "Left out: "

// leftOut returns a note that names the columns that were dropped, and how to see them. It is empty if none was.
func leftOut(s Screen, all Row, shown []string) string {
	var titles []string
	for _, c := range all {
		if !slices.Contains(shown, c.Title) {
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
