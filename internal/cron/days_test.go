package cron

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// L-nW is the nearest weekday of the same month to the day n days before the last one.
func TestNearestWeekdayToTheLastDays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "n")
		e, err := Parse(fmt.Sprintf("0 0 0 L-%dW * ?", n), nil)
		if err != nil {
			t.Fatal(err)
		}
		month := time.Date(rapid.IntRange(1971, 2190).Draw(t, "year"), time.Month(rapid.IntRange(1, 12).Draw(t, "month")), 1, 0, 0, 0, 0, time.UTC)
		end := month.AddDate(0, 1, 0)
		var want time.Time
		target, best := end.AddDate(0, 0, -1-n), 100
		for day := month; day.Before(end) && !target.Before(month); day = day.AddDate(0, 0, 1) {
			apart := int(max(day.Sub(target), target.Sub(day)).Hours()) / 24
			if weekday := day.Weekday(); weekday != time.Saturday && weekday != time.Sunday && apart < best {
				want, best = day, apart
			}
		}
		got := e.Next(month.Add(-1))
		if !got.Before(end) {
			got = time.Time{}
		}
		if !got.Equal(want) {
			t.Fatalf("L-%dW in %s: got %v, want %v", n, month.Format("2006-01"), got, want)
		}
		if back := e.Prev(end.Add(-1)); !want.IsZero() && !back.Equal(want) {
			t.Fatalf("L-%dW before the end of %s: got %v, want %v", n, month.Format("2006-01"), back, want)
		}
	})
}

func without(t *testing.T, expr, zone, days string) *Expr {
	t.Helper()
	d, err := ParseExcludedDays(days)
	if err != nil {
		t.Fatal(err)
	}
	e, err := parse(t, expr, zone).Without(d)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Excluded days are days of the time zone, and both directions leave them out.
func TestExcludedDays(t *testing.T) {
	e := without(t, "0 30 0,23 * * ?", "Europe/Berlin", "2026-12-24, 12-25")
	var forward, back []string
	for _, at := range next(e, instant(t, "2026-12-23 12:00:00 +01:00"), 4) {
		forward = append(forward, at.Format(withOffset))
	}
	for at := e.Prev(instant(t, "2026-12-26 12:00:00 +01:00")); len(back) < 2; at = e.Prev(at.Add(-1)) {
		back = append(back, at.Format(withOffset))
	}
	if diff := cmp.Diff([]string{"2026-12-23 23:30:00 +01:00", "2026-12-26 00:30:00 +01:00", "2026-12-26 23:30:00 +01:00", "2026-12-27 00:30:00 +01:00"}, forward); diff != "" {
		t.Errorf("Next (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"2026-12-26 00:30:00 +01:00", "2026-12-23 23:30:00 +01:00"}, back); diff != "" {
		t.Errorf("Prev (-want +got):\n%s", diff)
	}
	if at := e.Next(instant(t, "2027-12-24 23:45:00 +01:00")); at.Format(withOffset) != "2027-12-26 00:30:00 +01:00" {
		t.Errorf("in another year: got %v, want 26 December: 24 is a day of 2026 only, 25 of each year", at)
	}
	leap := without(t, "* * * 28,29 2 ?", "", "02-29")
	if at := leap.Next(instant(t, "2028-02-28 23:59:59")); at.Format(dateAndTime) != "2029-02-28 00:00:00" {
		t.Errorf("after a leap day: got %v, want 28 February 2029", at)
	}
}

func TestExcludedDaysRefused(t *testing.T) {
	for list, want := range map[string]string{
		"25.12.":                                `excluded_days: "25.12." must be a day such as 2026-04-03, or 12-25 for each year`,
		"2026-02-30":                            `excluded_days: "2026-02-30" must be a day`,
		"12-25,":                                `excluded_days: "" must be a day`,
		strings.Repeat("12-25,", 400) + "12-26": "excluded_days has 401 days, must have at most 400",
	} {
		if _, err := ParseExcludedDays(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: got %v, want %s", list, err, want)
		}
	}
	d, err := ParseExcludedDays("12-25")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parse(t, "0 0 0 25 12 ?", "").Without(d); err == nil || !strings.Contains(err.Error(), "never fires: excluded_days has all its days") {
		t.Errorf("an expression that fires on excluded days only: got %v", err)
	}
}
