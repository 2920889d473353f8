package main

import (
	"io"
	"strings"
	"testing"
)

func TestOnlyYesConfirms(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"y\n": true, " YES \n": true, "n\n": false, "\n": false, "yes, please\n": false, "y": false, "": false} {
		if got := askYes(strings.NewReader(answer), io.Discard, "Continue?"); got != want {
			t.Errorf("%q: %t, want %t", answer, got, want)
		}
	}
}
