package cli

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Into a pipe, progress is a line each 30 s, with the time that is left.
func TestProgressIntoAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := NewProgress(&out)
		for i := range int64(65) {
			time.Sleep(time.Second)
			p.Show("working", i+1, 130)
		}
		p.Show("working", 0, 0)
		p.Clear()
		p.Show("news", 0, 0)
		if want := "working; 23 %; about 1m40s left\nworking; 46 %; about 1m10s left\nnews\n"; out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	})
}

// Work tells for how long it has gone on, and how much time is left if it knows its parts.
func TestDuring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		failed := errors.New("failed")
		err := During(&out, "upgrading the tables", 0, func(func()) error {
			time.Sleep(70 * time.Second)
			return failed
		})
		if want := "upgrading the tables for 30s\nupgrading the tables for 1m0s\n"; !errors.Is(err, failed) || out.String() != want {
			t.Errorf("got %q (%v), want %q", out.String(), err, want)
		}
		out.Reset()
		err = During(&out, "upgrading", 4, func(did func()) error {
			for range 4 {
				time.Sleep(10500 * time.Millisecond)
				did()
			}
			return nil
		})
		if want := "upgrading for 30s; 50 %; about 30s left\n"; err != nil || out.String() != want {
			t.Errorf("got %q (%v), want %q", out.String(), err, want)
		}
	})
}
