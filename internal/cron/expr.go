package cron

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

var shorthands = map[string]string{
	"@yearly":   "0 0 0 1 1 ?",
	"@annually": "0 0 0 1 1 ?",
	"@monthly":  "0 0 0 1 * ?",
	"@weekly":   "0 0 0 ? * SUN",
	"@daily":    "0 0 0 * * ?",
	"@midnight": "0 0 0 * * ?",
	"@hourly":   "0 0 * * * ?",
}

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
	err := e.read(expr)
	if err == nil && e.Next(newYear(year.min).Add(-maxJump)).IsZero() {
		err = errors.New("never fires: no such date")
	}
	if err != nil {
		return nil, fmt.Errorf("cron %q: %w", expr, err)
	}
	return e, nil
}

func (e *Expr) read(expr string) error {
	if crontab, ok := strings.CutPrefix(expr, crontabPrefix); ok {
		return e.readCrontab(strings.Fields(crontab))
	}
	fields := strings.Fields(expr)
	if len(fields) == 1 && strings.HasPrefix(fields[0], "@") {
		long, known := shorthands[strings.ToLower(fields[0])]
		if !known {
			return errors.New("must be @yearly, @monthly, @weekly, @daily, @hourly or six fields")
		}
		fields = strings.Fields(long)
	}
	if len(fields) == 5 {
		return errors.New("has 5 fields, must have 6 or 7: second minute hour day-of-month month day-of-week [year]; write cron5: before five fields of a crontab")
	}
	if n := len(fields); n != 6 && n != 7 {
		return fmt.Errorf("has %d fields, must have 6 or 7: second minute hour day-of-month month day-of-week [year]; seconds are required", n)
	}
	if dom, dow := fields[3], fields[5]; !isOpen(dom) && !isOpen(dow) {
		return fmt.Errorf("day-of-month %q and day-of-week %q cannot both be set: write ? for one", dom, dow)
	}
	return e.readFields(fields)
}

// readFields reads six or seven fields.
func (e *Expr) readFields(fields []string) error {
	if err := e.readTimes(fields); err != nil {
		return err
	}
	if err := e.readDays(fields); err != nil {
		return err
	}
	return e.readYears(fields[6:])
}

func (e *Expr) readTimes(fields []string) (err error) {
	s := &e.spec
	if s.Second, err = second.mask(fields[0]); err != nil {
		return err
	}
	if s.Minute, err = minute.mask(fields[1]); err != nil {
		return err
	}
	if s.Hour, err = hour.mask(fields[2]); err != nil {
		return err
	}
	e.timesOfDay = s.Hour != 1<<24-1
	return nil
}

func (e *Expr) readDays(fields []string) (err error) {
	days, err := daysOfMonth(fields[3])
	if err != nil {
		return err
	}
	s := &e.spec
	s.Dom, s.DomConstraints, e.nearLast = days.mask, days.moving, days.nearLast
	if s.Month, err = month.mask(fields[4]); err != nil {
		return err
	}
	s.Dow, s.DowConstraints, err = daysOfWeek(fields[5])
	return err
}

// addNearLast lets the expression fire on all days that L-nW may select, of which permits keeps the right ones.
func (e *Expr) addNearLast() {
	e.plain = e.spec
	e.spec.DomConstraints = slices.Clone(e.spec.DomConstraints)
	for _, n := range e.nearLast {
		e.spec.DomConstraints = append(e.spec.DomConstraints, nearLastCandidates(n)...)
	}
}

func (e *Expr) readYears(fields []string) error {
	e.spec.Location = time.UTC
	e.spec.MaxSearchYears = calendarYears
	defer e.addNearLast()
	if len(fields) == 0 || fields[0] == "*" {
		return nil
	}
	years, err := year.all(fields[0])
	if err != nil {
		return err
	}
	e.firstYear, e.lastYear = slices.Min(years), slices.Max(years)
	e.spec.Year = make(map[int]struct{}, len(years))
	for _, y := range years {
		e.spec.Year[y] = struct{}{}
	}
	return nil
}

// String returns the expression as it was given to Parse.
func (e *Expr) String() string { return e.text }
