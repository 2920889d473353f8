package cron

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	gocron "github.com/netresearch/go-cron"
)

// field is one field of an expression. names has the names of the values, from min on.
type field struct {
	name     string
	min, max int
	names    []string
	rule     string // the valid items, for errors
	straight bool   // a range must not wrap
}

var (
	second     = field{name: "second", min: 0, max: 59, rule: "0-59"}
	minute     = field{name: "minute", min: 0, max: 59, rule: "0-59"}
	hour       = field{name: "hour", min: 0, max: 23, rule: "0-23"}
	dayOfMonth = field{name: "day-of-month", min: 1, max: 31, rule: "1-31, L, L-1 to L-30, LW, L-1W to L-30W or 1W to 31W"}
	month      = field{
		name: "month", min: 1, max: 12, rule: "1-12 or JAN-DEC",
		names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"},
	}
	dayOfWeek = field{
		name: "day-of-week", min: 1, max: 7, rule: "1-7 (1 is Sunday) or SUN-SAT, L, 1L to 7L or 1#1 to 7#5",
		names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"},
	}
	year = field{name: "year", min: 1970, max: 2199, rule: "1970-2199", straight: true}
)

func (f field) invalid(item string) error {
	return fmt.Errorf("%s %q must be %s, a list, a range or a step of these", f.name, item, f.rule)
}

// isOpen reports whether a field leaves the choice of the days to the other fields.
func isOpen(text string) bool { return text == "*" || text == "?" }

// all returns the values of a list of ranges and steps.
func (f field) all(text string) ([]int, error) {
	var values []int
	for item := range strings.SplitSeq(text, ",") {
		more, err := f.values(item)
		if err != nil {
			return nil, err
		}
		values = append(values, more...)
	}
	return values, nil
}

// mask returns the values as bits.
func (f field) mask(text string) (uint64, error) {
	values, err := f.all(text)
	return bits(values), err
}

func bits(values []int) (mask uint64) {
	for _, v := range values {
		mask |= 1 << v
	}
	return mask
}

// values returns the values of one item: "*", "3", "3-5" or "5-3" (which wraps), each with an optional step.
func (f field) values(item string) ([]int, error) {
	span, stepText, stepped := strings.Cut(item, "/")
	step := 1
	if stepped {
		var ok bool
		if step, ok = number(stepText, 1, max(f.max, f.size())); !ok { // 0/60 is every 60 minutes, as in Quartz
			return nil, fmt.Errorf("%s %q must have a step of 1-%d", f.name, item, max(f.max, f.size()))
		}
	}
	low, high, ok := f.span(span, stepped)
	if !ok {
		return nil, f.invalid(item)
	}
	if high < low && f.straight {
		return nil, fmt.Errorf("%s %q must not end before it begins: write two ranges", f.name, item)
	}
	if high < low {
		high += f.size()
	}
	var values []int
	for v := low; v <= high; v += step {
		values = append(values, f.min+(v-f.min)%f.size())
	}
	return values, nil
}

func (f field) size() int { return f.max - f.min + 1 }

// span returns the ends of a range. "*" is the whole range, and so is an empty text before a step. With a step, "3"
// means from 3 to the end.
func (f field) span(text string, stepped bool) (low, high int, ok bool) {
	if text == "*" || text == "" && stepped {
		return f.min, f.max, true
	}
	from, to, ranged := strings.Cut(text, "-")
	low, ok = f.value(from)
	switch {
	case !ok:
		return 0, 0, false
	case ranged:
		high, ok = f.value(to)
		return low, high, ok
	case stepped:
		return low, f.max, true
	default:
		return low, low, true
	}
}

func (f field) value(text string) (int, bool) {
	if i := slices.Index(f.names, strings.ToUpper(text)); i >= 0 {
		return f.min + i, true
	}
	return number(text, f.min, f.max)
}

// number reads digits. It accepts no sign.
func number(text string, low, high int) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err == nil && int(n) >= low && int(n) <= high
}

// monthDays are the days of a month that an expression selects.
type monthDays struct {
	mask     uint64                 // the fixed days
	moving   []gocron.DomConstraint // the days that depend on the month
	nearLast []int                  // n of each L-nW, which the library does not know
}

func daysOfMonth(text string) (d monthDays, err error) {
	if isOpen(text) {
		text = "*"
	}
	for item := range strings.SplitSeq(strings.ToUpper(text), ",") {
		if !strings.ContainsAny(item, "LW") {
			more, err := dayOfMonth.mask(item)
			if err != nil {
				return monthDays{}, err
			}
			d.mask |= more
			continue
		}
		if !d.addMoving(item) {
			return monthDays{}, dayOfMonth.invalid(item)
		}
	}
	return d, nil
}

// addMoving adds L, LW, L-3, L-3W or 15W, and reports whether the item is one of them.
func (d *monthDays) addMoving(item string) bool {
	back, fromLast := strings.CutPrefix(item, "L-")
	if n, weekday := strings.CutSuffix(back, "W"); fromLast && weekday {
		days, ok := number(n, 1, 30)
		d.nearLast = append(d.nearLast, days)
		return ok
	}
	day, ok := movingDay(item)
	d.moving = append(d.moving, day)
	return ok
}

// movingDay reads L, LW, L-3 and 15W.
func movingDay(item string) (d gocron.DomConstraint, ok bool) {
	switch {
	case item == "L":
		return gocron.DomConstraint{Type: gocron.DomLast}, true
	case item == "LW":
		return gocron.DomConstraint{Type: gocron.DomLastWeekday}, true
	case strings.HasPrefix(item, "L-"):
		d.Type = gocron.DomLastOffset
		d.N, ok = number(item[len("L-"):], 1, 30)
	default:
		d.Type = gocron.DomNearestWeekday
		d.N, ok = number(strings.TrimSuffix(item, "W"), 1, 31)
	}
	return d, ok
}

// daysOfWeek returns the days of every week as bits, and the days of one week of the month. Quartz counts the days
// from 1, the library from 0.
func daysOfWeek(text string) (mask uint64, moving []gocron.DowConstraint, err error) {
	if isOpen(text) {
		text = "*"
	}
	for item := range strings.SplitSeq(strings.ToUpper(text), ",") {
		day, ok := weekOfMonth(item)
		switch {
		case ok:
			moving = append(moving, day)
		case item == "L": // in Quartz, the last day of the week
			mask |= 1 << 6
		default:
			more, err := dayOfWeek.mask(item)
			if err != nil {
				return 0, nil, err
			}
			mask |= more >> dayOfWeek.min
		}
	}
	return mask, moving, nil
}

// weekOfMonth reads 6#2 and 6L, or FRI#2 and FRIL.
func weekOfMonth(item string) (d gocron.DowConstraint, ok bool) {
	day, nth, hashed := strings.Cut(item, "#")
	if hashed {
		d.N, ok = number(nth, 1, 5)
	} else {
		day, ok = strings.CutSuffix(item, "L")
		d.N = -1
	}
	if !ok {
		return d, false
	}
	d.Weekday, ok = dayOfWeek.value(day)
	d.Weekday -= dayOfWeek.min
	return d, ok
}
