package ops

import (
	"testing"
	"time"
)

// A window is closed if its next change is its opening, at every live worker.
func TestClosedWindow(t *testing.T) {
	t.Parallel()
	early, late := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 4, 0, 0, 0, time.UTC)
	closed, open := ServerRecord{NextRunStartTime: &early, NextRunEndTime: &late}, ServerRecord{NextRunStartTime: &late, NextRunEndTime: &early}
	silent := open
	silent.Overdue = true
	for name, test := range map[string]struct {
		servers []ServerRecord
		opens   time.Time
	}{
		"no worker":               {nil, time.Time{}},
		"no window":               {[]ServerRecord{{}}, time.Time{}},
		"a window without an end": {[]ServerRecord{{NextRunStartTime: &early}}, time.Time{}},
		"open":                    {[]ServerRecord{open}, time.Time{}},
		"open at one":             {[]ServerRecord{closed, open}, time.Time{}},
		"closed":                  {[]ServerRecord{closed, closed}, early},
		"open at a silent one":    {[]ServerRecord{silent, closed}, early},
		"only silent ones":        {[]ServerRecord{silent}, time.Time{}},
	} {
		if got := (rosterRows{servers: test.servers}).closedUntil(); !got.Equal(test.opens) {
			t.Errorf("%s: opens at %v, want %v", name, got, test.opens)
		}
	}
}
