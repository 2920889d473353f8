package demo

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// view writes a line for each thing that happens, and below these lines the state of the workers. A terminal shows one
// state, which view redraws. A pipe gets the state at the end of each scene. One goroutine uses a view. It ignores the
// errors of writing: the command gets SIGPIPE.
type view struct {
	out   io.Writer
	began time.Time
	size  func() (width, height int, err error) // of the terminal; nil for a pipe
	drawn int                                   // lines of state on the terminal
}

// legend explains the state on a terminal.
const legend = "   bar: settled orders by worker; red: killed; 3→4: queue 3 moves to worker 4"

// newView returns a view for a terminal, or for a pipe if out is no terminal or the user wants no colours.
func newView(out io.Writer) *view {
	v := &view{out: out, began: time.Now()}
	screen, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(screen.Fd())) {
		text.DisableColors()
		return v
	}
	v.size = func() (int, int, error) { return term.GetSize(int(screen.Fd())) }
	return v
}

// write adds a line to what has happened.
func (v *view) write(line string) { v.show([]string{line}, nil, false) }

// show adds lines to what has happened, and shows the state.
func (v *view) show(news, state []string, sceneEnds bool) {
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA\x1b[J", v.drawn) // cursor up, erase below
	}
	for _, line := range news {
		fmt.Fprintf(&b, "%5.1f s  %s\n", time.Since(v.began).Seconds(), line)
	}
	if v.size != nil {
		state = v.fit(state)
		v.drawn = len(state)
	}
	if v.size != nil || sceneEnds {
		b.WriteString(strings.Join(append(state, ""), "\n"))
	}
	v.print(b.String())
}

// leave makes the view draw no more over the state that it shows: what is written next, such as the proof, stays below it.
func (v *view) leave() { v.drawn = 0 }

func (v *view) print(text string) { _, _ = v.out.Write([]byte(text)) }

// fit adds the legend before the empty line at the end of the state, and cuts the state to the size of the terminal: the
// cursor cannot go up beyond the first line.
func (v *view) fit(state []string) []string {
	if n := len(state); n > 0 {
		state = append(state[:n-1], text.Faint.Sprint(legend), "")
	}
	width, height, err := v.size()
	if err != nil || height == 0 { // a terminal that nobody has given a size
		width, height = 80, 24
	}
	state = state[:min(len(state), max(height-1, 0))]
	for i := range state {
		state[i] = text.Trim(state[i], width)
	}
	return state
}

// news puts events into words. Events that differ only in their queue share a line, unless an event of another kind is
// between them. The state shows requests as arrows.
func (c *fleet) news(events []event) (lines []string) {
	kind, at := "", map[string]int{}
	for _, e := range events {
		if e.kind == "REQUESTED" {
			continue
		}
		if e.kind != kind {
			kind = e.kind
			clear(at)
		}
		parties := c.name(e.from) + c.name(e.to)
		if e.from != "" && e.to != "" {
			parties = c.name(e.from) + " → " + c.name(e.to)
		}
		line := fmt.Sprintf("   %-10s  %s", e.kind, parties)
		i, shared := at[line]
		switch {
		case e.queue == "":
			lines = append(lines, strings.TrimRight(line+"  "+e.reason, " "))
		case shared:
			lines[i] += " " + e.queue
		default:
			at[line] = len(lines)
			lines = append(lines, line+"  queue "+e.queue)
		}
	}
	return lines
}

// name returns the worker of the server, or the uuid of a server that the demo has not started.
func (c *fleet) name(uuid string) string {
	if w := c.of(uuid); w != nil {
		return w.coloured()
	}
	return uuid
}

// state returns a line for each worker with its queues, one for the queues without an owner, and one for the progress.
func (c *fleet) state(now snapshot) []string {
	const barWidth = 40
	lines := []string{""}
	settled := map[*worker]int{}
	for uuid, n := range now.settled {
		settled[c.of(uuid)] += n
	}
	bar, drawn, total := "", 0, 0
	for _, w := range c.workers {
		lines = append(lines, fmt.Sprintf("   %s  %-11s %6s orders  queues %s", w.coloured(), w.state(), comma(settled[w]), c.owned(w, now.queues)))
		total += settled[w]
		bar += w.colour().Sprint(strings.Repeat("█", total*barWidth/orderCount-drawn))
		drawn = total * barWidth / orderCount
	}
	if free := c.owned(nil, now.queues); free != "-" {
		lines = append(lines, "   no owner:                            queues "+free)
	}
	bar += text.Faint.Sprint(strings.Repeat("░", max(barWidth-drawn, 0)))
	return append(lines, fmt.Sprintf("   %s %3d %%  %s of %s orders", bar, total*100/orderCount, comma(total), comma(orderCount)), "")
}

// owned lists the queues of a worker, and the queues without an owner for nil. 3→4 is queue 3 on its way to worker 4.
func (c *fleet) owned(w *worker, queues []queue) string {
	var list []string
	for _, q := range queues {
		if c.of(q.owner) != w {
			continue
		}
		if to := c.of(q.requester); to != nil {
			q.id += to.colour().Sprintf("→%d", to.number)
		}
		list = append(list, q.id)
	}
	return cmp.Or(strings.Join(list, " "), "-")
}

func (w *worker) state() string {
	switch {
	case w.killed:
		return text.FgHiRed.Sprint("killed     ")
	case w.ended():
		return "left"
	case w.leaving:
		return "leaving"
	}
	return fmt.Sprintf("pid %d", w.pid)
}

// palette has a colour for each worker. Red is for trouble.
var palette = []text.Color{text.FgCyan, text.FgMagenta, text.FgYellow, text.FgGreen}

func (w *worker) colour() text.Color { return palette[(w.number-1)%len(palette)] }

func (w *worker) coloured() string { return w.colour().Sprint(w) }

func comma(n int) string { return humanize.Comma(int64(n)) }
