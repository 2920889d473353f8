package escape

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	a, b := errors.New("a\nA"), errors.New("b")
	joined := errors.Join(a, b)
	for _, test := range []struct {
		err  error
		want []string
	}{
		{a, []string{`a\nA`}},
		{joined, []string{`a\nA`, "b"}},
		{errors.Join(joined, b), []string{`a\nA`, "b", "b"}},
		{fmt.Errorf("file\n: %w (of it)", joined), []string{`file\n: a\nA (of it)`, `file\n: b (of it)`}},
		{fmt.Errorf("two: %w, %w", a, b), []string{`two: a\nA, b`}},
		{errors.Join(fmt.Errorf("x: %w", joined), b), []string{`x: a\nA`, "x: b", "b"}},
	} {
		if got := Errors(test.err); !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.err, got, test.want)
		}
	}
}
