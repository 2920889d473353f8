package cron

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/racetest"
)

func window(t testing.TB, start, end, zone string) *Window {
	t.Helper()
	w, err := ParseWindow(start, end, zone)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// show formats a state as "open since ..., next ..., end ...", with local times.
func show(s WindowState) string {
	text := "closed"
	switch {
	case s.OpenEnded:
		text = "open until drained"
	case s.Open:
		text = "open"
	}
	for _, part := range []struct {
		name string
		at   time.Time
	}{{"since", s.Since}, {"start", s.NextStart}, {"end", s.NextEnd}} {
		if !part.at.IsZero() {
			text += fmt.Sprintf(", %s %s", part.name, part.at.Format("02 15:04:05"))
		}
	}
	return text
}

const noon = "2026-08-01 12:00:00 +02:00"

// windowCases are states of windows, mostly where a clock changes.
var windowCases = []struct {
	name, start, end, zone string
	now, want              string
}{
	{"no start", "", "", berlin, noon, "open"},
	{"no start, TBSchedule's -1", " ", "-1", berlin, noon, "open"},

	{"before", "0 0 13 * * ?", "0 0 15 * * ?", berlin, noon, "closed, start 01 13:00:00, end 01 15:00:00"},
	{"within", "0 0 11 * * ?", "0 0 15 * * ?", berlin, noon, "open, since 01 11:00:00, start 02 11:00:00, end 01 15:00:00"},
	{"after", "0 0 9 * * ?", "0 0 11 * * ?", berlin, noon, "closed, start 02 09:00:00, end 02 11:00:00"},
	{"at the start", "0 0 12 * * ?", "0 0 15 * * ?", berlin, noon, "open, since 01 12:00:00, start 02 12:00:00, end 01 15:00:00"},
	{"at the end", "0 0 9 * * ?", "0 0 12 * * ?", berlin, noon, "closed, start 02 09:00:00, end 02 12:00:00"},
	{"UTC", "0 0 9 * * ?", "0 0 11 * * ?", "", noon, "open, since 01 09:00:00, start 02 09:00:00, end 01 11:00:00"},
	{"over midnight, before it", "0 0 10 * * ?", "0 0 3 * * ?", berlin, noon, "open, since 01 10:00:00, start 02 10:00:00, end 02 03:00:00"},
	{"over midnight, after it", "0 0 22 * * ?", "0 0 13 * * ?", berlin, noon, "open, since 31 22:00:00, start 01 22:00:00, end 01 13:00:00"},
	{"over midnight, closed", "0 0 22 * * ?", "0 0 3 * * ?", berlin, noon, "closed, start 01 22:00:00, end 02 03:00:00"},
	{"seconds", "59 59 11 * * ?", "1 0 12 * * ?", berlin, noon, "open, since 01 11:59:59, start 02 11:59:59, end 01 12:00:01"},
	{"over a weekend", "0 0 20 ? * FRI", "0 0 6 ? * MON", berlin, noon, "open, since 31 20:00:00, start 07 20:00:00, end 03 06:00:00"},
	{"a start in an open window does not count", "0 0 * * * ?", "0 30 9 * * ?", berlin, noon, "open, since 01 10:00:00, start 02 10:00:00, end 02 09:30:00"},
	{"an end in a closed window does not count", "0 0 10 * * ?", "0 30 * * * ?", berlin, noon, "closed, start 02 10:00:00, end 02 10:30:00"},
	{"a start that is an end opens nothing", "0 0 11,12 * * ?", "0 0 12,15 * * ?", berlin, noon, "closed, start 02 11:00:00, end 02 12:00:00"},
	{"it never ended", "0 0 11 * * ?", "0 0 9 * * ? 2030", berlin, noon, "open, since 01 11:00:00, start 01 11:00:00, end 01 09:00:00"},
	{"it never ends again", "0 0 11 * * ?", "0 0 9 * * ? 2025", berlin, noon, "open, since 31 11:00:00"},
	{"it never opens again", "0 0 11 * * ? 2025", "0 0 15 * * ?", berlin, noon, "closed"},

	{"open end", "0 0 11 * * ?", "", berlin, noon, "open until drained, since 01 11:00:00, start 02 11:00:00"},
	{"open end, -1", "0 0 13 * * ?", "-1", berlin, noon, "open until drained, since 31 13:00:00, start 01 13:00:00"},
	{"open end, before the first start", "0 0 13 * * ? 2026", "-1", berlin, "2025-08-01 12:00:00 +02:00", "closed, start 01 13:00:00"},

	{"spring: the start is in the gap", "0 30 2 * * ?", "0 0 4 * * ?", berlin, "2026-03-29 03:00:00 +02:00", "open, since 29 03:00:00, start 30 02:30:00, end 29 04:00:00"},
	{"spring: the end is in the gap", "0 0 1 * * ?", "0 30 2 * * ?", berlin, "2026-03-29 01:59:59 +01:00", "open, since 29 01:00:00, start 30 01:00:00, end 29 03:00:00"},
	{"spring: the whole window is in the gap", "0 15 2 * * ?", "0 45 2 * * ?", berlin, "2026-03-29 03:00:00 +02:00", "open, since 29 03:00:00, start 30 02:15:00, end 29 03:30:00"},
	{"spring: before the window in the gap", "0 15 2 * * ?", "0 45 2 * * ?", berlin, "2026-03-29 01:59:59 +01:00", "closed, start 29 03:00:00, end 29 03:30:00"},
	{"spring: at the end of the window in the gap", "0 15 2 * * ?", "0 45 2 * * ?", berlin, "2026-03-29 03:30:00 +02:00", "closed, start 30 02:15:00, end 30 02:45:00"},
	{"spring: the window ends with the gap", "0 30 2 * * ?", "0 0 3 * * ?", berlin, "2026-03-29 03:29:59 +02:00", "open, since 29 03:00:00, start 30 02:30:00, end 29 03:30:00"},
	{"spring: the break of a window is in the gap", "0 45 2 * * ?", "0 15 2 * * ?", berlin, "2026-03-29 03:00:00 +02:00", "open, since 28 02:45:00, start 30 02:45:00, end 30 02:15:00"},
	{"spring: the last of two windows in the gap", "0 10,40 2 * * ?", "0 20,45 2 * * ?", berlin, "2026-03-29 03:00:00 +02:00", "open, since 29 03:00:00, start 30 02:10:00, end 29 03:05:00"},
	{"spring: the window in the gap grows into the next", "0 0 2,3 * * ?", "0 50 2,3 * * ?", berlin, "2026-03-29 03:00:00 +02:00", "open, since 29 03:00:00, start 30 02:00:00, end 29 03:50:00"},
	{"spring: an interval starts where a window ends in the gap", "0 0 * * * ?", "0 30 2 * * ?", berlin, "2026-03-29 03:00:00 +02:00", "open, since 28 03:00:00, start 30 03:00:00, end 30 02:30:00"},
	{"autumn: open in the first of the two hours", "0 15 2 * * ?", "0 45 2 * * ?", berlin, "2026-10-25 02:30:00 +02:00", "open, since 25 02:15:00, start 26 02:15:00, end 25 02:45:00"},
	{"autumn: closed in the second", "0 15 2 * * ?", "0 45 2 * * ?", berlin, "2026-10-25 02:30:00 +01:00", "closed, start 26 02:15:00, end 26 02:45:00"},
	{"autumn: to the end of the second", "0 30 2 * * ?", "0 0 3 * * ?", berlin, "2026-10-25 02:10:00 +01:00", "open, since 25 02:30:00, start 26 02:30:00, end 25 03:00:00"},
	{"autumn: the quarters of each hour", "0 15 * * * ?", "0 30 * * * ?", berlin, "2026-10-25 02:20:00 +01:00", "open, since 25 02:15:00, start 25 03:15:00, end 25 02:30:00"},
}

func TestWindow(t *testing.T) {
	for _, tt := range windowCases {
		t.Run(tt.name, func(t *testing.T) {
			w := window(t, tt.start, tt.end, tt.zone)
			now := instant(t, tt.now)
			if diff := cmp.Diff(tt.want, show(w.At(now))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, show(w.From(now).At(now))); diff != "" {
				t.Errorf("without startrun, the start of the server opens no window (-want +got):\n%s", diff)
			}
		})
	}
}

// With startrun, the start of a server begins a window.
func TestStartRun(t *testing.T) {
	const (
		before = "2026-08-01 10:00:00"
		start  = "2026-08-01 12:00:00"
		after  = "2026-08-01 12:00:01"
	)
	tests := []struct {
		name, start, end string
		now, want        string
	}{
		{"not yet", "startrun:0 0 20 * * ?", "0 0 22 * * ?", before, "closed, start 01 20:00:00, end 01 22:00:00"},
		{"until the next end", "startrun:0 0 20 * * ?", "0 0 22 * * ?", start, "open, since 01 12:00:00, start 02 20:00:00, end 01 22:00:00"},
		{"until the end that comes first", "startrun: 0 0 20 * * ?", "0 0 10,15 * * ?", after, "open, since 01 12:00:00, start 01 20:00:00, end 01 15:00:00"},
		{"the next day it is as without startrun", "startrun:0 0 20 * * ?", "0 0 22 * * ?", "2026-08-02 12:00:01", "closed, start 02 20:00:00, end 02 22:00:00"},
		{"at an end", "startrun:0 0 20 * * ?", "0 0 12 * * ?", start, "closed, start 01 20:00:00, end 02 12:00:00"},
		{"within a window", "startrun:0 0 11 * * ?", "0 0 22 * * ?", after, "open, since 01 11:00:00, start 02 11:00:00, end 01 22:00:00"},
		{"before a window", "startrun:1 0 12 * * ?", "0 0 22 * * ?", after, "open, since 01 12:00:00, start 02 12:00:01, end 01 22:00:00"},
		{"open end", "startrun:0 0 20 * * ?", "-1", after, "open until drained, since 01 12:00:00, start 01 20:00:00"},
		{"open end, a start since", "startrun:1 0 12 * * ?", "-1", after, "open until drained, since 01 12:00:01, start 02 12:00:01"},
		{"open end, not yet", "startrun:0 0 20 * * ?", "-1", before, "open until drained, since 31 20:00:00, start 01 20:00:00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := window(t, tt.start, tt.end, "")
			got := show(w.From(instant(t, start)).At(instant(t, tt.now)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWindowRefused(t *testing.T) {
	tests := []struct{ start, end, zone, want string }{
		{"0 2 * * ?", "", "", `permit_run_start_time: cron "0 2 * * ?": has 5 fields`},
		{"startrun:", "", "", `permit_run_start_time: cron "": has 0 fields`},
		{"0 0 2 * * ?", "0 0 25 * * ?", "", `permit_run_end_time: cron "0 0 25 * * ?": hour "25" must be 0-23`},
		{"0 0 2 30 2 ?", "", "", "never fires"},
		{"", "0 0 4 * * ?", "", `permit_run_end_time ("0 0 4 * * ?") must be empty where permit_run_start_time is`},
		{"0 0 2 * * ?", "0 0 4 * * ?", "Local", `time_zone ("Local") must be a name`},
		{"0 0 2 * * ?", "0 0 2 * * ?", "", "must not fire at every permit_run_start_time"},
		{"startrun:@daily", "0 0 0 1-31 * ?", "", "must not fire at every"},
		{"0 0 2 ? * MON", "0 0 2,4 * * ?", "", "must not fire at every"},
		{"0 30 2 LW * ?", "0 0/10 * ? * MON-FRI", "", "must not fire at every"},
		{"0 0 0 29 2 ?", "0 0 0 L 2 ?", "", "must not fire at every"},
		{"0 0 0 1 1 ? 2027", "0 0 0 ? 1 * 2026-2028", "", "must not fire at every"},
	}
	for _, tt := range tests {
		t.Run(tt.start+" to "+tt.end, func(t *testing.T) {
			begun := time.Now()
			_, err := ParseWindow(tt.start, tt.end, tt.zone)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q in one line", err, tt.want)
			}
			limit(t, begun)
		})
	}
	for _, good := range [][2]string{
		{"0 0 2,3 * * ?", "0 0 2 * * ?"},
		{"0 0 0 L 2 ?", "0 0 0 28 2 ?"},
		{"0 0 0 29 2 ?", "0 0 0 ? 2 TUE-SUN"}, // but every 28 years
		{"0 0 0 ? * MON#1", "0 0 0 ? * TUE"},
		{"0 0 0 1 1 ?", "0 0 0 1 1 ? 2027"},
		{"0 0 0 1 1 ?", "0 0 0 1 1 ? 1970-2198"},
		{"1 0 2 * * ?", "0 0 2 * * ?"},
		{"0 1 2 * * ?", "0 0 2 * * ?"},
	} {
		window(t, good[0], good[1], "")
	}
}

// The state follows from the last start and the last end, and does not change before the instant that it names.
func TestWindowAgainstItsExpressions(t *testing.T) {
	racetest.Skip(t)
	times := rapid.SampledFrom([]string{
		"0 0 2 * * ?", "0 30 2 * * ?", "0 0 3 * * ?", "0 */20 1-3 * * ?", "0 15 * * * ?", "0 0/30 * * * ?", "0 0 0 ? * SUN", "* * 2 * * ?", "0 0 * 25 10 ?",
	})
	rapid.Check(t, func(t *rapid.T) {
		loc, change := drawChange(t)
		start, end := times.Draw(t, "start"), times.Draw(t, "end")
		w, err := ParseWindow(start, end, loc.String())
		if err != nil {
			t.Skip("never opens")
		}
		now := change.Add(time.Duration(rapid.Int64Range(-int64(30*time.Hour), int64(30*time.Hour)).Draw(t, "now")))
		open := func(at time.Time) bool { return w.At(at).Open }
		s := w.At(now)
		if end := w.end.Prev(now); s.Open != w.start.Prev(now).After(end) && !besideGap(w, end) {
			t.Fatalf("%s to %s at %v: %+v", start, end, now, s)
		}
		change, was := s.NextEnd, "open since "+s.Since.String()
		if !s.Open {
			change, was = s.NextStart, "closed"
		}
		if now = change.Add(-1); w.At(now).Open != s.Open || !w.At(now).Since.Equal(s.Since) {
			t.Fatalf("%s to %s: was %s, %v before the change it is %+v", start, end, was, now, w.At(now))
		}
		if s.Open && (w.At(s.NextEnd).Open || open(s.Since.Add(-1)) || !open(s.Since)) {
			t.Fatalf("%s to %s: was %s, until %v", start, end, was, s.NextEnd)
		}
		if s.Open != s.NextEnd.Before(s.NextStart) {
			t.Fatalf("%s to %s at %v: %+v", start, end, now, s)
		}
	})
}

// besideGap reports whether an end is where the clock was set forward.
func besideGap(w *Window, end time.Time) bool {
	for ; !end.IsZero(); end = w.end.Prev(end.Add(-1)) {
		from, to := w.end.zone.gapBefore(end)
		if from.Before(to) {
			return true
		}
		if w.movedEnd(end).Equal(end) {
			return false
		}
	}
	return false
}
