package plan

import (
	"fmt"
	"testing"
	"time"
)

func TestShort(t *testing.T) {
	part, err := Run(t.Context(), Short)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range part.Data.(Data).Loads {
		if r.Before <= 1.15 || r.After > 1.15 || r.Took > time.Minute || r.Moves < r.Least || r.Later > 0 {
			t.Errorf("%+v", r)
		}
	}
	for _, r := range part.Data.(Data).Changes {
		beats := float64(r.Took) / float64(Short.Heartbeat)
		if r.Moves != r.Minimum || r.Moves == 0 || beats > 3 || beats <= 0 || len(r.Plans) == 0 {
			t.Errorf("%+v", r)
		}
	}
}

// The same seed gives the same run, and in the end the roster is balanced.
func TestRosterIsRepeatable(t *testing.T) {
	play := func(seed uint64) string {
		o := Short
		o.Seed, o.instant = seed, true
		r := newRoster(o)
		r.joins(3)
		r.deaths(2)
		for uuid, n := range r.rows.Owned() {
			if s := r.servers[uuid]; s == nil || s.dead || n < 9 || n > 10 {
				t.Errorf("%s has %d of 100 queues, with 11 servers", uuid, n)
			}
		}
		return fmt.Sprint(r.moves, r.now, r.rows.Owned())
	}
	if a, b := play(7), play(7); a != b {
		t.Errorf("the same seed gives\n%s\n%s", a, b)
	}
	if play(7) == play(8) {
		t.Error("two seeds give the same result")
	}
}
