package cron

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/racetest"
)

// oracle is an expression by its meaning: the seconds, minutes, hours and dates. It uses neither the parser of the package,
// nor the library, nor stretches.
type oracle struct {
	text               string
	second, min, hour  [60]bool
	month              [60]bool
	date               func(wall time.Time) bool
	interval           bool // all hours
	firstYear, endYear int
}

func (o *oracle) matches(wall time.Time) bool {
	return o.second[wall.Second()] && o.min[wall.Minute()] && o.hour[wall.Hour()] && o.onDay(wall)
}

func (o *oracle) onDay(wall time.Time) bool {
	return o.month[wall.Month()] && o.date(wall) && (o.endYear == 0 || o.firstYear <= wall.Year() && wall.Year() < o.endYear)
}

// list draws a field of up to three items, and returns its text and its values.
func list(t *rapid.T, name string, low, high int, open bool) (text string, set [60]bool) {
	if open && rapid.Bool().Draw(t, name+" open") {
		for v := low; v <= high; v++ {
			set[v] = true
		}
		return "*", set
	}
	var items []string
	value := rapid.IntRange(low, high)
	for range rapid.IntRange(1, 3).Draw(t, name+" items") {
		from, to, step := value.Draw(t, name), value.Draw(t, name+" to"), rapid.IntRange(1, high).Draw(t, name+" step")
		var item string
		switch rapid.IntRange(0, 3).Draw(t, name+" form") {
		case 0:
			item, to, step = fmt.Sprint(from), from, 1
		case 1:
			item, to = fmt.Sprintf("%d/%d", from, step), high
		case 2:
			item = fmt.Sprintf("%d-%d/%d", from, to, step)
		default:
			item, from, to = fmt.Sprintf("*/%d", step), low, high
		}
		items = append(items, item)
		for v, n := from, 0; ; v, n = v+1, n+1 {
			if v > high {
				v = low
			}
			if n%step == 0 {
				set[v] = true
			}
			if v == to {
				break
			}
		}
	}
	return strings.Join(items, ","), set
}

