package doctor

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/ops"
)

// A window is closed if its next change is its opening, at every live worker.
func TestClosedWindow(t *testing.T) {
	t.Parallel()
	early, late := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 4, 0, 0, 0, time.UTC)
	closed, open := ops.ServerRecord{NextRunStartTime: &early, NextRunEndTime: &late}, ops.ServerRecord{NextRunStartTime: &late, NextRunEndTime: &early}
	silent := open
	silent.Overdue = true
	for name, test := range map[string]struct {
		servers []ops.ServerRecord
		opens   time.Time
	}{
		"no worker":               {nil, time.Time{}},
		"no window":               {[]ops.ServerRecord{{}}, time.Time{}},
		"a window without an end": {[]ops.ServerRecord{{NextRunStartTime: &early}}, time.Time{}},
		"open":                    {[]ops.ServerRecord{open}, time.Time{}},
		"open at one":             {[]ops.ServerRecord{closed, open}, time.Time{}},
		"closed":                  {[]ops.ServerRecord{closed, closed}, early},
		"open at a silent one":    {[]ops.ServerRecord{silent, closed}, early},
		"only silent ones":        {[]ops.ServerRecord{silent}, time.Time{}},
	} {
		if got := (rosterRows{servers: test.servers}).closedUntil(); !got.Equal(test.opens) {
			t.Errorf("%s: opens at %v, want %v", name, got, test.opens)
		}
	}
}
