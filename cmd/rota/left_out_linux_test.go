package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/internal/testdb"
)

// resize sets the size of the terminal.
func (term terminal) resize(t *testing.T, rows, columns uint16) {
	t.Helper()
	size := [4]uint16{rows, columns}
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, term.keyboard.Fd(), syscall.TIOCSWINSZ, uintptr(unsafe.Pointer(&size))); errno != 0 {
		t.Fatal(errno)
	}
}

// Lists fit terminals of 80 and of 120 columns. With 80, the list of servers says what it left out.
func TestListsOnNarrowTerminals(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	for _, columns := range []uint16{80, 120} {
		for _, command := range []string{"task list", "worker list", "queue list", "event list", "top --once"} {
			term := newTerminal(t)
			term.resize(t, 24, columns)
			shown := term.shown(t, func(screen *os.File) {
				cmd := rota(t.Context(), s.dir, append(strings.Fields(command), "--database", s.url)...)
				cmd.Stdout, cmd.Stderr = screen, screen
				if err := cmd.Run(); err != nil {
					t.Error(err)
				}
			})
			plain := strings.ReplaceAll(shown, "\r", "")
			if text.LongestLineLen(plain) > int(columns) {
				t.Errorf("rota %s is %d wide on a terminal of %d:\n%s", command, text.LongestLineLen(plain), columns, plain)
			}
			if command == "worker list" && columns == 80 && !strings.Contains(plain, "Left out: REQUESTED, AWAITED, HUNG, WEIGHT, CALLS") {
				t.Errorf("rota %s at %s columns does not say what it left out:\n%s", command, strconv.Itoa(int(columns)), plain)
			}
		}
	}
}
