package cli

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

// An answer of one line is wrapped at blanks, so that a terminal does not break it inside a word.
func TestAnswersAreWrapped(t *testing.T) {
	t.Parallel()
	line := "settle$BASE: the number of queues changes from 4 to 12 as soon as all workers have drained for it"
	want := "settle$BASE: the number of queues\nchanges from 4 to 12 as soon as all\nworkers have drained for it"
	if got := (Screen{Width: 40}).Wrap(line); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := (Screen{}).Wrap(line); got != line {
		t.Errorf("a pipe gets %q", got)
	}
}
