package top

import (
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/human"
)

// pane is what the screen shows between its head and its foot: a list with the row that is chosen, or a text. It keeps
// what a person has chosen while its content is read again.
type pane struct {
	view  *view // nil: its content is not read
	scope scope
	title string
	ask   *question // nil: it asks nothing

	content
	at     time.Time     // of the last reading that succeeded; zero: none has yet
	took   time.Duration // the last reading
	err    error         // why the last reading failed; nil: it did not
	failed int           // readings since the last one that succeeded

	filter string
	typing bool
	sort   string // the title of a column; empty: the order in which the rows were read
	down   bool   // the greatest value comes first

	order  []int // the rows that the filter lets through
	cursor int   // the chosen one of them
	first  int   // the first one of them, or the first line of a text, that the screen shows
	rows   int   // that the screen has for them
	lines  []string
	width  int // for which lines are wrapped
	sorted []string
}

// show replaces the content. The chosen row remains chosen, if it is still there.
func (p *pane) show(c content) {
	chosen, at := p.chosen()
	p.content, p.lines = c, nil
	p.arrange()
	if i := slices.IndexFunc(p.order, func(row int) bool { return at && c.objects[row].id == chosen.id }); i >= 0 {
		p.first += i - p.cursor
		p.cursor = i
	}
	p.move(0)
}

// chosen returns what the chosen row is about, and false if there is no row.
func (p *pane) chosen() (object, bool) {
	if p.table == nil || len(p.order) == 0 {
		return object{}, false
	}
	return p.objects[p.order[p.cursor]], true
}

// arrange filters and sorts the rows.
func (p *pane) arrange() {
	p.order = p.order[:0]
	if p.table == nil {
		return
	}
	words := strings.Fields(strings.ToLower(p.filter))
	for row := range p.table.Len() {
		if p.table.Has(row, words) {
			p.order = append(p.order, row)
		}
	}
	if p.sort != "" {
		slices.SortStableFunc(p.order, func(a, b int) int {
			if p.down {
				a, b = b, a
			}
			return p.table.Compare(p.sort, a, b)
		})
	}
	p.cursor = max(0, min(p.cursor, len(p.order)-1))
}

// rearrange filters and sorts the rows again. The chosen row remains chosen.
func (p *pane) rearrange() { p.show(p.content) }

// sortBy sorts by the next of the columns that the screen shows.
func (p *pane) sortNext() {
	i := slices.Index(p.sorted, p.sort) + 1 // 0 if it is not sorted
	p.sort = ""
	if i < len(p.sorted) {
		p.sort = p.sorted[i]
	}
	p.rearrange()
}

// fit prepares the pane for a screen with room for some lines.
func (p *pane) fit(s cli.Screen, rows int) {
	p.rows = rows
	switch {
	case p.table != nil:
		p.rows = max(0, rows-1) // the head of the table
		p.sorted = p.table.Part(cli.Screen{Width: s.Width}, nil).Columns
	case p.text != nil && (p.lines == nil || p.width != s.Width):
		p.lines, p.width = strings.Split(strings.TrimRight(p.text(s), "\n"), "\n"), s.Width
	}
	p.move(0)
}

// length returns the number of rows, or of lines of a text.
func (p *pane) length() int {
	if p.table != nil {
		return len(p.order)
	}
	return len(p.lines)
}

// move moves the choice by a number of rows, and a text by a number of lines.
func (p *pane) move(n int) {
	last := max(0, p.length()-p.rows)
	if p.table == nil {
		p.first = max(0, min(p.first+n, last))
		return
	}
	p.cursor = max(0, min(p.cursor+n, len(p.order)-1))
	p.first = max(0, min(p.first, p.cursor, last), p.cursor-max(1, p.rows)+1)
}

// body returns the lines of the pane that the screen shows.
func (p *pane) body(s cli.Screen) []string {
	if p.table == nil {
		return p.lines[min(p.first, len(p.lines)):min(p.first+p.rows, len(p.lines))]
	}
	part := p.table.Part(s, p.order[p.first:min(p.first+p.rows, len(p.order))])
	for i, line := range part.Lines {
		if i == p.cursor-p.first {
			part.Lines[i] = chosenLine(s, line)
		}
	}
	return append([]string{part.Head}, part.Lines...)
}

// chosenLine marks a line. It leaves out the colours of the line, which the mark would end with.
func chosenLine(s cli.Screen, line string) string {
	plain := ">" + strings.TrimPrefix(ansi.Strip(line), " ")
	if !s.Color {
		return plain
	}
	return "\x1b[7m" + text.Pad(plain, s.Width, ' ') + "\x1b[0m"
}

// describe says what the pane shows.
func (p *pane) describe() string {
	parts := []string{p.title}
	if p.table != nil {
		count := human.Number(p.table.Len())
		if len(p.order) != p.table.Len() {
			count = human.Number(len(p.order)) + " of " + count
		}
		parts[0] += ": " + count
	}
	if p.note != "" {
		parts = append(parts, p.note)
	}
	if p.filter != "" {
		parts = append(parts, "with "+p.filter)
	}
	if p.sort != "" {
		order := "by " + p.sort
		if p.down {
			order += ", the greatest first"
		}
		parts = append(parts, order)
	}
	return strings.Join(parts, "; ")
}
