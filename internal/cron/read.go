package cron

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/human"
)

// reader fills in an expression from its text.
type reader struct{ *Expr }

var shorthands = map[string]string{
	"@yearly":   "0 0 0 1 1 ?",
	"@annually": "0 0 0 1 1 ?",
	"@monthly":  "0 0 0 1 * ?",
	"@weekly":   "0 0 0 ? * SUN",
	"@daily":    "0 0 0 * * ?",
	"@midnight": "0 0 0 * * ?",
	"@hourly":   "0 0 * * * ?",
}

func (e reader) read(expr string) error {
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
		return errors.New("has 5 fields, must have 6 or 7: second minute hour day-of-month month day-of-week [year]; " +
			"write cron5: before five fields of a crontab")
	}
	if n := len(fields); n != 6 && n != 7 {
		return fmt.Errorf("has %s, must have 6 or 7: second minute hour day-of-month month day-of-week [year]; "+
			"seconds are required",
			human.Count(n, "field", "fields"))
	}
	if dom, dow := fields[3], fields[5]; !isOpen(dom) && !isOpen(dow) {
		return fmt.Errorf("day-of-month %q and day-of-week %q cannot both be set: write ? for one", dom, dow)
	}
	return e.readFields(fields)
}

// readFields reads six or seven fields.
func (e reader) readFields(fields []string) error {
	if err := e.readTimes(fields); err != nil {
		return err
	}
	if err := e.readDays(fields); err != nil {
		return err
	}
	return e.readYears(fields[6:])
}

func (e reader) readTimes(fields []string) (err error) {
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

func (e reader) readDays(fields []string) (err error) {
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

// addNearLast lets the expression fire on all days that L-nW may select. permits keeps the right ones.
func (e reader) addNearLast() {
	e.plain = e.spec
	e.spec.DomConstraints = slices.Clone(e.spec.DomConstraints)
	for _, n := range e.nearLast {
		e.spec.DomConstraints = append(e.spec.DomConstraints, nearLastCandidates(n)...)
	}
}

func (e reader) readYears(fields []string) error {
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
