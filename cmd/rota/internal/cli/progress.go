package cli

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
)

// TellEvery is how often a command that works or waits says into a pipe how far it is.
const TellEvery = 30 * time.Second

// Progress says how far a command is: on a terminal in a line that it writes over again and again, and into a pipe in a
// line each TellEvery.
type Progress struct {
	out         io.Writer
	begun, told time.Time
	shown       bool // on a terminal
}

// NewProgress returns the progress of work that begins now.
func NewProgress(out io.Writer) *Progress {
	now := time.Now()
	return &Progress{out: out, begun: now, told: now}
}

// Show says how far the work is, with the time that is left if it goes on as it has begun. A total of 0 is not known.
func (p *Progress) Show(line string, done, total int64) {
	now := time.Now()
	if left := Left(now.Sub(p.begun), done, total); left != "" {
		line += fmt.Sprintf("; %d %%%s", 100*done/total, left)
	}
	line = escape.Text(line)
	if s := ScreenOf(p.out); s.Width > 0 {
		s.Redraw(p.out, line)
		p.shown = true
	} else if now.Sub(p.told) >= TellEvery {
		p.told = now
		fmt.Fprintln(p.out, line) //nolint:errcheck // the result of the command is what counts
	}
}

// During does work and says for how long it has gone on. The work calls did after each of its parts. A total of 0 parts
// means that it cannot tell how far it is.
func During(out io.Writer, what string, total int, work func(did func()) error) error {
	var done atomic.Int64
	p, ended := NewProgress(out), make(chan error, 1)
	go func() { ended <- work(func() { done.Add(1) }) }()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case err := <-ended:
			p.Clear()
			return err
		case now := <-second.C:
			p.Show(fmt.Sprintf("%s for %s", what, now.Sub(p.begun).Round(time.Second)), done.Load(), int64(total))
		}
	}
}

// Clear erases the line from a terminal. The next line into a pipe comes at once.
func (p *Progress) Clear() {
	p.told = time.Time{}
	if p.shown {
		ScreenOf(p.out).Redraw(p.out, "")
	}
}

// Redraw writes over the line of the cursor on a terminal. The line must be escaped.
func (s Screen) Redraw(out io.Writer, line string) {
	if s.Width > 0 {
		fmt.Fprint(out, "\r"+text.Snip(line, s.Width-1, "…")+"\x1b[K") //nolint:errcheck // the next output returns the error
	}
}

// Left says how long work still takes that has done so much of a total in a time; it returns "" if that is not known.
func Left(took time.Duration, done, total int64) string {
	if done <= 0 || done >= total {
		return ""
	}
	return fmt.Sprintf("; about %s left", human.Age(took.Seconds()*float64(total-done)/float64(done)))
}
