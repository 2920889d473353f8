package cron

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fuzzLimit is far more than an input takes, unless its search has no bound.
const fuzzLimit = 20 * time.Second

// fuzzInstant maps any number to an instant from 1900 to 2199.
func fuzzInstant(at int64) time.Time {
	const from, seconds = -2208988800, 300 * 31556952
	return time.Unix(from+int64(uint64(at)%seconds), 0)
}

func limit(t rapid.TB, began time.Time) {
	t.Helper()
	if d := time.Since(began); d > fuzzLimit {
		t.Errorf("took %s", d)
	}
}

// An expression is accepted or refused in one line, and what it finds is after or before the instant, and fires.
func FuzzExpr(f *testing.F) {
	for _, expr := range []string{
		"0 0 2 * * ?", "0 0 0 29 2 ? 2100", "0 0 0 LW * ?", "0 0 0 ? * 6#5", "0 0 0 ? 2 2#5", "*/7 1-5/2 0,5 L-3 JAN-MAR ?", "0 0 0 31 4 ?",
		"@daily", "0 0 0 ? * SUN 1970-2199/400", "59 59 23 31 12 ? 2099", "0 30 2 ? 3 1L", "0 0 0 15W 2 ?", "* * * * * ?", "0 0 0 1 1 ? 2199",
	} {
		f.Add(expr, "Europe/Berlin", int64(3908988800))
		f.Add(expr, "Australia/Lord_Howe", int64(0))
		f.Add(expr, "", int64(-1))
	}
	f.Fuzz(func(t *testing.T, text, zone string, at int64) {
		defer limit(t, time.Now())
		loc, err := LoadZone(zone)
		if err != nil {
			loc = time.UTC
		}
		e, err := Parse(text, loc)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %v", err)
			}
			return
		}
		from := fuzzInstant(at)
		next := e.Next(from)
		if !next.IsZero() && (!next.After(from) || !e.Prev(next).Equal(next)) {
			t.Errorf("%q in %s: after %s comes %s, and by then %s", text, loc, from, next, e.Prev(next))
		}
		prev := e.Prev(from)
		if !prev.IsZero() && (prev.After(from) || !e.Next(prev.Add(-1)).Equal(prev)) {
			t.Errorf("%q in %s: by %s comes %s, and after its eve %s", text, loc, from, prev, e.Next(prev.Add(-1)))
		}
	})
}

// The state of a window is consistent at each instant.
func FuzzWindow(f *testing.F) {
	f.Add("0 0 2 * * ?", "0 0 3 * * ?", "Europe/Berlin", int64(3908988800))
	f.Add("startrun:0 0 2 * * ?", "-1", "", int64(3908988800))
	f.Add("* * * * * ?", "0 0 0 29 2 ?", "", int64(3908988800))
	f.Add("0 0 0 29 2 ? 2096", "0 0 0 29 2 ? 2092", "UTC", int64(0))
	f.Add("startrun:0 0 0 ? * MON", "0 0 0 ? * TUE", "America/New_York", int64(-1))
	f.Add("", "", "Asia/Kathmandu", int64(1))
	f.Fuzz(func(t *testing.T, start, end, zone string, at int64) {
		defer limit(t, time.Now())
		w, err := ParseWindow(start, end, zone)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %v", err)
			}
			return
		}
		now := fuzzInstant(at)
		for _, s := range []WindowState{w.At(now), w.From(now.Add(-time.Hour)).At(now)} {
			past := s.Since.After(now) || (!s.NextStart.IsZero() && !s.NextStart.After(now)) || (!s.NextEnd.IsZero() && !s.NextEnd.After(now))
			if past || s.OpenEnded && !s.Open || !s.Open && !s.Since.IsZero() {
				t.Errorf("%q to %q in %q at %s: %+v", start, end, zone, now, s)
			}
		}
	})
}
