package cron

import (
	"errors"
	"fmt"
	"time"

	gocron "github.com/netresearch/go-cron"
)

// Expr is a cron expression in a time zone. It is immutable.
type Expr struct {
	text string
	zone zone
	spec gocron.SpecSchedule // fires on wall times, which it reads as UTC
	// timesOfDay selects the first of the two rules in the package comment: the expression names hours.
	timesOfDay bool

	firstYear, lastYear int // zero means any year

	nearLast []int               // n of each L-nW; spec fires on more days then, and permits drops them
	plain    gocron.SpecSchedule // spec without the days of nearLast
	excluded ExcludedDays
}

// maxLength is the longest expression that Parse reads.
const maxLength = 512

// calendarYears is the number of years after which the calendar repeats. An expression that does not fire within them
// never fires.
const calendarYears = 400

// Parse reads an expression as the package comment describes it. A nil loc is UTC. The error is one line and names the
// value and the broken rule.
func Parse(expr string, loc *time.Location) (*Expr, error) {
	if len(expr) > maxLength {
		return nil, fmt.Errorf("cron expression of %d characters: at most %d are allowed", len(expr), maxLength)
	}
	if loc == nil {
		loc = time.UTC
	}
	e := &Expr{text: expr, zone: zone{loc}}
	err := reader{e}.read(expr)
	if err == nil && e.Next(newYear(year.min).Add(-maxJump)).IsZero() {
		err = errors.New("never fires: no such date")
	}
	if err != nil {
		return nil, fmt.Errorf("cron %q: %w", expr, err)
	}
	return e, nil
}

// String returns the expression as it was given to Parse.
func (e *Expr) String() string { return e.text }
