package cron

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	gocron "github.com/netresearch/go-cron"
)

// ExcludedDays are days on which an expression does not fire, such as holidays. The zero value excludes none.
type ExcludedDays struct {
	days   map[time.Time]bool // midnights
	yearly map[yearDay]bool
}

type yearDay struct {
	month time.Month
	day   int
}

// maxExcluded is the most days of a list. It bounds the time of Next for an expression that fires on excluded days
// only.
const maxExcluded = 400

// ParseExcludedDays reads a list of days, separated by commas: 2026-04-03 is one day, and 12-25 is that day of each
// year. The error is one line and names the value and the rule.
func ParseExcludedDays(list string) (d ExcludedDays, err error) {
	if strings.TrimSpace(list) == "" {
		return d, nil
	}
	items := strings.Split(list, ",")
	if len(items) > maxExcluded {
		return d, fmt.Errorf("excluded_days has %d days, must have at most %d", len(items), maxExcluded)
	}
	d = ExcludedDays{days: map[time.Time]bool{}, yearly: map[yearDay]bool{}}
	for _, item := range items {
		item = strings.TrimSpace(item)
		if day, err := time.Parse(time.DateOnly, item); err == nil {
			d.days[day] = true
			continue
		}
		day, err := time.Parse(time.DateOnly, "2000-"+item) // a leap year
		if err != nil {
			return ExcludedDays{}, fmt.Errorf("excluded_days: %q must be a day such as 2026-04-03, or 12-25 for each year", item)
		}
		d.yearly[yearDay{day.Month(), day.Day()}] = true
	}
	return d, nil
}

func (d ExcludedDays) has(day time.Time) bool {
	return d.days[day] || d.yearly[yearDay{day.Month(), day.Day()}]
}

// Without returns the expression without its firings on the given days, which are days of its time zone. It refuses
// days that leave no firing.
func (e *Expr) Without(d ExcludedDays) (*Expr, error) {
	less := *e
	less.excluded = d
	if less.Next(newYear(year.min).Add(-maxJump)).IsZero() {
		return nil, fmt.Errorf("cron %q: %w", e.text, errors.New("never fires: excluded_days has all its days"))
	}
	return &less, nil
}

// permits reports whether the expression may fire on the day of a wall time that the library has found.
func (e *Expr) permits(w time.Time) bool {
	day := midnight(w)
	return !e.excluded.has(day) && (len(e.nearLast) == 0 || e.isNearLast(day) || e.isPlainDay(day))
}

func midnight(w time.Time) time.Time { return w.Truncate(24 * time.Hour) }

// isNearLast reports whether L-3W, or another item of that form, selects the day.
func (e *Expr) isNearLast(day time.Time) bool {
	return slices.ContainsFunc(e.nearLast, func(n int) bool { return nearestToLast(day, n) == day.Day() })
}

// isPlainDay reports whether another item of the list selects the day.
func (e *Expr) isPlainDay(day time.Time) bool {
	if e.plain.Dom == 0 && len(e.plain.DomConstraints) == 0 {
		return false
	}
	return midnight(e.plain.Next(day.Add(-1))).Equal(day)
}

// nearestToLast returns the weekday (Monday to Friday) of the month that is nearest to the day n days before its last
// day, or 0 if the month has no such day.
func nearestToLast(month time.Time, n int) int {
	last := time.Date(month.Year(), month.Month()+1, 0, 0, 0, 0, 0, time.UTC)
	day := last.Day() - n
	if day < 1 {
		return 0
	}
	switch last.AddDate(0, 0, -n).Weekday() {
	case time.Saturday:
		if day == 1 {
			return 3
		}
		day--
	case time.Sunday:
		day++
	}
	return day
}

// nearLastCandidates returns the days that L-nW may select, in a form that the library knows.
func nearLastCandidates(n int) (days []gocron.DomConstraint) {
	for offset := max(0, n-2); offset <= min(30, n+1); offset++ {
		if offset == 0 {
			days = append(days, gocron.DomConstraint{Type: gocron.DomLast})
			continue
		}
		days = append(days, gocron.DomConstraint{Type: gocron.DomLastOffset, N: offset})
	}
	return days
}
