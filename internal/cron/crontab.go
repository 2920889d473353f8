package cron

import (
	"fmt"
	"strings"

	"github.com/dutyrota/rota/internal/human"
)

// crontabPrefix begins an expression of five fields, as in crontab(5).
const crontabPrefix = "cron5:"

// crontabDay is the day of the week in a crontab: 0 and 7 are Sunday.
var crontabDay = field{
	name: "day-of-week", min: 0, max: 7, rule: "0-7 (0 and 7 are Sunday) or SUN-SAT", straight: true,
	names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"},
}

// crontabDate is the day of the month in a crontab.
var crontabDate = field{name: "day-of-month", min: 1, max: 31, rule: "1-31"}

// readCrontab reads five fields of a crontab: minute, hour, day of the month, month and day of the week. If both days
// are set, either of them suffices, unless one begins with a star. No range may wrap, as in crontab(5): in Quartz
// each may.
func (e reader) readCrontab(fields []string) error {
	if n := len(fields); n != 5 {
		return fmt.Errorf("has %s after cron5:, must have 5: minute hour day-of-month month day-of-week",
			human.Count(n, "field", "fields"))
	}
	dom, dow := fields[2], fields[4]
	for i, f := range []field{minute, hour, crontabDate, month} {
		f.straight = true
		if _, err := f.all(fields[i]); err != nil {
			return err
		}
	}
	e.spec.DowOrDom = !strings.HasPrefix(dom, "*") && !strings.HasPrefix(dow, "*")
	dow, err := crontabDays(dow)
	if err != nil {
		return err
	}
	return e.readFields([]string{"0", fields[0], fields[1], dom, fields[3], dow})
}

// crontabDays translates days of the week, which Quartz counts from 1.
func crontabDays(text string) (string, error) {
	if text == "*" {
		return text, nil
	}
	days, err := crontabDay.all(text)
	names := make([]string, len(days))
	for i, day := range days {
		names[i] = dayOfWeek.names[day%7]
	}
	return strings.Join(names, ","), err
}
