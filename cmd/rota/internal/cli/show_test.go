package cli

import (
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

// A picture of a watch fits into the screen, whatever the names in it are. Otherwise the screen would scroll at each
// picture, and lose its head.
func TestPicturesOfAWatchFit(t *testing.T) {
	t.Parallel()
	row := func(name string) Row {
		return Row{Text("TASK", name), State("STATE", "SERVING"), Text("HEARTBEAT", "1.0s").Drop(1)}
	}
	for _, s := range []Screen{{Width: 40, Height: 12}, {Width: 40, Height: 12, Color: true}, {Width: 10, Height: 6}} {
		table := Render(s, []string{"settle", strings.Repeat("名", 33), strings.Repeat("a ", 40), "4", "5", "6", "7", "8", "9"}, row)
		lines := s.picture("rota task list, every 2s, at 15:04:05Z; Ctrl-C ends it", table)
		if len(lines) >= s.Height || !strings.HasPrefix(lines[0], "rota task") {
			t.Errorf("%+v: %d lines, the first is %q", s, len(lines), lines[0])
		}
		for _, line := range lines {
			if text.StringWidthWithoutEscSequences(line) > s.Width {
				t.Errorf("%+v: %q is too wide", s, line)
			}
		}
	}
}