// daysIn returns the number of days in the month of w.
func daysIn(w time.Time) int { return time.Date(w.Year(), w.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day() }

// nearestWorkday returns the day from Monday to Friday that is nearest to the nth, in the same month.
func nearestWorkday(w time.Time, n int) int {
	for _, off := range []int{0, -1, 1, -2, 2} {
		d := time.Date(w.Year(), w.Month(), n+off, 0, 0, 0, 0, time.UTC)
		if n <= daysIn(w) && d.Month() == w.Month() && d.Weekday() != time.Saturday && d.Weekday() != time.Sunday {
			return d.Day()
		}
	}
	return 0
}

// drawDate draws the fields of the days. One of them is open.
func drawDate(t *rapid.T) (dom, dow string, matches func(time.Time) bool) {
	n := rapid.IntRange(1, 31).Draw(t, "day")
	day := rapid.IntRange(1, 7).Draw(t, "weekday")
	nth := rapid.IntRange(1, 5).Draw(t, "nth")
	name := rapid.SampledFrom([]string{fmt.Sprint(day), dayOfWeek.names[day-1]}).Draw(t, "weekday's name")
	onDay := func(w time.Time) bool { return int(w.Weekday()) == day-1 }
	switch rapid.IntRange(0, 9).Draw(t, "form of the date") {
	default:
		return "*", "?", func(time.Time) bool { return true }
	case 1:
		text, set := list(t, "day-of-month", 1, 31, false)
		return text, "?", func(w time.Time) bool { return set[w.Day()] }
	case 2:
		return "L", "?", func(w time.Time) bool { return w.Day() == daysIn(w) }
	case 3:
		n = min(n, 30)
		return fmt.Sprintf("L-%d", n), "?", func(w time.Time) bool { return w.Day() == daysIn(w)-n }
	case 4:
		return "LW", "*", func(w time.Time) bool { return w.Day() == nearestWorkdayBefore(w) }
	case 5:
		return fmt.Sprintf("%dW", n), "?", func(w time.Time) bool { return w.Day() == nearestWorkday(w, n) }
	case 6:
		text, set := list(t, "day-of-week", 1, 7, false)
		return "?", text, func(w time.Time) bool { return set[w.Weekday()+1] }
	case 7:
		return "*", fmt.Sprintf("%s#%d", name, nth), func(w time.Time) bool {
			return onDay(w) && w.Day() > 7*(nth-1) && w.Day() <= 7*nth
		}
	case 8:
		return "?", name + "L", func(w time.Time) bool { return onDay(w) && w.Day() > daysIn(w)-7 }
	}
}

func nearestWorkdayBefore(w time.Time) int {
	d := time.Date(w.Year(), w.Month(), daysIn(w), 0, 0, 0, 0, time.UTC)
	for d.Weekday() == time.Saturday || d.Weekday() == time.Sunday {
		d = d.AddDate(0, 0, -1)
	}
	return d.Day()
}

func drawOracle(t *rapid.T) *oracle {
	o := &oracle{}
	var second, minute, hour string
	second, o.second = list(t, "second", 0, 59, true)
	minute, o.min = list(t, "minute", 0, 59, true)
	hour, o.hour = list(t, "hour", 0, 23, true)
	month, months := list(t, "month", 1, 12, true)
	o.month = months
	dom, dow, date := drawDate(t)
	o.date = date
	o.interval = !slices.Contains(o.hour[:24], false)
	o.text = strings.Join([]string{second, minute, hour, dom, month, dow}, " ")
	if rapid.IntRange(0, 3).Draw(t, "with years") == 0 {
		o.firstYear = rapid.IntRange(1970, 2100).Draw(t, "first year")
		o.endYear = o.firstYear + rapid.IntRange(1, 30).Draw(t, "years")
		o.text += fmt.Sprintf(" %d-%d", o.firstYear, o.endYear-1)
	}
	return o
}

// fires returns the instants after from and up to to at which the expression fires. It reads the clock in every second. To
// learn what the clock showed before, it reads two days once a minute.
func (o *oracle) fires(loc *time.Location, from, to time.Time) []time.Time {
	clock := func(t time.Time) time.Time {
		_, offset := t.In(loc).Zone()
		return t.UTC().Add(time.Duration(offset) * time.Second)
	}
	latest := clock(from)
	for t := from.Add(-48 * time.Hour); t.Before(from); t = t.Add(time.Minute) {
		if w := clock(t.Add(59 * time.Second)); w.After(latest) {
			latest = w
		}
	}
	var fires []time.Time
	for t := from.Add(time.Second); !t.After(to); t = t.Add(time.Second) {
		w := clock(t)
		fire := o.interval && o.matches(w)
		for !o.interval && latest.Before(w) {
			latest = latest.Add(time.Second)
			fire = fire || o.matches(latest)
		}
		if fire {
			fires = append(fires, t)
		}
	}
	return fires
}

// The zones have changes of all kinds: by an hour, half an hour, two hours, a whole day, at midnight, at 0:01, and none.
var zones = []string{
	"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Adelaide",
	"Pacific/Chatham", "America/St_Johns", "America/Sao_Paulo", "America/Havana", "Africa/Cairo", "Africa/Casablanca",
	"Asia/Beirut", "Asia/Tehran", "Asia/Pyongyang", "America/Caracas", "Antarctica/Troll", "Pacific/Apia",
	"Pacific/Kwajalein", "Europe/Dublin", "Europe/Lisbon", "UTC",
}

// drawChange draws an instant at which the clock of a zone changes, or a New Year if it never changes.
func drawChange(t *rapid.T) (loc *time.Location, change time.Time) {
	loc, err := LoadZone(rapid.SampledFrom(zones).Draw(t, "zone"))
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(rapid.IntRange(1975, 2060).Draw(t, "year"), 1, 1, 0, 0, 0, 0, loc)
	for range rapid.IntRange(1, 2).Draw(t, "changes") {
		if _, end := from.ZoneBounds(); !end.IsZero() {
			from = end
		}
	}
	return loc, from
}

func TestAgainstTheClock(t *testing.T) {
	racetest.Skip(t)
	rapid.Check(t, func(t *rapid.T) {
		o := drawOracle(t)
		loc, change := drawChange(t)
		e, err := Parse(o.text, loc)
		if err != nil {
			if !strings.Contains(err.Error(), "never fires") {
				t.Fatal(err)
			}
			t.Skip("no such date")
		}
		from := change.Add(-time.Duration(rapid.IntRange(0, 26).Draw(t, "hours before")) * time.Hour)
		to := change.Add(time.Duration(rapid.IntRange(1, 26).Draw(t, "hours after")) * time.Hour)
		want := o.fires(loc, from, to)
		if diff := cmp.Diff(want, within(e, from, to), cmp.Comparer(time.Time.Equal)); diff != "" {
			t.Fatalf("%s in %v around %v (-want +got):\n%s", o.text, loc, change, diff)
		}
		for range 20 {
			at := from.Add(time.Duration(rapid.Int64Range(0, int64(to.Sub(from))).Draw(t, "at")))
			checkAround(t, e, want, at)
		}
	})
}

// within returns the firings after from and up to to.
func within(e *Expr, from, to time.Time) (fires []time.Time) {
	for at := e.Next(from); !at.IsZero() && !at.After(to); at = e.Next(at) {
		fires = append(fires, at)
	}
	return fires
}

// checkAround compares Next and Prev of an instant with the list.
func checkAround(t *rapid.T, e *Expr, fires []time.Time, at time.Time) {
	i, found := slices.BinarySearchFunc(fires, at, time.Time.Compare)
	if found {
		i++
	}
	if i < len(fires) && !e.Next(at).Equal(fires[i]) {
		t.Fatalf("%s: Next(%v) = %v, want %v", e, at, e.Next(at), fires[i])
	}
	if i > 0 && !e.Prev(at).Equal(fires[i-1]) {
		t.Fatalf("%s: Prev(%v) = %v, want %v", e, at, e.Prev(at), fires[i-1])
	}
}

// The days of many years equal a count of all days.
func TestAgainstTheCalendar(t *testing.T) {
	racetest.Skip(t)
	rapid.Check(t, func(t *rapid.T) {
		o := drawOracle(t)
		o.second, o.min, o.hour, o.interval = [60]bool{true}, [60]bool{true}, [60]bool{true}, false
		o.text = "0 0 0 " + strings.Join(strings.Fields(o.text)[3:], " ")
		e, err := Parse(o.text, nil)
		first := time.Date(rapid.IntRange(1960, 2100).Draw(t, "year"), 1, 1, 0, 0, 0, 0, time.UTC)
		var want []time.Time
		for day := first.AddDate(0, 0, 1); day.Before(first.AddDate(12, 0, 0)); day = day.AddDate(0, 0, 1) {
			if o.onDay(day) {
				want = append(want, day)
			}
		}
		switch {
		case err == nil:
		case strings.Contains(err.Error(), "never fires") && len(want) == 0:
			t.Skip("no such date")
		default:
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, within(e, first, first.AddDate(12, 0, -1))); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", o.text, diff)
		}
		for range 20 {
			checkAround(t, e, want, first.AddDate(0, 0, rapid.IntRange(1, 12*365).Draw(t, "day")))
		}
	})
}

