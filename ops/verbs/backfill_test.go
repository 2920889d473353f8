package verbs

import (
	"testing"
	"time"
	_ "time/tzdata" // as the commands have it
)

// A day begins with its first instant, also where the clock skips midnight: the hour before is one of the day before.
func TestDayWithoutMidnight(t *testing.T) {
	for zone, want := range map[string]string{
		"America/Santiago": "2026-09-06T01:00:00-03:00",
		"Europe/Berlin":    "2026-09-06T00:00:00+02:00",
	} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		if at, err := readSlot("from", "2026-09-06", loc); err != nil || at.Format(time.RFC3339) != want {
			t.Errorf("the day begins in %s at %s, %v, want %s", zone, at.Format(time.RFC3339), err, want)
		}
	}
}
