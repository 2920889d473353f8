package program

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A worker that is the first process of a container keeps no dead process that a program has started. Here a process
// that adopts orphans, as that one does, stands for it.
func TestFirstProcessCollectsTheDead(t *testing.T) {
	adopt := func(on uintptr) {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, on, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	adopt(1)
	defer adopt(0)
	c, _ := newCommand(t)
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	var child string
	go func() {
		defer cancel()
		eventually(t, "the grandchild runs", func() bool {
			text, _ := os.ReadFile(file)
			child = strings.TrimSpace(string(text))
			return child != ""
		})
	}()
	if _, err := c.Ask(ctx, batch("child "+file)); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that of the context", err)
	}
	eventually(t, "the grandchild is gone", func() bool {
		_, err := os.Stat("/proc/" + child)
		return errors.Is(err, os.ErrNotExist)
	})
}
