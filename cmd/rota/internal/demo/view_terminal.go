package demo

import (
	"os"
	"strings"

	"golang.org/x/term"
)

// terminalView draws each scene over the one before, on the terminal's other screen: it survives any change of the
// window's size, and what the user had on the screen comes back.
type terminalView struct {
	screen   *os.File
	headline string
	told     []string // all news so far
	last     scene
	closed   bool
}

// The few sequences that every terminal has understood for decades.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the other screen, without cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	eraseLine   = "\x1b[K" // from here on
	eraseBelow  = "\x1b[J"
)

func newTerminalView(screen *os.File, headline string) *terminalView {
	v := &terminalView{screen: screen, headline: headline}
	v.write(enterScreen)
	return v
}

func (v *terminalView) show(s scene) {
	for _, news := range s.news {
		v.told = append(v.told, stamp(s.elapsed)+"  "+news)
	}
	v.last = s
	// The end of the last line is not written: that would scroll.
	v.write(home + strings.Join(v.frame(), eraseLine+"\r\n") + eraseLine + eraseBelow)
}

// close gives the user's screen back and leaves the last frame on it.
func (v *terminalView) close() {
	if v.closed {
		return
	}
	v.closed = true
	v.write(leaveScreen + strings.Join(v.frame(), "\n") + "\n\n")
}

func (v *terminalView) frame() []string {
	width, height, err := term.GetSize(int(v.screen.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	return frame{v.headline, v.last, v.told}.lines(width, height)
}

func (v *terminalView) write(s string) { _, _ = v.screen.WriteString(s) } // see view
