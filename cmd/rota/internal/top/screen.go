package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/escape"
)

// chrome is the number of lines around a pane: the names of the lists, the state of the reading, and the keys.
const chrome = 3

// slowAfter is how long a job may take until the screen says so.
const slowAfter = time.Second

// View implements tea.Model.
func (m *model) View() tea.View {
	p := m.pane()
	lines := append([]string{m.tabLine(), m.stateLine()}, p.body(m.screen)...)
	for len(lines) < m.screen.Height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, m.footLine())
	for i, line := range lines {
		lines[i] = text.Snip(line, m.screen.Width, "…")
	}
	v := tea.NewView(strings.Join(lines[:min(len(lines), m.screen.Height)], "\n"))
	v.AltScreen = true
	return v
}

// tabLine names the lists.
func (m *model) tabLine() string {
	var b strings.Builder
	for i, p := range m.tabs {
		name := fmt.Sprint(i+1, " ", p.view.name)
		if i == m.tab {
			b.WriteString("[" + name + "]")
		} else {
			b.WriteString(" " + name + " ")
		}
	}
	return b.String()
}

// stateLine says what is shown, and how old it is; first of all, that the database does not answer.
func (m *model) stateLine() string {
	p := m.pane()
	line := " " + escape.Text(p.describe())
	switch {
	case m.job != nil && m.now.Sub(m.job.begun) > slowAfter:
		line = m.screen.Alarm(fmt.Sprintf(" waiting for the database for %s; ", age(m.now, m.job.begun))) + line[1:]
	case p.err != nil:
		return m.screen.Alarm(" no answer; "+p.lastRead(m.now)+"; trying again in "+age(m.due, m.now)+": ") +
			escape.Text(cli.OneLine(p.err.Error()))
	case p.view != nil && p.at.IsZero():
		line += "; reading"
	}
	if p.view != nil && !p.at.IsZero() {
		line += fmt.Sprintf("; read %s, every %s", p.at.UTC().Format("15:04:05Z"), m.every)
	}
	return line
}

// lastRead says when the pane was last read.
func (p *pane) lastRead(now time.Time) string {
	if p.at.IsZero() {
		return "not read yet"
	}
	return fmt.Sprintf("read %s, %s ago", p.at.UTC().Format("15:04:05Z"), age(now, p.at))
}

// age returns the whole seconds between two times.
func age(now, since time.Time) string {
	return max(0, now.Sub(since)).Round(time.Second).String()
}

// footLine shows the keys, or the question, or the filter that is being typed.
func (m *model) footLine() string {
	p := m.pane()
	switch {
	case p.typing:
		return "/" + escape.Text(p.filter) + "_   enter keep  esc drop"
	case p.ask != nil && p.ask.waits():
		const answers = "? y yes  n no" // a long title gives way to them
		title := " " + escape.Text(p.ask.change.Title)
		return text.Snip(title, max(0, m.screen.Width-len(answers)), "…") + answers
	case p.ask != nil && m.job != nil:
		return " ..."
	case p.view == nil:
		return " esc back"
	}
	return m.keyLine()
}

// fieldsText returns a text that has a line for each column of a row.
func fieldsText(titles, texts []string) func(cli.Screen) string {
	return func(s cli.Screen) string {
		width := 0
		for _, title := range titles {
			width = max(width, text.StringWidth(title))
		}
		indent := strings.Repeat(" ", width+3)
		s.Width = max(0, s.Width-len(indent))
		var lines []string
		for i, title := range titles {
			lines = append(lines, fmt.Sprintf(" %-*s  %s", width, title,
				strings.ReplaceAll(s.Wrap(texts[i]), "\n", "\n"+indent)))
		}
		return strings.Join(lines, "\n")
	}
}