// Anywhere in time, Next increases strictly, Prev of Next is Next, and the expression does not fire in between.
func TestNextAndPrev(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOracle(t)
		loc, change := drawChange(t)
		e, err := Parse(o.text, loc)
		if err != nil {
			t.Skip("no such date")
		}
		at := change.Add(time.Duration(rapid.Int64Range(-int64(time.Hour*24*365*200), int64(time.Hour*24*365*90)).Draw(t, "away")))
		for range 20 {
			next := e.Next(at)
			if next.IsZero() {
				if o.endYear == 0 {
					t.Fatalf("%s in %v never fires after %v", o.text, loc, at)
				}
				break
			}
			if !next.After(at) || !e.Prev(next).Equal(next) {
				t.Fatalf("%s in %v: Next(%v) = %v, but Prev of that is %v", o.text, loc, at, next, e.Prev(next))
			}
			if before := e.Prev(next.Add(-1)); before.After(at) || !before.IsZero() && !e.Next(before).Equal(next) {
				t.Fatalf("%s in %v fires at %v, between %v and %v", o.text, loc, before, at, next)
			}
			at = next
		}
	})
}

// Parse refuses garbage in one line, or understands it. It neither panics nor hangs.
func TestGarbage(t *testing.T) {
	piece := rapid.SampledFrom(strings.Split("0|1|7|29|30|31|59|60|2026|2199|-|/|,|#|*|?|L|W|MON|FEB|x|\n|@|é|\x00|L-|1W|6#5|99999999999", "|"))
	field := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 1, 4).Draw(t, "pieces"), "") })
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(field, 5, 8).Draw(t, "fields"), " ")
		if rapid.Bool().Draw(t, "any text") {
			text = rapid.String().Draw(t, "text")
		}
		begun := time.Now()
		e, err := Parse(text, nil)
		switch {
		case err == nil:
			if next := e.Next(begun); !next.IsZero() && !e.Prev(next).Equal(next) {
				t.Fatalf("%q: Next(%v) = %v, but Prev of that is %v", text, begun, next, e.Prev(next))
			}
		case strings.Contains(err.Error(), "\n"):
			t.Fatalf("the error has more than one line: %v", err)
		}
		limit(t, begun)
	})
}
