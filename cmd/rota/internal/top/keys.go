package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/ops/doctor"
)

// binding is what some keys do.
type binding struct {
	keys  []string // as bubbletea names them
	short string   // in the last line of the screen; empty: only the help has it
	help  string
	do    func(m *model) tea.Cmd
	moves bool // within a pane: also while it asks
}

// bindings are the keys of the lists, in the order of the help. They are made in a function, because the help is one of
// what they show.
func bindings() []binding {
	move := func(rows func(*pane) int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd {
			m.pane().move(rows(m.pane()))
			return nil
		}
	}
	return []binding{
		{[]string{"tab", "right"}, "", "the next list", func(m *model) tea.Cmd { return m.open(m.tab + 1) }, false},
		{[]string{"shift+tab", "left"}, "", "the list before", func(m *model) tea.Cmd { return m.open(m.tab - 1) }, false},
		{[]string{"up", "k"}, "", "a row up", move(func(*pane) int { return -1 }), true},
		{[]string{"down", "j"}, "", "a row down", move(func(*pane) int { return 1 }), true},
		{[]string{"pgup"}, "", "a page up", move(func(p *pane) int { return -p.rows }), true},
		{[]string{"pgdown", "space"}, "", "a page down", move(func(p *pane) int { return p.rows }), true},
		{[]string{"home", "g"}, "", "the first row", move(func(p *pane) int { return -p.length() }), true},
		{[]string{"end", "G"}, "", "the last row", move(func(p *pane) int { return p.length() }), true},
		{[]string{"enter"}, "look into", "look into the row: the queues of a task type or of a worker, " +
			"the details of a run, otherwise all columns", (*model).lookInto, false},
		{[]string{"esc", "backspace"}, "back", "drop the filter, or go back", (*model).back, false},
		{[]string{"/"}, "filter", "show the rows that have all the words", func(m *model) tea.Cmd {
			m.pane().typing = m.pane().table != nil
			return nil
		}, false},
		{[]string{"s"}, "sort", "sort by the next column; after the last one, by none", func(m *model) tea.Cmd {
			m.pane().sortNext()
			return nil
		}, false},
		{[]string{"S"}, "", "turn the order round", func(m *model) tea.Cmd {
			m.pane().down = !m.pane().down
			m.pane().rearrange()
			return nil
		}, false},
		{[]string{"p"}, "pause", "pause the task type of the row, or resume it", func(m *model) tea.Cmd {
			return m.propose(pauseOrResume)
		}, false},
		{[]string{"d"}, "drain", "drain the worker of the row, or resume it", func(m *model) tea.Cmd {
			return m.propose(drainOrResume)
		}, false},
		{[]string{"r"}, "", "read the list again at once", (*model).readNow, false},
		{[]string{"?"}, "help", "this help", (*model).showHelp, false},
		{[]string{"q"}, "quit", "quit; Ctrl-C quits everywhere", func(*model) tea.Cmd { return tea.Quit }, false},
	}
}

// press does what a key stands for.
func (m *model) press(key tea.Key) tea.Cmd {
	name := tea.KeyPressMsg(key).String()
	p := m.pane()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case name == "ctrl+z":
		return tea.Suspend
	case m.job != nil && m.job.changes:
		return nil // until the result is there
	case p.typing:
		p.edit(name, key.Text)
		return nil
	case p.ask != nil && p.ask.waits():
		return m.answer(name)
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= len(m.tabs) {
		return m.open(n - 1)
	}
	if b := m.binding(name); b != nil {
		return b.do(m)
	}
	return nil
}

// binding returns what a key does, nil if it does nothing.
func (m *model) binding(key string) *binding {
	i := slices.IndexFunc(m.bindings, func(b binding) bool { return slices.Contains(b.keys, key) })
	if i < 0 {
		return nil
	}
	return &m.bindings[i]
}

// edit changes the filter.
func (p *pane) edit(key, typed string) {
	switch key {
	case "enter":
		p.typing = false
	case "esc":
		p.typing, p.filter = false, ""
	case "backspace":
		if letters := []rune(p.filter); len(letters) > 0 {
			p.filter = string(letters[:len(letters)-1])
		}
	case "ctrl+u":
		p.filter = ""
	case "up":
		p.move(-1)
	case "down":
		p.move(1)
	default:
		p.filter += typed
	}
	p.rearrange()
}

// keyLine returns the last line of the screen.
func (m *model) keyLine() string {
	var parts []string
	for _, b := range m.bindings {
		if b.short != "" {
			parts = append(parts, b.keys[0]+" "+b.short)
		}
	}
	return " " + strings.Join(parts, "  ")
}

// showHelp shows all keys, and what the lists read.
func (m *model) showHelp() tea.Cmd {
	text := func(s cli.Screen) string {
		lines := []string{
			fmt.Sprintf(" %-19s %s", "1 to "+strconv.Itoa(len(m.tabs)), "the list of this number"),
		}
		for _, b := range m.bindings {
			indent := strings.Repeat(" ", 21)
			narrow := s
			narrow.Width = max(0, s.Width-len(indent))
			help := strings.ReplaceAll(narrow.Wrap(b.help), "\n", "\n"+indent)
			lines = append(lines, fmt.Sprintf(" %-19s %s", strings.Join(b.keys, ", "), help))
		}
		return strings.Join(append(lines, "", s.Wrap("Only the list that is shown is read, at each interval. The task types "+
			"come with the rates of their workers and, at least each "+doctor.JudgeEvery.String()+", with what rota "+
			"doctor finds. A screen that is wider shows more columns.")), "\n")
	}
	return m.push(&pane{title: "help", content: content{text: text}})
}
