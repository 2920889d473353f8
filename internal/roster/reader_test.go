package roster

import (
	"math"
	"testing"
	"time"
)

// load_moves_per_hour is a budget that fills up again within an hour. Values that only an edit by hand can make
// neither stop it nor a plan.
func TestMovesLeft(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name    string
		perHour int
		until   time.Time
		want    int
	}{
		{"nothing has moved", 60, time.Time{}, 60},
		{"the last moves are over", 60, now.Add(-time.Minute), 60},
		{"two moves count", 60, now.Add(2 * time.Minute), 58},
		{"a move counts in part", 60, now.Add(90 * time.Second), 58},
		{"all are used up", 60, now.Add(time.Hour), 0},
		{"the setting was lowered", 2, now.Add(10 * time.Minute), 1},
		{"the setting was raised", 600, now.Add(10 * time.Minute), 500},
		{"the clock was set back", 60, now.Add(25 * time.Hour), 0},
		{"by hand: no moves", 0, time.Time{}, 1},
		{"by hand: less than none", -5, time.Time{}, 1},
		{"by hand: too many", math.MaxInt64, time.Time{}, maxMoves},
	} {
		if got := movesLeft(c.perHour, now, c.until); got != c.want {
			t.Errorf("%s: %d moves are left, want %d", c.name, got, c.want)
		}
	}
}
