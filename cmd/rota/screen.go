package main

import (
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/dutyrota/rota/internal/escape"
)

// screen is the terminal that shows a table. The zero value is a pipe or a
// file, without limits or colours.
type screen struct {
	width, height int // 0: no limit
	color         bool
}

func screenOf(out io.Writer) screen {
	if !isTerminal(out) {
		return screen{}
	}
	s := screen{width: 80, height: 24, color: os.Getenv("NO_COLOR") == ""}
	if w, h, err := term.GetSize(int(out.(*os.File).Fd())); err == nil && w > 0 {
		s.width, s.height = w, h
	}
	return s
}

// wrap escapes a text and wraps it at blanks.
func (s screen) wrap(line string) string {
	if line = escape.Text(line); s.width == 0 {
		return line
	}
	lines := strings.Split(text.WrapSoft(line, max(s.width, 20)), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ") // WrapSoft fills them
	}
	return strings.Join(lines, "\n")
}

// The colours, by meaning.
const (
	good      = "\x1b[32m"
	transient = "\x1b[33m" // changes by itself, or is intended
	bad       = "\x1b[31m"
	noColor   = "\x1b[0m"
)

var meanings = map[string]string{
	"HELD": good, "SERVING": good, "OK": good, "RUNNING": good, "SUCCESS": good, "DONE": good, "ACTIVE": good,
	"WAITING": transient, "READY": transient, "PENDING": transient, "CANCELLED": transient, "SKIPPED": transient,
	"FAILED": bad, "DEPENDENT_FAILED": bad, "ERROR": bad,
	"MOVING": transient, "STANDBY": transient, "PAUSED": transient, "DRAINING": transient, "LEAVING": transient,
	"REMOVING": transient, "RETRY": transient, "NOTE": transient,
	"OVERDUE": bad, "FAILING": bad, "ORPHAN": bad, "UNASSIGNED": bad, "DEAD": bad, "PROBLEM": bad, "EXPIRED": bad,
	"FENCED": bad, "FORCED": bad, "ALERT": bad,
}

// byMeaning colours a state.
func byMeaning[T any](_ T, cell string) string {
	if color := meanings[cell]; color != "" {
		return color + cell + noColor
	}
	return cell
}

// badUnlessZero colours a number that should be 0.
func badUnlessZero[T any](_ T, cell string) string {
	if cell == "0" || cell == "" {
		return cell
	}
	return bad + cell + noColor
}
