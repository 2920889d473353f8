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
	text  string
	zone  zone
	spec  gocron.SpecSchedule // fires on wall times, which it takes for UTC
	named bool                // it names hours, rather than fire in all of them: the package comment's two rules

	firstYear, lastYear int // zero: any year
}

// maxLength is the longest expression that is read.
const maxLength = 512

// calendarYears is after how many years the calendar repeats: what does not fire in as many never does.
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
// value and the rule that it breaks.
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
	fields := strings.Fields(expr)
	if len(fields) == 1 && strings.HasPrefix(fields[0], "@") {
		long, known := shorthands[strings.ToLower(fields[0])]
		if !known {
			return errors.New("must be @yearly, @monthly, @weekly, @daily, @hourly or six fields")
		}
		fields = strings.Fields(long)
	}
	if n := len(fields); n != 6 && n != 7 {
		return fmt.Errorf("has %d fields, must have 6 or 7: second minute hour day-of-month month day-of-week [year]; seconds are required", n)
	}
	if dom, dow := fields[3], fields[5]; !isOpen(dom) && !isOpen(dow) {
		return fmt.Errorf("day-of-month %q and day-of-week %q cannot both be set: write ? for one", dom, dow)
	}
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
	e.named = s.Hour != 1<<24-1
	return nil
}

func (e *Expr) readDays(fields []string) (err error) {
	s := &e.spec
	if s.Dom, s.DomConstraints, err = daysOfMonth(fields[3]); err != nil {
		return err
	}
	if s.Month, err = month.mask(fields[4]); err != nil {
		return err
	}
	s.Dow, s.DowConstraints, err = daysOfWeek(fields[5])
	return err
}

func (e *Expr) readYears(fields []string) error {
	e.spec.Location = time.UTC
	e.spec.MaxSearchYears = calendarYears
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

// Next returns the first instant strictly after the given one at which the expression fires, in the expression's time
// zone. The zero time means that it never fires again.
func (e *Expr) Next(after time.Time) time.Time {
	if !e.named {
		return e.nextShown(after)
	}
	w := e.wallAfter(e.zone.reached(after))
	if w.IsZero() {
		return w
	}
	return e.zone.first(w)
}

// Prev returns the last instant at or before the given one at which the expression fires, in the expression's time
// zone. The zero time means that it never fired before.
func (e *Expr) Prev(by time.Time) time.Time {
	if !e.named {
		return e.prevShown(by)
	}
	w := e.wallBy(e.zone.reached(by))
	if w.IsZero() {
		return w
	}
	return e.zone.first(w)
}

// nextShown is Next for an expression that fires whenever the clock shows a matching time: it searches one stretch
// after the other. If one was searched for more than a jump's length, no later jump can show anything of it again that
// matches, and the search goes on shortly before the next match.
func (e *Expr) nextShown(after time.Time) time.Time {
	s := e.zone.at(after)
	for from := s.wall(after); ; {
		w := e.wallAfter(from)
		t := s.instant(w)
		switch long := s.end.Sub(s.instant(from)) > maxJump; {
		case !w.IsZero() && s.holds(t):
			return t.In(e.zone.loc)
		case s.end.IsZero(), w.IsZero() && long:
			return time.Time{}
		case long && w.Add(-maxJump).After(s.end):
			t = w.Add(-maxJump)
		default:
			t = s.end
		}
		s = e.zone.at(t)
		from = s.wall(t).Add(-1)
	}
}

// prevShown is Prev, as nextShown is Next.
func (e *Expr) prevShown(by time.Time) time.Time {
	s := e.zone.at(by)
	for from := s.wall(by); ; {
		w := e.wallBy(from)
		t := s.instant(w)
		switch long := s.instant(from).Sub(s.start) > maxJump; {
		case !w.IsZero() && s.holds(t):
			return t.In(e.zone.loc)
		case s.start.IsZero(), w.IsZero() && long:
			return time.Time{}
		case long && w.Add(maxJump).Before(s.start):
			t = w.Add(maxJump)
		default:
			t = s.start.Add(-1)
		}
		s = e.zone.at(t)
		from = s.wall(t)
	}
}

// wallAfter returns the first matching wall time after w, zero if there is none.
func (e *Expr) wallAfter(w time.Time) time.Time {
	if e.lastYear != 0 {
		if w.Year() > e.lastYear {
			return time.Time{}
		}
		if w.Year() < e.firstYear {
			w = newYear(e.firstYear).Add(-1)
		}
	}
	return e.spec.Next(w)
}

// wallBy returns the last matching wall time at or before w, zero if there is none.
func (e *Expr) wallBy(w time.Time) time.Time {
	if e.lastYear != 0 {
		if w.Year() < e.firstYear {
			return time.Time{}
		}
		if w.Year() > e.lastYear {
			w = newYear(e.lastYear + 1).Add(-1)
		}
	}
	return e.spec.Prev(w.Add(time.Second)) // which goes back by a second, and to a whole one, before it looks
}

func newYear(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
