package demo

import (
	"io"
	"os"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// view shows scenes as they come. It is used by one goroutine. Writing to a reader that is gone is the command's to
// notice, as SIGPIPE.
type view interface {
	show(scene)
	close() // ends the view; closing again does nothing
}

// newView is a live view on a terminal that takes it, and lines anywhere else.
func newView(out io.Writer, plain bool, headline string) view {
	screen, ok := out.(*os.File)
	if plain || !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(screen.Fd())) {
		text.DisableColors() // of the proof, too
		return newPlainView(out, headline)
	}
	return newTerminalView(screen, headline)
}
