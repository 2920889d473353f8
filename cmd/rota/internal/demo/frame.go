package demo

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// frame lays a scene out: the queues on the left, the workers on the right, the progress and the news below.
type frame struct {
	headline string
	scene    scene
	told     []string // all news so far
}

const (
	leftWidth = 46  // of the queues
	mostWidth = 120 // beyond it a line is hard to follow
)

// lines returns at most height lines of at most width columns.
func (f frame) lines(width, height int) []string {
	cols := min(width, mostWidth)
	lines := []string{
		spread(" "+text.Bold.Sprint("Rota demo")+"  "+f.headline, stamp(f.scene.elapsed), cols),
		" " + f.scene.step,
		"",
	}
	left, right := f.queues(), f.workers(cols-leftWidth-1)
	for i := range max(len(left), len(right)) {
		lines = append(lines, text.Pad(line(left, i), leftWidth, ' ')+line(right, i))
	}
	lines = append(lines, "", f.progress(cols), "")
	lines = append(lines, f.news(height-len(lines))...)
	lines = lines[:min(len(lines), height)]
	for i := range lines {
		lines[i] = text.Trim(lines[i], width)
	}
	return lines
}

func (f frame) queues() []string {
	lines := []string{text.Faint.Sprint(queueRow("QUEUE", "OWNER", "PID", "STATUS", "EPOCH"))}
	for _, q := range f.scene.queues {
		owner, pid := "-", ""
		if w := f.scene.crew.of(q.owner); w != nil {
			owner, pid = name(w), strconv.Itoa(w.pid)
		}
		lines = append(lines, queueRow(q.id, owner, pid, f.status(q), strconv.FormatInt(q.epoch, 10)))
	}
	return lines
}

// name is the worker in its colour, crossed out when it is dead.
func name(w *worker) string {
	if w.killed {
		return coloured(w.number, "✗ "+w.String())
	}
	return coloured(w.number, "● "+w.String())
}

func queueRow(id, owner, pid, status, epoch string) string {
	return " " + text.AlignLeft.Apply(id, 5) + "  " + text.AlignLeft.Apply(owner, 10) + " " + text.AlignRight.Apply(pid, 7) +
		"  " + text.AlignLeft.Apply(status, 10) + " " + text.AlignRight.Apply(epoch, 5)
}

func (f frame) status(q queue) string {
	switch q.status {
	case "HELD":
		return q.status
	case "MOVING":
		if w := f.scene.crew.of(q.requester); w != nil {
			return text.FgYellow.Sprint("MOVING ") + coloured(w.number, fmt.Sprintf("→ %d", w.number))
		}
		return text.FgYellow.Sprint(q.status)
	}
	return text.FgHiRed.Sprint(q.status)
}

// workers gives each worker a line and a bar, which is full when one worker has settled all orders.
func (f frame) workers(width int) []string {
	lines := []string{text.Faint.Sprint(workerRow("WORKER", "OWNS", "SETTLED", "RATE"))}
	for _, w := range f.scene.workers {
		owns := string(w.state)
		if w.state == working {
			owns = plural(w.queues, "queue")
		}
		lines = append(lines, workerRow(name(w.worker), owns, count(w.settled), fmt.Sprintf("%.0f/s", w.rate)), bar(width, w))
	}
	return lines
}

func workerRow(name, owns, settled, rate string) string {
	return text.AlignLeft.Apply(name, 10) + " " + text.AlignLeft.Apply(owns, 8) + text.AlignRight.Apply(settled, 7) + text.AlignRight.Apply(rate, 7)
}

func (f frame) progress(width int) string {
	words := fmt.Sprintf(" %3d %%  %6s of %s  %5.0f/s", percent(f.scene.settled), count(f.scene.settled), count(orderCount), f.scene.rate)
	return " " + bar(width-len(words)-2, f.scene.workers...) + words
}

// bar shows the part that each worker has settled, side by side.
func bar(width int, workers ...actor) string {
	width = max(width, 0)
	var b strings.Builder
	settled, drawn := 0, 0
	for _, w := range workers {
		settled += w.settled
		to := min(settled*width/orderCount, width)
		b.WriteString(coloured(w.number, strings.Repeat("█", to-drawn)))
		drawn = to
	}
	return b.String() + text.Faint.Sprint(strings.Repeat("░", width-drawn))
}

// news returns the newest lines that have room.
func (f frame) news(room int) []string {
	told := f.told[max(0, len(f.told)-max(room, 0)):]
	lines := make([]string, len(told))
	for i, news := range told {
		lines[i] = " " + workerName.ReplaceAllStringFunc(news, func(name string) string {
			number, _ := strconv.Atoi(name[len("worker "):]) // the expression matches nothing else
			return coloured(number, name)
		})
	}
	return lines
}

var workerName = regexp.MustCompile(`worker \d+`)

// A colour for each worker. Red is for trouble.
var palette = []text.Color{text.FgCyan, text.FgMagenta, text.FgYellow, text.FgGreen}

func coloured(worker int, s string) string {
	if s == "" {
		return ""
	}
	return palette[(worker-1)%len(palette)].Sprint(s)
}

// spread puts right at the end of a line of that width.
func spread(left, right string, width int) string {
	return text.Pad(left, width-len(right)-1, ' ') + right
}

// line is lines[i], or nothing.
func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

func stamp(d time.Duration) string { return fmt.Sprintf("%5.1f s", d.Seconds()) }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
