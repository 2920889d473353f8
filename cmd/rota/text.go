package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// orDash returns "-" for an empty text.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// valueOrDash returns "-" for NULL.
func valueOrDash(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// ageText formats a number of seconds in at most two units. nil is "-".
func ageText(seconds *float64) string {
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

func durationText(d time.Duration) string {
	seconds := d.Seconds()
	return ageText(&seconds)
}

// relativeTime formats t as "5s ago" or "in 5s". now is the database's time.
func relativeTime(now, t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case t.After(now):
		return "in " + durationText(t.Sub(now))
	}
	return durationText(now.Sub(t)) + " ago"
}

// timeText formats a time in UTC without fractions of a second.
func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func number(n int64) string { return fmt.Sprint(n) }

// oneLine replaces line ends and repeated spaces by single spaces.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
