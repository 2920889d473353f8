package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dutyrota/rota/internal/escape"
)

// Screen is the terminal that shows a table. The zero value is a pipe or a
// file, without limits or colours.
type Screen struct {
	Width, Height int // 0: no limit
	Color         bool
}

// ScreenOf returns the terminal that out is.
func ScreenOf(out io.Writer) Screen {
	if !IsTerminal(out) {
		return Screen{}
	}
	s := Screen{Width: 80, Height: 24, Color: os.Getenv("NO_COLOR") == ""}
	if w, h, err := term.GetSize(int(out.(*os.File).Fd())); err == nil && w > 0 {
		s.Width, s.Height = w, h
	}
	return s
}

// Wrap escapes a text and wraps it at blanks.
func (s Screen) Wrap(line string) string {
	if line = escape.Text(line); s.Width == 0 {
		return line
	}
	lines := strings.Split(text.WrapSoft(line, max(s.Width, 20)), "\n")
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
	"REMOVING": transient, "RESIZING": transient, "RETRY": transient, "NOTE": transient,
	"OVERDUE": bad, "FAILING": bad, "UNSERVED": bad, "ORPHAN": bad, "UNASSIGNED": bad, "DEAD": bad,
	"PROBLEM": bad, "EXPIRED": bad,
	"FENCED": bad, "FORCED": bad, "ALERT": bad, "UNREACHABLE": bad, "FENCE_WAIT": transient,
}

// Paint colours a state within a text by what the state means, if the screen has colours.
func (s Screen) Paint(text, state string) string {
	if color := meanings[state]; s.Color && color != "" {
		return strings.Replace(text, state, color+state+noColor, 1)
	}
	return text
}

// Alarm colours a text that says that something is wrong, if the screen has colours.
func (s Screen) Alarm(text string) string {
	if s.Color {
		return bad + text + noColor
	}
	return text
}

// errNotConfirmed is returned for an answer other than yes.
var errNotConfirmed = errors.New("not confirmed; nothing was changed")

// CanAsk reports whether the command can ask a question.
func CanAsk(cmd *cobra.Command) bool { return IsTerminal(cmd.InOrStdin()) }

// Confirm asks on the terminal whether to go on, below a preview. Without a terminal it refuses. action says what the
// command is about to do, such as "delete the trigger nightly".
func Confirm(cmd *cobra.Command, preview func(Screen) string, action string) error {
	if !CanAsk(cmd) {
		return Usage(fmt.Errorf("%s: not confirmed: add --yes, as there is no terminal to ask on", action))
	}
	out := cmd.ErrOrStderr()
	if !askYes(cmd.InOrStdin(), out, preview(ScreenOf(out))+"\nContinue? [y/N] ") {
		return fmt.Errorf("%s: %w", action, errNotConfirmed)
	}
	return nil
}

func askYes(in io.Reader, out io.Writer, question string) bool {
	fmt.Fprint(out, question) //nolint:errcheck // an unanswered question is a no
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		fmt.Fprintln(out) //nolint:errcheck // Ctrl-D leaves the cursor behind the question
		return false
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// IsTerminal reports whether a reader or a writer is a terminal.
func IsTerminal(out any) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
