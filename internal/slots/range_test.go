package slots

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Range finds the slots that enumerating finds, in both directions, and goes on from any of them.
func TestRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchedule(t)
		from := drawTime(t, "from")
		to := from.Add(time.Duration(rapid.Int64Range(-1, int64(10*time.Minute)).Draw(t, "for")))
		var want []time.Time
		for at := s.Next(from.Add(-1)); !at.IsZero() && at.Before(to); at = s.Next(at) {
			want = append(want, at)
		}
		if got := slices.Collect(Range(s, from, to, false)); !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Fatalf("Range = %v, want %v", got, want)
		}
		backwards := slices.Collect(Range(s, from, to, true))
		slices.Reverse(backwards)
		if !slices.EqualFunc(backwards, want, time.Time.Equal) {
			t.Fatalf("Range backwards = %v, want %v", backwards, want)
		}
		for i, at := range want {
			if rest := slices.Collect(Range(s, at, to, false)); len(rest) != len(want)-i {
				t.Fatalf("Range from slot %d finds %d slots, want %d", i, len(rest), len(want)-i)
			}
			if rest := slices.Collect(Range(s, from, at.Add(1), true)); len(rest) != i+1 {
				t.Fatalf("Range backwards from slot %d finds %d slots, want %d", i, len(rest), i+1)
			}
		}
	})
}
