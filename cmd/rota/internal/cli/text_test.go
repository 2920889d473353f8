package cli

import (
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0.0s": 0, "1.3s": 1300 * time.Millisecond, "42s": 42 * time.Second, "3m": 3 * time.Minute, "3m5s": 185 * time.Second,
		"2h": 2 * time.Hour, "2h10m": 130 * time.Minute, "4d3h": 99 * time.Hour,
	} {
		seconds := d.Seconds()
		if got := AgeText(&seconds); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
	if AgeText(nil) != "-" {
		t.Error("a missing age must be -")
	}
}
