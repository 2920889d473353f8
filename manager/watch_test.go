package manager

import (
	"testing"
	"time"
)

// S7: when a server may expire others.
func TestWatch(t *testing.T) {
	const judgeDead = 10 * time.Second
	type beat struct{ db, local time.Duration } // since the heartbeat before
	steady := func(n int) (beats []beat) {
		for range n {
			beats = append(beats, beat{2 * time.Second, 2 * time.Second})
		}
		return beats
	}
	second := time.Second
	cases := map[string]struct {
		beats []beat
		may   bool
	}{
		"not before a whole interval":       {steady(4), false},
		"after a whole interval":            {steady(5), true},
		"a gap restarts the watch":          {append(steady(5), beat{5 * second, 5 * second}), false},
		"the database's clock was stepped":  {append(steady(5), beat{602 * second, 2 * second}), false},
		"the database's clock was set back": {append(steady(5), beat{-598 * second, 2 * second}), false},
		"our own clock was stepped":         {append(steady(5), beat{2 * second, 4 * second}), false},
		"a small difference does not count": {append(steady(5), beat{2 * second, 2*second + 900*time.Millisecond}), true},
		"a whole interval after the gap":    {append(append(steady(5), beat{5 * second, 5 * second}), steady(5)...), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := watch{intervals: intervals{2 * time.Second, judgeDead}}
			db, local := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Now()
			w.observe(db, local)
			for _, b := range c.beats {
				db, local = db.Add(b.db), local.Add(b.local)
				w.observe(db, local)
			}
			if w.mayExpire() != c.may {
				t.Fatalf("may expire: %v, want %v", !c.may, c.may)
			}
		})
	}
}
