package stage

import "testing"

func TestFewestMoves(t *testing.T) {
	for _, c := range []struct {
		held map[string]int
		now  []string
		want int64
	}{
		{map[string]int{"a": 4}, []string{"a", "b"}, 2},
		{map[string]int{"a": 3, "b": 2}, []string{"a", "b"}, 0},
		{map[string]int{"a": 2, "b": 2}, []string{"a"}, 2},
		{map[string]int{"a": 3, "b": 1}, []string{"a", "b"}, 1},
		{map[string]int{"a": 4, "b": 3}, []string{"a", "b", "c"}, 2},
	} {
		if got := FewestMoves(c.held, c.now); got != c.want {
			t.Errorf("%v over %v: %d moves, want %d", c.held, c.now, got, c.want)
		}
	}
}
