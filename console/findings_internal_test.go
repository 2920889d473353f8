package console

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/condition"
)

// A finding is dated by the checks that are the first to have it, if the checks before were not long ago: nothing is
// checked while nobody looks.
func TestFindingsAreDated(t *testing.T) {
	t.Parallel()
	start := time.Now()
	s := newFirstSeen()
	for _, step := range []struct {
		after time.Duration // since the start
		kind  string        // what is found; empty: nothing
		want  time.Duration // since the start; -1: not known
	}{
		{0, "OLD", -1},
		{time.Second, "OLD", -1},
		{2 * time.Second, "", -1},
		{4 * time.Second, "NEW", 4 * time.Second},
		{6 * time.Second, "NEW", 4 * time.Second},
		{8 * time.Hour, "NEW", 4 * time.Second},
		{8*time.Hour + time.Second, "", -1},
		{20 * time.Hour, "OVERNIGHT", -1},
		{20*time.Hour + time.Second, "OVERNIGHT", -1},
	} {
		var found []condition.Condition
		if step.kind != "" {
			found = []condition.Condition{{Kind: step.kind}}
		}
		s.date(found, start.Add(step.after))
		var want time.Time
		if step.want >= 0 {
			want = start.Add(step.want)
		}
		if found != nil && !found[0].Since.Equal(want) {
			t.Errorf("%s after %s: since %v, want %v", step.kind, step.after, found[0].Since, want)
		}
	}
}
