package cli

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dutyrota/rota/runs"
)

// OrDash returns "-" for an empty text.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// ValueOrDash returns "-" for NULL.
func ValueOrDash(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// AgeText formats a number of seconds in at most two units. nil is "-".
func AgeText(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	d := time.Duration(math.Abs(*seconds) * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", *seconds)
	case d < 24*time.Hour:
		text := strings.Replace(d.Round(roundingOf(d)).String(), "m0s", "m", 1)
		return strings.Replace(text, "h0m", "h", 1)
	}
	return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

func roundingOf(d time.Duration) time.Duration {
	if d < time.Hour {
		return time.Second
	}
	return time.Minute
}

func DurationText(d time.Duration) string {
	seconds := d.Seconds()
	return AgeText(&seconds)
}

// RelativeTime formats t as "5s ago" or "in 5s". now is the database's time.
func RelativeTime(now, t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case t.After(now):
		return "in " + DurationText(t.Sub(now))
	}
	return DurationText(now.Sub(t)) + " ago"
}

// TimeText formats a time in UTC without fractions of a second.
func TimeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func Number(n int64) string { return fmt.Sprint(n) }

// OneLine replaces line ends and repeated spaces by single spaces.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// ItemsText returns a number of items, with a plus sign if it is a lower bound.
func ItemsText(n int64, atLeast bool) string {
	if atLeast {
		return Number(n) + "+"
	}
	return Number(n)
}

// ScheduleText says when a trigger is due.
func ScheduleText(t runs.Trigger) string {
	switch t.Kind {
	case runs.TriggerCron:
		return t.Expression + " " + t.TimeZone
	case runs.TriggerEvery:
		return "every " + t.Expression
	}
	return "at " + t.Expression
}
