package doctor

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/condition"
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

// A window that opens within a week is as it should be; a note all day would hide the others.
func TestOnlyAFarWindowIsANote(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	for opens, want := range map[time.Duration]string{
		time.Hour: condition.OK, 7 * 24 * time.Hour: condition.OK, 8 * 24 * time.Hour: condition.Note,
	} {
		from, to := now.Add(opens), now.Add(opens+time.Hour)
		d := serverCheck{&diagnosis{task: "settle"}}
		d.window(rosterRows{servers: []ops.ServerRecord{{Now: now, NextRunStartTime: &from, NextRunEndTime: &to}}})
		if len(d.findings) != 1 || d.findings[0].Status != want {
			t.Errorf("it opens in %s: %+v, want one finding with the status %s", opens, d.findings, want)
		}
	}
}
